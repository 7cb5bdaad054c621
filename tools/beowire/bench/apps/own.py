# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of this project: some that use libraries of the distribution and are compiled when they
are wanted, and one of the normal build, which needs no package."""

import json
from typing import Any

from beowire.bench.apps.application import Application, Figure, Outcome, Source
from beowire.errors import BeowireError


def _report(text: str) -> dict[str, Any]:
    """The line of JSON that the program printed."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        (line,) = lines
        told: dict[str, Any] = json.loads(line)
    except ValueError as error:
        raise BeowireError(f"A program's report cannot be read: {text[-2000:]}") from error
    return told


class Reader:
    """Reads `time_s` for a figure, and the answers of these names."""

    def __init__(self, figure: str, *answers: str) -> None:
        self.figure = figure
        self.answers = answers

    def __call__(self, text: str) -> Outcome:
        told = _report(text)
        time_s = float(told["time_s"]) if "time_s" in told else int(told["time_ns"]) / 1e9
        return Outcome({self.figure: time_s}, {name: _value(told[name]) for name in self.answers})


def _value(told: Any) -> float:
    """A checksum is told in hexadecimal digits; so many as a number holds exactly."""
    return float(int(told[-12:], 16)) if isinstance(told, str) else float(told)


_PETSC = Source("petsc", packages=("petsc",), common=False)


def _petsc(name: str, about: str, arguments: str) -> Application:
    return Application(
        name=name,
        about=f"PETSc: {about}",
        figures=(Figure(name, "s"),),
        read=Reader(name, "norm", "iterations"),
        # The solver ends at a residual of 1e-5.
        tolerances={"norm": 1e-6, "iterations": 0},
        source=_PETSC,
        packages=("petsc-dev", "libopenmpi-dev", "pkg-config", "gcc"),
        arguments=tuple(arguments.split()),
    )


FFTW = Application(
    name="fftw",
    about="FFTW: a cube of 96, forth and back",
    figures=(Figure("fftw", "s"),),
    read=Reader("fftw", "norm"),
    tolerances={"norm": 1e-12},
    source=Source("fftw", libraries=("fftw3_mpi", "fftw3")),
    packages=("libfftw3-mpi-dev", "libopenmpi-dev", "pkg-config", "gcc"),
    arguments=("--side", "96", "--turns", "60"),
)
HDF5 = Application(
    name="hdf5",
    about="HDF5: a matrix of 4 MiB for each rank, written and read together",
    figures=(Figure("hdf5", "s"),),
    read=Reader("hdf5", "hash"),
    tolerances={"hash": 0},
    source=Source("hdf5", packages=("hdf5-openmpi",)),
    packages=("libhdf5-openmpi-dev", "libopenmpi-dev", "pkg-config", "gcc"),
    arguments=("--turns", "60"),
    shared_files=True,
)
PETSC_GAMG = _petsc(
    "petsc-gamg", "Poisson's equation, 40^3, multigrid", "-side 40 -turns 20 -pc_type gamg"
)
PETSC_CG = _petsc(
    "petsc-cg",
    "Poisson's equation, 40^3, conjugate gradients",
    "-side 40 -turns 60 -pc_type jacobi",
)
TRIDIAGONAL = Application(
    name="tridiagonal",
    about="a tridiagonal system; needs no package",
    figures=(Figure("tridiagonal", "s"),),
    read=Reader("tridiagonal", "checksum"),
    tolerances={"checksum": 0},
    example="tridiagonal",
    arguments=("--json", "--size", "1m", "--repeat", "10"),
)
