# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a point will take, before it is run: computing, messages in a row, and bytes.

T = F / g + P m D + V max(1 / R, 2 D / W), of which `cost` is all but the first term.
F are the floating point operations as HPL counts them, g what all ranks compute together; P the
panels, each of which costs m messages that wait for the one-way delay D one after the other; V the
bytes that cross the line, at its rate R or with W of them under way in a round trip. g and, for
each transport, m and W are measured by small runs; the model plans hours, it is no result.
"""

import math
import statistics
from dataclasses import dataclass

from beowire.run.launch import Transport
from beowire.wan.cost import Cost, Crossing
from beowire.wan.grid import CLEAR, TRANSPORTS, Grid, Line, Point, Problem

START_S = 2.0
"""A launcher's own time without a delay."""
START_DELAYS = 60
"""One-way delays that a launcher waits for while it starts ranks; they are not in a result."""
CROSSINGS = 2
"""How often a panel crosses the line while it is broadcast along the row of ranks."""

LONG = Problem(1200, 120)
"""The small run that is mostly computing, and over LINE mostly bytes."""
SHORT = Problem(600, 75)
"""The one that is mostly waiting."""
LINE = Line(25, 100)


def flops(size: int) -> float:
    """Operations of LU and of the two triangular systems, as HPL counts them."""
    return 2 / 3 * size**3 + 3 / 2 * size**2


def line_bytes(problem: Problem) -> float:
    """What crosses the line: every panel below its diagonal, in double precision."""
    return CROSSINGS * 8 * problem.size * (problem.size + problem.block) / 2


@dataclass(frozen=True)
class Model:
    """What was measured of the lab."""

    flops_per_s: float
    """Of all ranks together, their limits of processor time included."""
    messages: dict[Transport, float]
    """In a row for each panel, by transport."""
    window_bytes: dict[Transport, float]
    """Under way at once over a line with a delay, by transport; infinite: the rate is the limit."""

    def __str__(self) -> str:
        lines = [
            f"{name} {self.messages[name]:.1f} messages in a row per panel, "
            f"{self.window_bytes[name] / 1e3:.0f} kB under way"
            for name in TRANSPORTS
        ]
        return f"{self.flops_per_s / 1e9:.2f} Gflop/s; {'; '.join(lines)}"

    def solve_s(self, point: Point) -> float:
        """The time that the program will tell."""
        compute = flops(point.problem.size) / self.flops_per_s
        return compute + self._line_s(point)

    def _line_s(self, point: Point) -> float:
        messages = point.problem.panels * self.messages[point.transport]
        window = self.window_bytes[point.transport]
        crossing = Crossing(line_bytes(point.problem), window)
        return Cost(messages, (crossing,)).time_s(point.line)

    def run_s(self, point: Point) -> float:
        """The time of the whole run, launcher included."""
        start = START_S + START_DELAYS * point.line.delay_ms / 1e3
        return start + self.solve_s(point)

    def grid_s(self, grid: Grid, done: set[tuple[int, Point]] | None = None) -> float:
        """The time of the grid's runs that are not done."""
        return sum(self.run_s(run[1]) for run in grid.runs() if run not in (done or set()))


def fit(measured_s: dict[Point, float]) -> Model:
    """The model that the small runs of `calibration` tell."""
    messages: dict[Transport, float] = {}
    windows: dict[Transport, float] = {}
    for transport in TRANSPORTS:
        short_s, long_s = (
            measured_s[Point(transport, problem, LINE)]
            - measured_s[Point(transport, problem, CLEAR)]
            for problem in (SHORT, LONG)
        )
        messages[transport], windows[transport] = _line_costs(short_s, long_s)
    mean_s = statistics.fmean(measured_s[Point(each, LONG, CLEAR)] for each in TRANSPORTS)
    return Model(flops(LONG.size) / mean_s, messages, windows)


def _line_costs(short_s: float, long_s: float) -> tuple[float, float]:
    """Messages in a row and window, from what LINE added to SHORT and to LONG: two equations, each
    panels times the cost of one and bytes times that of one."""
    delay_s = LINE.delay_s
    determinant = SHORT.panels * line_bytes(LONG) - LONG.panels * line_bytes(SHORT)
    byte_s = (SHORT.panels * long_s - LONG.panels * short_s) / determinant
    window = 2 * delay_s / byte_s if byte_s > LINE.byte_s else math.inf
    byte_s = max(byte_s, LINE.byte_s)
    panel_s = (short_s - line_bytes(SHORT) * byte_s) / SHORT.panels
    return max(panel_s / delay_s, 1.0), window


def calibration() -> list[Point]:
    """The small runs that `fit` wants."""
    return [
        Point(transport, problem, line)
        for problem in (LONG, SHORT)
        for line in (CLEAR, LINE)
        for transport in TRANSPORTS
    ]
