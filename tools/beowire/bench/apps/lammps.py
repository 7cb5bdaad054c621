# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""LAMMPS: a Lennard-Jones melt, short messages with neighbours; and water with electrostatics by
PPPM, whose Fourier transforms are exchanges of all with all."""

from collections.abc import Callable

from beowire.bench.apps.application import Application, Figure, Files, Outcome, found, number
from beowire.errors import BeowireError

_INPUT = "in.apps"
_DATA = "water.data"

_MELT = """\
# A Lennard-Jones melt at the liquid's density.
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {side} 0 {side} 0 {side}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo {steps}
thermo_style custom step temp pe etotal
thermo_modify format float %.12g
run {steps}
"""

_WATER = """\
# SPC/E water.
units real
atom_style full
read_data water.data
pair_style lj/cut/coul/long 9.0
pair_coeff * * 0.0 0.0
pair_coeff 1 1 0.1553 3.166
bond_style harmonic
bond_coeff 1 1000.0 1.0
angle_style harmonic
angle_coeff 1 100.0 109.47
kspace_style pppm 1.0e-4
neighbor 2.0 bin
neigh_modify delay 0 every 1 check yes
velocity all create 300.0 4711 loop geom
fix 1 all shake 1.0e-5 50 0 b 1 a 1
fix 2 all nve
fix 3 all temp/berendsen 300.0 300.0 50.0
timestep 1.0
thermo {steps}
thermo_style custom step temp pe etotal
thermo_modify format float %.12g
run {steps}
"""

_SPACING = 3.1
"""Of molecules on a cubic lattice, in Angstrom: the liquid's density."""
_HYDROGENS = ((0.8165, 0.5774, 0.0), (-0.8165, 0.5774, 0.0))
"""Of a molecule of SPC/E, from its oxygen: 1 Angstrom, 109.47 degrees."""
_HEADER = """\
SPC/E water

{atoms} atoms
{bonds} bonds
{molecules} angles
2 atom types
1 bond types
1 angle types
0 {edge:g} xlo xhi
0 {edge:g} ylo yhi
0 {edge:g} zlo zhi

Masses

1 15.9994
2 1.008
"""


def water_data(side: int) -> str:
    """A cube of side^3 molecules."""
    atoms, bonds, angles = [], [], []
    for molecule in range(side**3):
        corner = [molecule // side**power % side * _SPACING for power in range(3)]
        first = 3 * molecule + 1
        places = [(0.0, 0.0, 0.0), *_HYDROGENS]
        for each, offset in enumerate(places):
            kind, charge = (2, 0.4238) if each else (1, -0.8476)
            where = " ".join(
                f"{start + 1 + step:.4f}" for start, step in zip(corner, offset, strict=True)
            )
            atoms.append(f"{first + each} {molecule + 1} {kind} {charge} {where}")
        bonds += [f"{2 * molecule + each} 1 {first} {first + each}" for each in (1, 2)]
        angles.append(f"{molecule + 1} 1 {first + 1} {first} {first + 2}")
    header = _HEADER.format(
        atoms=len(atoms), bonds=len(bonds), molecules=len(angles), edge=side * _SPACING
    )
    rows = {"Atoms": atoms, "Bonds": bonds, "Angles": angles}
    parts = [f"\n{name}\n\n" + "\n".join(lines) + "\n" for name, lines in rows.items()]
    return header + "".join(parts)


def _melt_files(_ranks: int) -> Files:
    return {_INPUT: _MELT.format(side=20, steps=600)}


def _water_files(_ranks: int) -> Files:
    return {_INPUT: _WATER.format(steps=200), _DATA: water_data(12)}


_TIME = r"^Loop time of ([\d.e+-]+) on "
_TABLE = r"^\s*Step\s+Temp\s+PotEng\s+TotEng\s*\n((?:[^\n]*\n)*?)Loop time"


class Reader:
    """Reads LAMMPS' log for one figure."""

    def __init__(self, figure: str) -> None:
        self.figure = figure

    def __call__(self, text: str) -> Outcome:
        time_s = number(_TIME, text, "LAMMPS' loop time")
        table = found(_TABLE, text, "LAMMPS' energies")[0]
        rows = [line.split() for line in table.splitlines()]
        rows = [row for row in rows if len(row) == 4 and row[0].isdigit()]
        if len(rows) < 2:
            raise BeowireError(f"LAMMPS' log has no energies:\n{text[-2000:]}")
        return Outcome(
            {self.figure: time_s},
            {"energy at the start": float(rows[0][2]), "energy at the end": float(rows[-1][3])},
        )


def _application(name: str, about: str, files: Callable[[int], Files]) -> Application:
    return Application(
        name=name,
        about=about,
        figures=(Figure(name, "s"),),
        read=Reader(name),
        # After some hundred steps differences of rounding have grown, but are far from this.
        tolerances={"energy at the start": 1e-9, "energy at the end": 1e-5},
        program="lmp",
        packages=("lammps",),
        arguments=("-in", _INPUT, "-log", "none"),
        files=files,
        environment={"OMP_NUM_THREADS": "1"},
    )


APPLICATIONS = (
    _application("lammps-lj", "LAMMPS: 32,000 atoms, a Lennard-Jones melt", _melt_files),
    _application("lammps-pppm", "LAMMPS: 1,728 molecules of SPC/E water, PPPM", _water_files),
)
