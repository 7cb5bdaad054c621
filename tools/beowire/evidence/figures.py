# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figures, a paper's or ours: numbers and curves by name.

A reference names one number of them: `name` is a number; `name@x` the value of a curve at x;
`name@first`, `name@last`, `name@most` and `name@least` that at its ends, or its extremes.
"""

import math
from dataclasses import dataclass, field
from typing import Any

Curve = tuple[tuple[float, float], ...]


class MissingError(Exception):
    """A reference to what was not measured; the text names it."""


@dataclass(frozen=True)
class Figures:
    """Numbers and curves."""

    numbers: dict[str, float] = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    """Points (x, y), in the order of x."""
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Of numbers: the interval that holds the true one with 95 % confidence, if it is known."""
    remarks: tuple[str, ...] = ()
    """What belongs to the figures: how they came about, what was left out."""

    def curve(self, name: str) -> Curve:
        """A curve of at least two points."""
        found = self.curves.get(name, ())
        if len(found) < 2:
            raise MissingError(f"curve {name}")
        return found

    def pick(self, reference: str) -> float:
        """The number that a reference names."""
        name, _, where = reference.partition("@")
        if not where:
            value = self.numbers.get(name, math.nan)
        else:
            value = _at(self.curves.get(name, ()), where)
        if not math.isfinite(value):
            raise MissingError(reference)
        return value

    def as_json(self) -> dict[str, Any]:
        return {
            "numbers": self.numbers,
            "curves": {name: [list(point) for point in each] for name, each in self.curves.items()},
            "spread": {name: list(each) for name, each in self.spread.items()},
            "remarks": list(self.remarks),
        }


def _at(curve: Curve, where: str) -> float:
    values = [y for _, y in curve]
    if not values:
        return math.nan
    named = {"first": values[0], "last": values[-1], "most": max(values), "least": min(values)}
    if where in named:
        return named[where]
    return next((y for x, y in curve if x == float(where)), math.nan)


def decode(told: Any) -> Figures:
    """What `as_json` gave. Raises ValueError, KeyError, TypeError or AttributeError for other."""
    spread = {str(name): _pair(each) for name, each in told["spread"].items()}
    return Figures(
        numbers={str(name): _number(each) for name, each in told["numbers"].items()},
        curves={
            str(name): tuple(_pair(point) for point in each)
            for name, each in told["curves"].items()
        },
        spread=spread,
        remarks=tuple(str(each) for each in told["remarks"]),
    )


def _pair(told: Any) -> tuple[float, float]:
    low, high = told
    return _number(low), _number(high)


def _number(told: Any) -> float:
    """JSON has no word for what is not finite: null, here the end of an interval without one."""
    if told is None:
        return math.inf
    if isinstance(told, bool) or not isinstance(told, int | float):
        raise TypeError(f"{told!r} is no number")
    return float(told)
