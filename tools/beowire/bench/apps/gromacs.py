# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""GROMACS: SPC/E water, whose long-range part (PME) is exchanges of all with all."""

import atexit
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from beowire import places
from beowire.bench.apps.application import Application, Figure, Files, Outcome, number
from beowire.errors import BeowireError

_TOPOLOGY = """\
#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"

[ system ]
SPC/E water

[ molecules ]
"""

_SETTINGS = """\
integrator = md
dt = 0.002
nsteps = 1000
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
fourierspacing = 0.12
constraints = h-bonds
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
ld-seed = 4711
gen-vel = yes
gen-temp = 300
gen-seed = 4711
nstenergy = 100
nstlog = 0
nstcalcenergy = 100
"""

_BOX_NM = "3.72412"
"""Two of the boxes that GROMACS has, in each direction: nothing overlaps where they meet."""
_LIMIT_S = 120.0


def _gmx(directory: Path, *words: str) -> None:
    command = [places.program("gmx", "gromacs"), "-quiet", "-nobackup", *words]
    try:
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=_LIMIT_S
        )
    except subprocess.TimeoutExpired as error:
        raise BeowireError(f"`gmx {words[0]}` took longer than {_LIMIT_S:.0f} s.") from error
    if done.returncode != 0:
        raise BeowireError(f"`gmx {words[0]}` failed:\n{done.stderr[-2000:]}")


@cache
def _input() -> Path:
    """The system as mdrun reads it, in a directory that is gone when the command ends."""
    directory = Path(tempfile.mkdtemp(prefix="beowire-apps-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    (directory / "topol.top").write_text(_TOPOLOGY)
    (directory / "grompp.mdp").write_text(_SETTINGS)
    box = ("-box", _BOX_NM, _BOX_NM, _BOX_NM)
    _gmx(directory, "solvate", "-cs", "spc216", *box, "-o", "conf.gro", "-p", "topol.top")
    _gmx(directory, "grompp", "-maxwarn", "2")
    return directory / "topol.tpr"


def files(_ranks: int) -> Files:
    return {"topol.tpr": _input()}


_ENERGIES = r"^\s+LJ \(SR\)\s+Coulomb \(SR\)\s+Coul\. recip\.\s+Potential\s+Kinetic En\.\s*\n"
_POTENTIAL = _ENERGIES + r"\s*\S+\s+\S+\s+\S+\s+(\S+)\s+\S+\s*$"
_AVERAGES = "A V E R A G E S"
_WALL = r"^\s+Time:\s+\S+\s+(\S+)\s+\S+\s*$"


def read(text: str) -> Outcome:
    """mdrun's log: energies stand at the start, at the end, and as averages."""
    before, _, after = text.partition(_AVERAGES)
    starts = re.findall(_POTENTIAL, before, re.MULTILINE)
    if not starts or not after:
        raise BeowireError(f"GROMACS' log has no energies:\n{text[-2000:]}")
    return Outcome(
        {"gromacs": number(_WALL, after, "GROMACS' wall time")},
        {
            "potential energy at the start": float(starts[0]),
            "mean potential energy": number(_POTENTIAL, after, "GROMACS' average energies"),
        },
    )


_ARGUMENTS = (
    *("-quiet", "-nobackup", "mdrun", "-s", "topol.tpr", "-ntomp", "1", "-pin", "off"),
    # What is measured while it runs must not change what it does.
    *("-reprod", "-notunepme", "-dlb", "no"),
    *("-g", "md.log", "-e", "out.edr", "-cpo", "out.cpt", "-noconfout"),
)

APPLICATION = Application(
    name="gromacs",
    about="GROMACS: 1,728 molecules of SPC/E water, PME",
    figures=(Figure("gromacs", "s"),),
    read=read,
    # Single precision: rounding grows by trajectories that part.
    tolerances={"potential energy at the start": 1e-5, "mean potential energy": 1e-3},
    program="gmx_mpi",
    packages=("gromacs",),
    arguments=_ARGUMENTS,
    files=files,
    report="md.log",
)
