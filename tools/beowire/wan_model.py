# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a point will take, before it is run: computing, messages in a row, and bytes.

In the manner of LogGP (Alexandrov and others, 1995): T = F / (ranks g) + P m (1 + 2 s) D + V / R.
F are the floating point operations as HPL counts them, P the panels, D the one-way delay, R the
rate. A panel costs m messages one after the other; each waits for the delay and, where its
transport has to open its window first (RFC 5681), for s doublings of a round trip. V are the bytes
that cross the line. g and, for each transport, m are measured by a small run each; the model is
good for planning hours, not for results.
"""

import math
from dataclasses import dataclass

from beowire.launch import Transport
from beowire.wan_grid import CLEAR, TRANSPORTS, Grid, Line, Point, Problem

FIRST_WINDOW_BYTES = 10 * 1448
"""What TCP sends at first (RFC 6928)."""
START_S = 2.0
"""A launcher's own time without a delay."""
START_DELAYS = 60
"""One-way delays that a launcher waits for while it starts ranks; they are not in a result."""
CROSSINGS = 2
"""How often a panel crosses the line while it is broadcast along the row of ranks."""

COMPUTING = Problem(1200, 100)
"""The small run that is mostly computing."""
WAITING = Problem(600, 75)
"""The one that is mostly waiting, over WAITING_LINE."""
WAITING_LINE = Line(25, 100)


def flops(size: int) -> float:
    """Operations of LU and of the two triangular systems, as HPL counts them."""
    return 2 / 3 * size**3 + 3 / 2 * size**2


def line_bytes(problem: Problem) -> float:
    """What crosses the line: every panel below its diagonal, in double precision."""
    return CROSSINGS * 8 * problem.size * (problem.size + problem.block) / 2


def delays_per_message(problem: Problem) -> float:
    """The one-way delays that a message of a panel's mean size waits for."""
    message = line_bytes(problem) / CROSSINGS / problem.panels
    return 1 + 2 * math.log2(1 + message / FIRST_WINDOW_BYTES)


@dataclass(frozen=True)
class Model:
    """What was measured of the lab."""

    flops_per_s: float
    """Of all ranks together, their limits of processor time included."""
    messages: dict[Transport, float]
    """In a row for each panel, by transport."""

    def solve_s(self, point: Point) -> float:
        """The time that the program will tell."""
        compute = flops(point.problem.size) / self.flops_per_s
        return compute + self._line_s(point)

    def _line_s(self, point: Point) -> float:
        waits = point.problem.panels * delays_per_message(point.problem)
        latency = self.messages[point.transport] * waits * point.line.delay_ms / 1e3
        return latency + _transfer_s(point.problem, point.line)

    def run_s(self, point: Point) -> float:
        """The time of the whole run, launcher included."""
        start = START_S + START_DELAYS * point.line.delay_ms / 1e3
        return start + self.solve_s(point)

    def grid_s(self, grid: Grid, done: set[tuple[int, Point]] | None = None) -> float:
        """The time of the grid's runs that are not done."""
        return sum(self.run_s(run[1]) for run in grid.runs() if run not in (done or set()))


def _transfer_s(problem: Problem, line: Line) -> float:
    return line_bytes(problem) * 8 / (line.rate_mbit * 1e6) if line.rate_mbit else 0.0


def fit(measured_s: dict[Point, float]) -> Model:
    """The model that the small runs of `calibration` tell."""
    messages: dict[Transport, float] = {}
    for transport in TRANSPORTS:
        there = Point(transport, WAITING, WAITING_LINE)
        waited = measured_s[there] - measured_s[Point(transport, WAITING, CLEAR)]
        waited -= _transfer_s(WAITING, WAITING_LINE)
        waits_s = WAITING.panels * delays_per_message(WAITING) * WAITING_LINE.delay_ms / 1e3
        messages[transport] = max(waited / waits_s, 1.0)
    slowest_s = max(measured_s[Point(transport, COMPUTING, CLEAR)] for transport in TRANSPORTS)
    return Model(flops(COMPUTING.size) / slowest_s, messages)


def calibration() -> list[Point]:
    """The small runs that `fit` wants."""
    cases = ((COMPUTING, CLEAR), (WAITING, CLEAR), (WAITING, WAITING_LINE))
    return [Point(transport, problem, line) for problem, line in cases for transport in TRANSPORTS]
