# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A report as a page, as Markdown, as CSV, or as its charts alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from beowire import page, tabular
from beowire.chart import Chart
from beowire.page import Cell, Table
from beowire.report.contents import Contents
from beowire.report.section import Section
from beowire.terminal import printable

TITLE = "Beowire: report"
_POINTS_MOST = 20_000
_ROWS_MOST = 5_000
"""Of a page: more make it slow, and nobody reads them."""


def html(found: Contents) -> str:
    """A page that needs nothing else."""
    found = _shortened(found)
    parts = [page.remark(each) for each in found.remarks]
    if len(found.sections) > 1:
        links = "".join(
            f'<li><a href="#s{at}">{page.text(each.title)}</a></li>'
            for at, each in enumerate(found.sections, 1)
        )
        parts.append(f'<nav aria-label="Sections"><ul>{links}</ul></nav>')
    for at, each in enumerate(found.sections, 1):
        parts += [
            f'<section id="s{at}"><h2>{page.text(each.title)}</h2>',
            *(page.remark(words) for words in each.remarks),
            page.facts(each.facts),
            f'<div class="charts">{"".join(map(page.chart, each.charts))}</div>',
            *(page.table(table) for table in each.tables),
            "</section>",
        ]
    return page.add(page.empty(TITLE), "\n".join([*parts, ""]))


def _shortened(found: Contents) -> Contents:
    """What a browser shows in good time; what is left out is told."""
    points, rows = _POINTS_MOST, _ROWS_MOST
    sections = []
    for each in found.sections:
        remarks, charts, tables = list(each.remarks), [], []
        for chart in each.charts:
            points -= sum(len(series.points) for series in chart.series)
            charts += [chart] if points >= 0 else []
        for table in each.tables:
            kept = table.rows[: max(rows, 0)]
            rows -= len(kept)
            tables.append(replace(table, rows=kept))
            if len(kept) < len(table.rows):
                left_out = len(table.rows) - len(kept)
                remarks.append(f"{table.title}: {left_out} more rows are left out of this page.")
        if len(charts) < len(each.charts):
            left_out = len(each.charts) - len(charts)
            remarks.append(f"{left_out} more charts are left out of this page.")
        sections.append(replace(each, remarks=remarks, charts=charts, tables=tables))
    return Contents(sections, found.remarks)


def charts(found: Contents) -> list[Chart]:
    """All of them."""
    return [chart for each in found.sections for chart in each.charts]


def csv(found: Contents) -> str:
    """Of sections with charts each point of them, of others each row of their tables."""
    return tabular.csv_text([row for each in found.sections for row in _csv_rows(each)])


def _csv_rows(section: Section) -> Iterator[dict[str, Any]]:
    for chart in section.charts:
        for series in chart.series:
            for each in series.points:
                yield {
                    "section": section.title,
                    "part": chart.title,
                    "series": series.name,
                    "paper": series.paper,
                    "across": chart.across,
                    "x": chart.names[int(each.x)] if chart.names else each.x,
                    "up": chart.up,
                    "value": each.y,
                    "from": each.low,
                    "to": each.high,
                }
    if not section.charts:
        for table in section.tables:
            for row in table.rows:
                told = dict(zip(table.columns, row, strict=True))
                yield {"section": section.title, "part": table.title, **told}


def markdown(found: Contents) -> str:
    """Text, with the tables; it has no charts."""
    parts = [f"# {TITLE}", *(f"> {_safe(each)}" for each in found.remarks)]
    for each in found.sections:
        parts.append(f"## {_safe(each.title)}")
        parts += [f"> {_safe(words)}" for words in each.remarks]
        if each.facts:
            parts.append("\n".join(f"- {_safe(name)}: {_safe(told)}" for name, told in each.facts))
        parts += [_markdown_table(table) for table in each.tables if table.rows]
    return "\n\n".join(parts) + "\n"


def _markdown_table(told: Table) -> str:
    lines = [f"### {_safe(told.title)}", ""]
    lines += [_safe(told.about), ""] if told.about else []
    lines += [_line(told.columns), f"|{'---|' * len(told.columns)}"]
    return "\n".join([*lines, *(_line(each) for each in told.rows)])


def _line(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(_markdown_cell(each) for each in cells)} |"


def _markdown_cell(value: Cell) -> str:
    if value is None:
        return ""
    return _safe(value) if isinstance(value, str) else page.number(value)


_MARKS = str.maketrans({each: f"\\{each}" for each in "\\`*_[]|#"} | {"<": "&lt;", "&": "&amp;"})


def _safe(words: object) -> str:
    """Text in one line, none of which is a mark of Markdown or of HTML."""
    return " ".join(printable(str(words)).split()).translate(_MARKS)
