# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A chart as data: what it says, without how it is drawn. Pages (page.py) and files of drawings
(drawing.py) are made of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_DECADES = 1.5
"""Values that span more are drawn on a logarithmic axis."""


@dataclass(frozen=True)
class Point:
    """A value at x, with the interval that holds the true one, where that is known."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """Points that belong together."""

    name: str
    points: tuple[Point, ...]
    paper: bool = False
    """Not ours: what a paper has."""


@dataclass(frozen=True)
class Chart:
    """Series over one pair of axes."""

    title: str
    across: str
    """What x is, with its unit."""
    up: str
    """What y is."""
    series: tuple[Series, ...]
    logarithmic: tuple[bool, bool] = (False, False)
    """The axes of x and of y."""
    names: tuple[str, ...] = ()
    """Where x is no number: what 0, 1, 2 stand for."""
    reference: float | None = None
    """A y that others are held against."""

    def drawable(self) -> "Chart":
        """Without what has no place on the axes: numbers that are not finite, and on a logarithmic
        axis those that are not above zero."""
        return Chart(
            self.title,
            self.across,
            self.up,
            tuple(Series(each.name, self._shown(each), each.paper) for each in self.series),
            self.logarithmic,
            self.names,
            self.reference,
        )

    def left_out(self) -> int:
        """Points that have no place on the axes."""
        return sum(len(each.points) - len(self._shown(each)) for each in self.series)

    def as_json(self) -> dict[str, Any]:
        """What page.js draws."""
        return {
            "across": self.across,
            "up": self.up,
            "log": list(self.logarithmic),
            "names": list(self.names),
            "reference": self.reference,
            "series": [
                {
                    "name": each.name,
                    "paper": each.paper,
                    "points": [[p.x, p.y, p.low, p.high] for p in self._shown(each)],
                }
                for each in self.series
            ],
        }

    def _shown(self, series: Series) -> tuple[Point, ...]:
        points = (_bounded(each) for each in series.points)
        return tuple(
            each
            for each in points
            if _fits(each.x, self.logarithmic[0]) and _fits(each.y, self.logarithmic[1])
        )


def logarithmic(values: Sequence[float]) -> bool:
    """Whether these are best seen on a logarithmic axis: all are above zero, and span much."""
    return bool(values) and min(values) > 0 and math.log10(max(values) / min(values)) > _DECADES


def _fits(value: float, on_logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not on_logarithmic)


def _bounded(point: Point) -> Point:
    """Without an interval that has no end, or does not hold the value: none is drawn then."""
    low, high = point.low, point.high
    if low is None or high is None or not (-math.inf < low <= point.y <= high < math.inf):
        return Point(point.x, point.y)
    return point
