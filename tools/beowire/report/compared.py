# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two files of the same command beside each other, as a section, by the statistics of `bench
compare`."""

import math

from beowire.bench import compare
from beowire.bench.compare import Compared, Comparison
from beowire.chart import Chart, Point, Series, logarithmic
from beowire.page import Cell, Table
from beowire.report.measured import NAMES_MOST
from beowire.report.section import Section

_TOLD = 8
_VERDICTS = ("better", "even", "worse", "unknown")


def section(found: Comparison) -> Section:
    """Of all numbers that both have."""
    first, second = found.first.path, found.second.path
    table = Table(
        "Ratios",
        ("number", "unit", "A", "B", "B to A", "from", "to", "B is"),
        [_line(each) for each in found.rows],
        f"A is {first}, B is {second}; intervals hold the ratio with 95 % confidence.",
    )
    facts = [(name, f"A: {a}, B: {b}") for name, (a, b) in found.settings.items()]
    made = Section(f"{second} to {first}", facts, charts=_charts(found), tables=[table])
    for path, names in ((first, found.only_first), (second, found.only_second)):
        if names:
            more = ", ..." if len(names) > _TOLD else ""
            told = f"Only in {path}, and not compared: {', '.join(names[:_TOLD])}{more}."
            made.remarks.append(told)
    return made


def _line(each: Compared) -> list[Cell]:
    ratio = each.ratio
    bounded = ratio is not None and each.verdict != "unknown"
    return [
        *(each.first.name, each.first.unit),
        *(compare.middle(each.first), compare.middle(each.second)),
        ratio.value if ratio else None,
        ratio.low if ratio and bounded else None,
        ratio.high if ratio and bounded else None,
        each.verdict,
    ]


def _charts(found: Comparison) -> list[Chart]:
    """The ratios, those of one verdict a series."""
    rows = [each for each in found.rows if each.ratio is not None]
    made = []
    for first in range(0, len(rows), NAMES_MOST):
        some = rows[first : first + NAMES_MOST]
        series = []
        for verdict in _VERDICTS:
            own = [(at, each) for at, each in enumerate(some) if each.verdict == verdict]
            points = tuple(_point(float(at), each) for at, each in own)
            series += [Series(f"B is {verdict}", points)] if points else []
        values = [point.y for each in series for point in each.points]
        part = f", part {first // NAMES_MOST + 1}" if len(rows) > NAMES_MOST else ""
        names = tuple(each.first.name for each in some)
        scales = (False, logarithmic(values))
        made.append(Chart(f"B to A{part}", "", "B to A", tuple(series), scales, names, 1.0))
    return made


def _point(x: float, each: Compared) -> Point:
    assert each.ratio is not None
    if each.ratio.low > 0 and math.isfinite(each.ratio.high):
        return Point(x, each.ratio.value, each.ratio.low, each.ratio.high)
    return Point(x, each.ratio.value)
