# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which applications there are."""

from beowire.bench.apps import gromacs, hpcc, lammps, own
from beowire.bench.apps.application import Application
from beowire.errors import BeowireError

APPLICATIONS: dict[str, Application] = {
    each.name: each
    for each in (
        *lammps.APPLICATIONS,
        gromacs.APPLICATION,
        own.FFTW,
        own.HDF5,
        own.PETSC_GAMG,
        own.PETSC_CG,
        hpcc.APPLICATION,
        own.TRIDIAGONAL,
    )
}


def named(text: str) -> tuple[Application, ...]:
    """Those of a list with commas, in the catalogue's order; all for an empty one."""
    wanted = [each.strip() for each in text.split(",")] if text else list(APPLICATIONS)
    if unknown := [each for each in wanted if each not in APPLICATIONS]:
        raise BeowireError(
            f"--apps {text}: there is no {unknown[0] or 'empty name'}.",
            f"Choose among {', '.join(APPLICATIONS)}.",
        )
    return tuple(each for name, each in APPLICATIONS.items() if name in wanted)
