# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a command of `beowire bench` measured, as a section: its numbers, with intervals where they
have them, and charts over what they were measured at."""

from collections.abc import Iterator, Sequence

from beowire.bench import compare, samples
from beowire.bench.compare_rows import Results, Row
from beowire.chart import Chart, Point, Series, logarithmic
from beowire.page import Cell, Table
from beowire.report import source
from beowire.report.section import Section

NAMES_MOST = 40
"""Of one chart; more go into the next."""


def section(found: Results) -> Section:
    """Of a whole file."""
    table = Table(
        "Numbers",
        ("number", "unit", "value", "from", "to", "rounds", "better is"),
        [_line(each) for each in found.rows.values()],
    )
    title = f"{found.writer}: {found.path}"
    made = Section(title, source.facts(found.setting), charts=charts(found), tables=[table])
    if not found.rows:
        made.remarks.append(f"{found.path} has no numbers yet.")
    return made


def charts(found: Results) -> list[Chart]:
    """All numbers of a file, each in one of them."""
    return [*_over_x(found), *_by_name(found)]


def interval(row: Row) -> tuple[float | None, float | None]:
    """What holds the number with 95 % confidence; of rounds by Student's distribution."""
    if not row.rounds:
        return row.low, row.high
    if len(row.rounds) < 2 or min(row.rounds) <= 0:
        return None, None
    found = samples.ratio(row.rounds, [1.0] * len(row.rounds))
    return found.low, found.high


def _line(row: Row) -> list[Cell]:
    rounds = float(len(row.rounds)) if row.rounds else None
    better = "less" if row.lower_is_better else "more"
    return [row.name, row.unit, compare.middle(row), *interval(row), rounds, better]


def _point(x: float, row: Row) -> Point:
    return Point(x, compare.middle(row), *interval(row))


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str, str, bool], list[Row]]:
    """By what may stand on the same axes; without a place by unit alone."""
    found: dict[tuple[str, str, str, bool], list[Row]] = {}
    for row in rows:
        chart, across = (row.place.chart, row.place.across) if row.place else ("", "")
        found.setdefault((chart, across, row.unit, row.lower_is_better), []).append(row)
    return found


def _is_over_x(rows: Sequence[Row]) -> bool:
    """Curves need more than one x."""
    return len({row.place.x for row in rows if row.place}) > 1


def _over_x(found: Results) -> Iterator[Chart]:
    placed = [row for row in found.rows.values() if row.place]
    for (chart, across, unit, lower), rows in _groups(placed).items():
        if not _is_over_x(rows):
            continue
        by_series: dict[str, list[Point]] = {}
        for row in rows:
            assert row.place is not None
            by_series.setdefault(row.place.series, []).append(_point(row.place.x, row))
        series = [
            Series(name, tuple(sorted(points, key=lambda each: each.x)))
            for name, points in by_series.items()
        ]
        yield _chart(f"{chart}, {unit}", across, _up(unit, lower), series, unit)


def _by_name(found: Results) -> Iterator[Chart]:
    over_x = [
        id(row)
        for rows in _groups([row for row in found.rows.values() if row.place]).values()
        if _is_over_x(rows)
        for row in rows
    ]
    others = [row for row in found.rows.values() if id(row) not in set(over_x)]
    by_unit: dict[tuple[str, bool], list[Row]] = {}
    for row in others:
        by_unit.setdefault((row.unit, row.lower_is_better), []).append(row)
    for (unit, lower), rows in by_unit.items():
        for first in range(0, len(rows), NAMES_MOST):
            some = rows[first : first + NAMES_MOST]
            points = tuple(_point(float(at), row) for at, row in enumerate(some))
            names = tuple(row.name for row in some)
            part = f", part {first // NAMES_MOST + 1}" if len(rows) > NAMES_MOST else ""
            series = [Series(unit, points)]
            yield _chart(f"In {unit}{part}", "", _up(unit, lower), series, unit, names)


def _up(unit: str, lower: bool) -> str:
    return f"{unit} ({'less' if lower else 'more'} is better)"


def _chart(
    title: str,
    across: str,
    up: str,
    series: Sequence[Series],
    unit: str,
    names: tuple[str, ...] = (),
) -> Chart:
    points = [point for each in series for point in each.points]
    scales = (
        not names and logarithmic([each.x for each in points]),
        logarithmic([each.y for each in points]),
    )
    return Chart(title, across, up, tuple(series), scales, names, 1.0 if unit == "ratio" else None)
