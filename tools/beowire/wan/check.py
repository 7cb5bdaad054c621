# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How far predictions are from what is measured, over lines that the fit has not seen."""

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from beowire.bench.samples import Ratio
from beowire.run.launch import Transport
from beowire.wan import fit, plan
from beowire.wan.grid import Line
from beowire.wan.profile import Book

LINES = (
    Line(0, 15),
    Line(0, 50),
    Line(2, 50),
    Line(5, 20),
    Line(5, 100),
    Line(15, 100),
    Line(20, 0),
    Line(20, 50),
    Line(30, 20),
    Line(35, 100),
    Line(40, 15),
    Line(45, 50),
    Line(15, 100, 0.001),
    Line(35, 50, 0.0015),
)
"""Between those that a profile is made from by default; none is one of them."""
ERROR_MAX = 0.10
"""The median error that is allowed, in shares of the measured time [C3]."""


@dataclass(frozen=True)
class Compared:
    """A line over a transport."""

    transport: Transport
    line: Line
    measured_s: float
    predicted: Ratio
    """Seconds."""
    invalid: bool
    """The emulator was late."""

    @property
    def error(self) -> float:
        """In shares of the measured time; above 0: predicted too long."""
        return self.predicted.value / self.measured_s - 1

    @property
    def inside(self) -> bool:
        return self.predicted.low <= self.measured_s <= self.predicted.high


def lines(profile: Book) -> tuple[Line, ...]:
    """Those of LINES of which the profile can tell."""
    return tuple(each for each in LINES if plan.tells_losses(profile) or not each.loss)


def compare(profile: Book, found: Book) -> list[Compared]:
    """All lines of `found` that the profile does not have; those it has would prove nothing."""
    fits = {each: fit.of_book(profile, each) for each in profile.plan.transports}
    seen = {(run.case.transport, run.case.line) for run in profile.runs}
    return [
        Compared(
            run.case.transport,
            run.case.line,
            statistics.median(found.times_s(run.case)),
            fits[run.case.transport].within(run.case.line),
            run.verdict.valid is False,
        )
        for run in found.runs
        if run.round == 1
        and run.case.transport in fits
        and (run.case.transport, run.case.line) not in seen
    ]


def median_error(compared: list[Compared]) -> float:
    """Of the errors without their signs."""
    return statistics.median(abs(each.error) for each in compared)


def as_json(compared: list[Compared]) -> dict[str, Any]:
    told = [
        {**asdict(each), "error": each.error, "inside_interval": each.inside} for each in compared
    ]
    transports = dict.fromkeys(each.transport for each in compared)
    return {
        "compared": told,
        "median_error": {
            name: median_error([each for each in compared if each.transport == name])
            for name in transports
        },
        "allowed": ERROR_MAX,
    }
