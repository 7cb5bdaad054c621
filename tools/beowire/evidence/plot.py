# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The curves of an entry, ours and the paper's, as a small drawing."""

from pathlib import Path

from beowire import drawing, transcript
from beowire.chart import Chart, Point, Series
from beowire.evidence import shown
from beowire.evidence.outcome import Outcome
from beowire.evidence.results import Results, entry_of


def chosen(results: Results) -> list[Outcome]:
    """Those that are drawn: of each figure of a paper the first that has curves."""
    by_figure: dict[tuple[str, str], Outcome] = {}
    for each in results.outcomes:
        entry = entry_of(each)
        figure = entry.paper.where.split(",")[0].split(" and ")[0]
        if each.ours is not None and shown.curves(entry, each.ours) and "section" not in figure:
            by_figure.setdefault((entry.label, figure), each)
    return list(by_figure.values())


def name(found: Outcome) -> str:
    """Of the file of its drawing."""
    return f"{found.id}.svg"


def write(results: Results, directory: Path) -> None:
    """All drawings, as files that are the same whenever they are made of the same results."""
    for each in chosen(results):
        drawing.write_charts([chart(each)], directory / name(each), "svg")


def add_to_report(results: Results) -> None:
    """The same for the report that is open, if there is one."""
    for each in chosen(results):
        transcript.add_chart(chart(each))


def chart(found: Outcome) -> Chart:
    """The curves of an entry, ours and the paper's."""
    entry = entry_of(found)
    ours = shown.curves(entry, found.ours) if found.ours is not None else {}
    theirs = {
        label: curve
        for label, curve in entry.paper.values.curves.items()
        if not entry.drawn or label in entry.drawn
    }
    series = [
        Series(label, tuple(Point(x, y) for x, y in curve), paper)
        for paper, curves in ((False, ours), (True, theirs))
        for label, curve in curves.items()
    ]
    logarithmic = (entry.logarithmic, entry.logarithmic)
    title = f"{entry.id}: {found.outcome}"
    return Chart(title, entry.across, entry.up, tuple(series), logarithmic)
