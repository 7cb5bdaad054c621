# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The curves of an entry, ours and the paper's, as a small drawing."""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing, report
from beowire.evidence import shown
from beowire.evidence.outcome import Outcome
from beowire.evidence.results import Results, entry_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 5.0, 3.2
_MARKED = 20
"""Points of a curve that are shown as such."""


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
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "beowire", "font.size": 8}):
        for each in chosen(results):
            _draw(each).savefig(directory / name(each), metadata={"Date": None})


def add_to_report(results: Results) -> None:
    """The same for the report that is open, if there is one."""
    if report.is_open():
        for each in chosen(results):
            drawing.save(_draw(each), None)


def _draw(found: Outcome) -> "Figure":
    entry = entry_of(found)
    assert found.ours is not None
    figure = drawing.figure(_WIDTH, _HEIGHT)
    axes = figure.subplots()
    for label, curve in shown.curves(entry, found.ours).items():
        marker = "." if len(curve) <= _MARKED else ""
        axes.plot(*zip(*curve, strict=True), marker=marker, linewidth=1, label=label)
    for label, curve in entry.paper.values.curves.items():
        if entry.drawn and label not in entry.drawn:
            continue
        points = [(x, y) for x, y in curve if not entry.logarithmic or (x > 0 and y > 0)]
        axes.plot(*zip(*points, strict=True), "x:", color="grey", label=f"paper: {label}")
    if entry.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.minorticks_off()
    axes.set_xlabel(entry.across)
    axes.set_ylabel(entry.up)
    axes.set_title(f"{entry.id}: {found.outcome}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return figure
