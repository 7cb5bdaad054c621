# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Criteria of agreement: what must hold of our figures for them to agree with a paper's.

They speak of shapes: orders, ratios, monotone curves, knees. None asks for another machine's
absolute time. Each is data that stands beside the paper's values before anything is measured.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from beowire.evidence.figures import Curve, Figures

SAME = 0.05
"""A share by which neighbours of a curve may go the wrong way: repeats scatter so much."""
_TOLD = 12
"""Points of a curve that are told."""


@dataclass(frozen=True)
class Judgement:
    """Whether a criterion holds, and the figures that decided it."""

    holds: bool
    why: str


class Criterion(Protocol):
    """What must hold. `judge` raises MissingError for figures that are not there."""

    def judge(self, ours: Figures) -> Judgement: ...

    def text(self) -> str: ...


@dataclass(frozen=True)
class Within:
    """A number lies between two bounds."""

    what: str
    low: float = -math.inf
    high: float = math.inf
    says: str = ""
    """What the number is, for people; empty: its name."""

    def judge(self, ours: Figures) -> Judgement:
        value = ours.pick(self.what)
        low, high = ours.spread.get(self.what, (value, value))
        told = f"{self._name} is {_number(value)}"
        if low != high and math.isfinite(high):
            told += f" [{_number(low)}, {_number(high)}]"
        holds = self.low <= value <= self.high
        if low <= self.high and high >= self.low and not holds:
            told += ", and its interval reaches into the bounds: these rounds do not settle it"
        return Judgement(holds, told)

    def text(self) -> str:
        return f"{self._name} {_bounds(self.low, self.high)}"

    @property
    def _name(self) -> str:
        return self.says or self.what


@dataclass(frozen=True)
class Ratio:
    """One number, divided by another, lies between two bounds."""

    over: str
    under: str
    low: float = -math.inf
    high: float = math.inf
    says: str = ""

    def judge(self, ours: Figures) -> Judgement:
        over, under = ours.pick(self.over), ours.pick(self.under)
        value = over / under if under else math.inf
        told = f"{self._name} is {_number(value)} ({_number(over)} to {_number(under)})"
        return Judgement(self.low <= value <= self.high, told)

    def text(self) -> str:
        return f"{self._name} {_bounds(self.low, self.high)}"

    @property
    def _name(self) -> str:
        return self.says or f"{self.over} to {self.under}"


@dataclass(frozen=True)
class Monotone:
    """A curve rises, or falls, from each point to the next, and by a factor from end to end."""

    curve: str
    rises: bool
    factor: float = 1.1
    """At least so much between the first and the last point."""
    slack: float = SAME

    def judge(self, ours: Figures) -> Judgement:
        points = ours.curve(self.curve)
        ordered = points if self.rises else points[::-1]
        wrong = [
            later
            for earlier, later in itertools.pairwise(ordered)
            if later[1] < earlier[1] * (1 - self.slack)
        ]
        if wrong:
            at = _number(wrong[0][0])
            return Judgement(False, f"{self.curve} turns at {at}: {_told(points)}")
        least, most = ordered[0][1], ordered[-1][1]
        enough = most >= least * self.factor
        return Judgement(enough, f"{self.curve}: {_told(points)}")

    def text(self) -> str:
        way = "rises" if self.rises else "falls"
        return (
            f"{self.curve} {way} throughout (within {100 * self.slack:g} %), by a factor of "
            f"{self.factor:g} at least"
        )


@dataclass(frozen=True)
class Knee:
    """A rising curve reaches its end's level near an x: from there on it stays within a share."""

    curve: str
    low: float
    high: float
    share: float = 0.05

    def judge(self, ours: Figures) -> Judgement:
        points = ours.curve(self.curve)
        enough = (1 - self.share) * points[-1][1]
        short = [place for place, (_, y) in enumerate(points) if y < enough]
        at = points[short[-1] + 1][0] if short else points[0][0]
        told = f"within {100 * self.share:g} % of the end from {at:g} on: {_told(points)}"
        return Judgement(self.low <= at <= self.high, told)

    def text(self) -> str:
        return (
            f"{self.curve} is within {100 * self.share:g} % of its end from an x on that is "
            f"{_bounds(self.low, self.high)}"
        )


@dataclass(frozen=True)
class Flat:
    """Between two x a curve changes by no more than a factor."""

    curve: str
    low: float
    high: float
    factor: float

    def judge(self, ours: Figures) -> Judgement:
        inside = [point for point in ours.curve(self.curve) if self.low <= point[0] <= self.high]
        if len(inside) < 2:
            return Judgement(False, f"{self.curve} has fewer than two points there")
        values = [y for _, y in inside]
        value = max(values) / min(values) if min(values) > 0 else math.inf
        return Judgement(value <= self.factor, f"a factor of {value:.3g}: {_told(inside)}")

    def text(self) -> str:
        return (
            f"{self.curve} changes by a factor of at most {self.factor:g} from {self.low:g} to "
            f"{self.high:g}"
        )


@dataclass(frozen=True)
class Peak:
    """The most of a curve lies between two x."""

    curve: str
    low: float
    high: float

    def judge(self, ours: Figures) -> Judgement:
        points = ours.curve(self.curve)
        at = max(points, key=lambda point: point[1])[0]
        return Judgement(self.low <= at <= self.high, f"the most is at {at:g}: {_told(points)}")

    def text(self) -> str:
        return f"the most of {self.curve} is at an x {_bounds(self.low, self.high)}"


@dataclass(frozen=True)
class Order:
    """Numbers stand in this order, the least first."""

    what: tuple[str, ...]
    slack: float = SAME

    def judge(self, ours: Figures) -> Judgement:
        values = [ours.pick(name) for name in self.what]
        told = ", ".join(
            f"{name} {_number(value)}" for name, value in zip(self.what, values, strict=True)
        )
        holds = all(
            later >= earlier * (1 - self.slack) for earlier, later in itertools.pairwise(values)
        )
        return Judgement(holds, told)

    def text(self) -> str:
        return f"in this order, the least first (within {100 * self.slack:g} %): " + ", ".join(
            self.what
        )


@dataclass(frozen=True)
class Together:
    """All of several criteria hold."""

    parts: tuple[Criterion, ...]

    def judge(self, ours: Figures) -> Judgement:
        found = [part.judge(ours) for part in self.parts]
        failed = [each for each in found if not each.holds]
        return Judgement(not failed, "; ".join(each.why for each in failed or found))

    def text(self) -> str:
        return "; ".join(part.text() for part in self.parts)


def references(criterion: Criterion) -> list[str]:
    """The numbers and curves that a criterion names, in its order."""
    if isinstance(criterion, Together):
        return [name for part in criterion.parts for name in references(part)]
    if isinstance(criterion, Ratio):
        return [criterion.over, criterion.under]
    if isinstance(criterion, Order):
        return list(criterion.what)
    if isinstance(criterion, Within):
        return [criterion.what]
    assert isinstance(criterion, Monotone | Knee | Flat | Peak)
    return [criterion.curve]


def _bounds(low: float, high: float) -> str:
    if math.isinf(low):
        return f"at most {high:g}"
    if math.isinf(high):
        return f"at least {low:g}"
    return f"from {low:g} to {high:g}"


def _told(points: Sequence[tuple[float, float]] | Curve) -> str:
    """The points, or of many some from end to end."""
    step = -(-len(points) // _TOLD)
    chosen = [*points[:-1:step], points[-1]]
    return ", ".join(f"{_number(y)} at {_number(x)}" for x, y in chosen)


def _number(value: float) -> str:
    """Three digits, for people; larger ones in full."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
