# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `beowire bench wan` measures: problems, lines between two sites, and the sweeps over them.

The sweeps are the figures of [C2]: performance against delay, against rate, against the size of the
problem for several block sizes, and against the block size at two delays. Several sweeps share
points; each point is run once in a round. Delays are one way in milliseconds, rates in Mbit/s.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from beowire.errors import BeowireError
from beowire.run.launch import Transport

SweepName = Literal["delay", "rate", "size", "block"]

TRANSPORTS: tuple[Transport, ...] = ("tcp", "beowire")


@dataclass(frozen=True)
class Problem:
    """A dense system of `size` unknowns, solved in blocks of `block` columns."""

    size: int
    block: int

    @property
    def panels(self) -> int:
        """How many blocks of columns it has."""
        return -(-self.size // self.block)

    def __str__(self) -> str:
        return f"N={self.size} NB={self.block}"


@dataclass(frozen=True)
class Line:
    """What joins the sites."""

    delay_ms: float
    rate_mbit: float
    """0: no limit."""
    loss: float = 0.0
    """Share of the frames that are lost, in each direction."""

    @property
    def clear(self) -> bool:
        """The sites are joined without emulation."""
        return not self.delay_ms and not self.rate_mbit and not self.loss

    @property
    def delay_s(self) -> float:
        return self.delay_ms / 1e3

    @property
    def byte_s(self) -> float:
        """What a byte takes at the line's rate."""
        return 8 / (self.rate_mbit * 1e6) if self.rate_mbit else 0.0

    def __str__(self) -> str:
        if self.clear:
            return "no emulation"
        lost = f" {100 * self.loss:.3g} % lost" if self.loss else ""
        return f"{self.delay_ms:.4g} ms {self.rate_mbit:.4g} Mbit/s{lost}"


CLEAR = Line(0, 0)


@dataclass(frozen=True)
class Point:
    """One thing to measure in each round."""

    transport: Transport
    problem: Problem
    line: Line

    def __str__(self) -> str:
        return f"{self.problem}, {self.line}, {self.transport}"


@dataclass(frozen=True)
class Sweep:
    """A figure: every problem over every line."""

    name: SweepName
    problems: tuple[Problem, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Grid:
    """All sweeps of a run."""

    name: str
    sweeps: tuple[Sweep, ...]
    rounds: int = 1

    def cases(self) -> list[tuple[Problem, Line]]:
        """Each problem with each of its lines once, problem by problem, first without emulation:
        what a result is relative to is measured beside it."""
        lines: dict[Problem, dict[Line, None]] = {}
        for sweep in self.sweeps:
            for problem in sweep.problems:
                lines.setdefault(problem, {CLEAR: None}).update(dict.fromkeys(sweep.lines))
        return [(problem, line) for problem, its in lines.items() for line in its]

    def runs(self) -> Iterator[tuple[int, Point]]:
        """Rounds, counted from 1, and their points in the order of measuring: the transports take
        turns at every case (A B A B), rounds are outermost."""
        for number in range(1, self.rounds + 1):
            for problem, line in self.cases():
                for transport in TRANSPORTS:
                    yield number, Point(transport, problem, line)


def _made(
    name: str,
    main: Problem,
    delays: tuple[float, ...],
    rates: tuple[float, ...],
    sizes: tuple[int, ...],
    size_blocks: tuple[int, ...],
    blocks: tuple[int, ...],
    block_delays: tuple[float, ...],
    rounds: int,
) -> Grid:
    """Rates are swept without delay, which [C2] does not state; all else at 100 Mbit/s."""
    return Grid(
        name,
        (
            Sweep("delay", (main,), tuple(Line(delay, 100) for delay in delays)),
            Sweep("rate", (main,), tuple(Line(0, rate) for rate in rates)),
            Sweep(
                "size",
                tuple(Problem(size, block) for block in size_blocks for size in sizes),
                (Line(25, 100),),
            ),
            Sweep(
                "block",
                tuple(Problem(main.size, block) for block in blocks),
                tuple(Line(delay, 100) for delay in block_delays),
            ),
        ),
        rounds,
    )


GRIDS = {
    "quick": _made(
        "quick",
        main=Problem(1200, 120),
        delays=(0, 10, 25),
        rates=(10, 40, 100),
        sizes=(600, 1200),
        size_blocks=(120,),
        blocks=(40, 120, 200),
        block_delays=(25,),
        rounds=1,
    ),
    "ready": _made(
        "ready",
        main=Problem(2400, 240),
        delays=(0, 5, 10, 25, 50, 100, 200),
        rates=(10, 20, 40, 60, 80, 100),
        sizes=(1200, 2400),
        size_blocks=(24, 240),
        blocks=(24, 40, 120, 240, 400, 800),
        block_delays=(25, 50),
        rounds=1,
    ),
    "paper": _made(
        "paper",
        main=Problem(6400, 100),
        delays=(0, 5, 10, 25, 50, 75, 100, 150, 200),
        rates=(10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
        sizes=(800, 1600, 3200, 4800, 6400),
        size_blocks=(10, 50, 100),
        blocks=(10, 20, 50, 100, 200, 500, 1000, 2000),
        block_delays=(25, 50),
        rounds=3,
    ),
}


def find(name: str, rounds: int = 0) -> Grid:
    """The grid of that name; `rounds` of it instead of its own, unless 0."""
    if name not in GRIDS:
        raise BeowireError(f"--grid {name}?", f"Choose among {', '.join(GRIDS)}.")
    return replace(GRIDS[name], rounds=rounds or GRIDS[name].rounds)
