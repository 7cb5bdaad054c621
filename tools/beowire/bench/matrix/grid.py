# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which cells there are, and which runs fill them.

Cells that one job can measure, or jobs that are compared with one another, make a series: an MPI,
an MTU, between nodes or within one, and figures of one number of ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from beowire.bench.matrix.figures import FIGURES, Place
from beowire.errors import BeowireError

Link = Literal["raw", "udp", "local"]
LINKS: tuple[Link, ...] = ("raw", "udp", "local")


@dataclass(frozen=True)
class Key:
    """Names a cell."""

    figure: str
    bytes: int
    link: Link
    mtu: int
    mpi: str

    def __str__(self) -> str:
        return f"{self.figure} of {self.bytes} bytes, {self.link}, MTU {self.mtu}, {self.mpi}"


@dataclass(frozen=True)
class Grid:
    """What is measured."""

    figures: tuple[str, ...]
    sizes: tuple[int, ...]
    links: tuple[Link, ...]
    mtus: tuple[int, ...]
    mpis: tuple[str, ...]
    rounds: int
    cell_ms: int
    """For how long a cell is measured in a run."""
    collective_ranks: int = 2
    """Even: half of them on each node."""

    def ranks(self, figure: str) -> int:
        return FIGURES[figure].ranks or self.collective_ranks

    def wanted(self) -> list[Key]:
        return [key for series in self.series() for key in series.wanted()]

    def series(self) -> list["Series"]:
        """In the order of measuring: what needs the same lab stands together."""
        places = {place_of(link): None for link in self.links}
        ranks = {self.ranks(figure): None for figure in self.figures}
        return [
            Series(
                mpi,
                mtu,
                place,
                count,
                tuple(each for each in self.figures if self.ranks(each) == count),
                self.sizes,
                tuple(each for each in self.links if place_of(each) == place),
            )
            for mtu in self.mtus
            for mpi in self.mpis
            for place in places
            for count in ranks
        ]


@dataclass(frozen=True)
class Series:
    """What is compared in one row of jobs."""

    mpi: str
    mtu: int
    place: Place
    ranks: int
    figures: tuple[str, ...]
    sizes: tuple[int, ...]
    links: tuple[Link, ...]

    def wanted(self) -> Iterator[Key]:
        for figure in self.figures:
            for size in self.sizes:
                for link in self.links:
                    yield Key(figure, size, link, self.mtu, self.mpi)

    def __str__(self) -> str:
        return f"{self.mpi}, MTU {self.mtu}, {'/'.join(self.links)}, {self.ranks} ranks"


def place_of(link: Link) -> Place:
    return "within" if link == "local" else "between"


FULL = Grid(
    figures=tuple(FIGURES),
    sizes=(8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20),
    links=LINKS,
    mtus=(1500, 9000),
    mpis=("openmpi", "mpich"),
    rounds=5,
    cell_ms=50,
)
QUICK = Grid(
    figures=("latency", "bandwidth", "rate", "allreduce"),
    sizes=(8, 4 << 10, 64 << 10, 1 << 20),
    links=LINKS,
    mtus=(1500, 9000),
    mpis=("openmpi",),
    rounds=3,
    cell_ms=30,
)


def named(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the known names that a list with commas holds, in their own order."""
    wanted = [each.strip() for each in text.split(",")]
    if unknown := [each for each in wanted if each not in known]:
        raise BeowireError(
            f"{option} {text}: there is no {unknown[0] or 'empty name'}.",
            f"Choose among {', '.join(known)}.",
        )
    return tuple(each for each in known if each in wanted)


def read_mtus(text: str) -> tuple[int, ...]:
    """MTUs out of a list with commas, in bytes, as they stand."""
    try:
        found = [int(each) for each in text.split(",")]
    except ValueError:
        found = [0]
    if not all(576 <= each <= 65535 for each in found):
        raise BeowireError(f"--mtu {text}?", "Give MTUs from 576 to 65535, such as 1500,9000.")
    return tuple(dict.fromkeys(found))
