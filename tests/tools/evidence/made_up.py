# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Made-up results: worlds in which whatever a criterion asks for has some value."""

import math
from collections.abc import Callable, Iterator

from beowire.evidence.criterion import Criterion, Together, references
from beowire.evidence.figures import Curve, Figures

_XS = (0.5, 1.0, 7.0, 20.0, 50.0, 70.0, 100.0, 20000.0, 40000.0)
"""Where every curve has a point, beside those that are asked for."""


def parts(criterion: Criterion) -> Iterator[Criterion]:
    """What must all hold, one by one."""
    if isinstance(criterion, Together):
        for each in criterion.parts:
            yield from parts(each)
    else:
        yield criterion


def _world(
    criterion: Criterion, number: Callable[[int], float], shape: Callable[[float], float]
) -> Figures:
    names = [] if hasattr(criterion, "curve") else references(criterion)
    numbers = {name: number(place) for place, name in enumerate(names) if "@" not in name}
    points: dict[str, dict[float, float]] = {}
    if curve := getattr(criterion, "curve", ""):
        points[curve] = {}
    for place, name in enumerate(names):
        curve, at, where = name.partition("@")
        if at:
            own = points.setdefault(curve, {})
            with_x = where.replace(".", "").replace("e+", "").isdigit()
            own.update({float(where): number(place)} if with_x else {})
    curves: dict[str, Curve] = {}
    for name, own in points.items():
        every = {x: shape(x) for x in _XS} | own
        curves[name] = tuple(sorted(every.items()))
    return Figures(numbers, curves)


def worlds(criterion: Criterion) -> Iterator[Figures]:
    """Numbers that are small, large, alike, rising or falling in the criterion's order, with curves
    that are flat, rise, fall, or jump."""
    numbers: list[Callable[[int], float]] = [
        lambda _: 1.0,
        lambda _: -1e9,
        lambda _: 1e9,
        lambda place: 10.0**place,
        lambda place: 10.0**-place,
    ]
    shapes: list[Callable[[float], float]] = [
        lambda _: 1.0,
        lambda x: x,
        lambda x: 1 / x,
        lambda x: 1.0 if int(math.log2(x) + 1) % 2 else 100.0,
    ]
    for number in numbers:
        for shape in shapes:
            yield _world(criterion, number, shape)
