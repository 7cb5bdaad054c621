# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The time of a program on both sites over any line, from its runs over a few.

The parameters of `cost` are those that meet the measured times best, in shares of each time,
and none of them is negative (Lawson and Hanson's least squares, as scipy has it). Which of the
windows occur comes out of that. The interval of a prediction is that of linear regression, over the
parameters that are not 0: what the fit leaves over, more where the line is unlike those measured.

scipy is imported where it is used: it would cost every start of the command a part of a second.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from beowire.bench.samples import CONFIDENCE, Ratio
from beowire.run.launch import Transport
from beowire.wan.cost import FRAME_BYTES, Cost, Crossing
from beowire.wan.grid import CLEAR, Line
from beowire.wan.profile import Book, Case, Sites

WINDOWS = (*(15e3 * 2**power for power in range(7)), math.inf)
"""Bytes under way that are told apart: from TCP's first window (RFC 6928) to about a megabyte."""


@dataclass(frozen=True)
class Measured:
    """One line's time on both sites."""

    line: Line
    time_s: float


@dataclass(frozen=True)
class Fit:
    """A program over one transport."""

    compute_s: float
    """What does not depend on the line: computing, and messages within the sites."""
    cost: Cost
    spread: float
    """Standard deviation of a measured time from the fit, in shares of it."""
    freedom: int
    """Lines less parameters, at least 1."""
    active: tuple[int, ...]
    """Numbers of the parameters that are above 0."""
    doubt: tuple[tuple[float, ...], ...]
    """Their covariance, where the spread is 1: the inverse of the normal matrix."""

    def time_s(self, line: Line) -> float:
        return self.compute_s + self.cost.time_s(line)

    def within(self, line: Line, other_spread: float = 0.0) -> Ratio:
        """The time and the interval that holds it with 95 % confidence; `other_spread` is an error
        of its own in shares of the time."""
        import numpy as np
        from scipy import stats

        time_s = self.time_s(line)
        row = np.array(_row(line, time_s, self.cost.frames))[list(self.active)]
        leverage = float(row @ np.array(self.doubt) @ row)
        quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom))
        spread = math.hypot(self.spread * math.sqrt(1 + leverage), other_spread)
        factor = math.exp(quantile * spread)
        return Ratio(time_s, time_s / factor, time_s * factor)

    def as_json(self) -> dict[str, Any]:
        """What the parameters are; an unlimited window is null."""
        cost = self.cost
        return {
            "compute_s": self.compute_s,
            "messages": cost.messages,
            "crossings": [
                {
                    "bytes": each.bytes,
                    "window_bytes": None if math.isinf(each.window_bytes) else each.window_bytes,
                }
                for each in cost.crossings
            ],
            "frames": cost.frames,
            "stall_s": cost.stall_s,
            "stall_trips": cost.stall_trips,
            "spread": self.spread,
        }


def of_book(book: Book, transport: Transport) -> Fit:
    """From all runs on both sites over this transport; several of a line count by their median.
    Where it was run on real hosts too, they tell the time that does not depend on the line."""
    runs = [run for run in book.runs if run.case.transport == transport]
    both = [run for run in runs if (run.case.sites, run.case.place) == ("both", "lab")]
    cases = dict.fromkeys(run.case for run in both)
    measured = [Measured(case.line, statistics.median(book.times_s(case))) for case in cases]
    frames = statistics.median(run.crossed_bytes / FRAME_BYTES for run in both)
    found = fit(measured, frames, noise(book, transport, "both"))
    if not book.plan.hosts:
        return found
    on_hosts_s = statistics.median(book.times_s(Case(transport, "both", CLEAR, "hosts")))
    return replace(found, compute_s=on_hosts_s)


def noise(book: Book, transport: Transport, sites: Sites) -> float:
    """Standard deviation of the runs of one case, in shares of their mean; 0 without more than
    one."""
    logs: list[list[float]] = []
    for case in dict.fromkeys(run.case for run in book.runs):
        if (case.transport, case.sites) == (transport, sites):
            logs.append([math.log(time_s) for time_s in book.times_s(case)])
    freedom = sum(len(each) - 1 for each in logs)
    left = sum((log - statistics.fmean(each)) ** 2 for each in logs for log in each)
    return math.sqrt(left / freedom) if freedom else 0.0


def one_site_s(book: Book, transport: Transport) -> list[float]:
    """The times of all runs on one site, of real hosts if there are any."""
    return book.times_s(Case(transport, "one", CLEAR, "hosts" if book.plan.hosts else "lab"))


def fit(measured: Sequence[Measured], frames: float, spread_min: float = 0.0) -> Fit:
    """`frames` cross in a run; runs that were repeated differ by `spread_min`."""
    import numpy as np
    from scipy import optimize

    rows = np.array([_row(each.line, each.time_s, frames) for each in measured])
    scales = rows.max(axis=0)
    scales[scales == 0] = 1  # nothing measured depends on it; its parameter is 0
    found, left = optimize.nnls(rows / scales, np.ones(len(measured)))
    active = tuple(int(each) for each in np.flatnonzero(found > 0))
    freedom = max(len(measured) - len(active), 1)
    values = [float(each) for each in found / scales]
    used = rows[:, active]
    return Fit(
        compute_s=values[0],
        cost=_cost(values[1:], frames),
        spread=max(float(left) / math.sqrt(freedom), spread_min),
        freedom=freedom,
        active=active,
        doubt=tuple(tuple(map(float, each)) for each in np.linalg.pinv(used.T @ used)),
    )


def _cost(values: Sequence[float], frames: float) -> Cost:
    messages, *volumes, stall_s, stall_trips = values
    crossings = tuple(
        Crossing(volume, window) for volume, window in zip(volumes, WINDOWS, strict=True) if volume
    )
    return Cost(messages, crossings, frames, stall_s, stall_trips)


def _row(line: Line, time_s: float, frames: float) -> list[float]:
    """What one of each parameter in turn takes over the line, in shares of the time: computing, a
    message, a byte with each window, a second and a round trip for each frame that is lost."""
    units = [
        Cost(1, ()),
        *(Cost(0, (Crossing(1, window),)) for window in WINDOWS),
        Cost(0, (), frames, stall_s=1),
        Cost(0, (), frames, stall_trips=1),
    ]
    return [1 / time_s, *(unit.time_s(line) / time_s for unit in units)]
