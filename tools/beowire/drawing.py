# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Drawings to a file, and to a report that is open, by matplotlib, without a display.

matplotlib is imported where it is used: it would cost every start of the command half a second.
"""

import contextlib
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beowire import places, suggested, transcript
from beowire.chart import Chart, Series
from beowire.errors import BeowireError
from beowire.terminal import note, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 5.0, 3.2
"""Inches of one chart."""
_MARKED = 20
"""Points of a curve that are shown as such."""
_NAME_HEIGHT = 0.22


def check_file(file: Path) -> None:
    """Fails unless a drawing can be written there, so that nothing is computed in vain."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    if file.suffix.removeprefix(".") not in kinds:
        raise BeowireError(
            f"{file} names no kind of drawing.", f"End it with .{', .'.join(sorted(kinds))}."
        )
    places.check_replaceable(file)
    places.check_output(file)


def wanted(file: Path | None) -> bool:
    """Whether there is any place for a drawing. What was found must not be lost to a report that
    has none for lack of matplotlib; a file was checked before."""
    if file is not None or not transcript.is_open():
        return file is not None
    if suggested.there("matplotlib"):
        return True
    note(f"The report has no drawing. {suggested.lacking('matplotlib')}")
    return False


def figure(width: float, height: float) -> "Figure":
    """An empty figure of that many inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(made)
    return made


def save(drawn: "Figure", file: Path | None) -> None:
    """Writes it, whole or not at all; None: to the report only."""
    transcript.add_figure(drawn)
    if file is None:
        return
    try:
        with places.replacing(file) as part:
            drawn.savefig(part)
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be written: {error.strerror or error}.", "Name another place."
        ) from error


@contextlib.contextmanager
def _same() -> Iterator[None]:
    """Files are the same whenever they are made of the same charts."""
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "beowire", "font.size": 8}):
        yield


def write_charts(charts: Sequence[Chart], file: Path, kind: str) -> None:
    """Charts below one another, as png, svg or pdf (of which each chart is a page)."""
    from matplotlib.backends.backend_pdf import PdfPages

    with _same():
        if kind != "pdf":
            _below(charts).savefig(file, format=kind, dpi=150, metadata=_unnamed(kind))
            return
        with PdfPages(file, metadata={"CreationDate": None}) as pages:
            for each in charts:
                pages.savefig(_below([each]))


def svg(told: Chart) -> bytes:
    """One chart."""
    image = io.BytesIO()
    with _same():
        _below([told]).savefig(image, format="svg", metadata=_unnamed("svg"))
    return image.getvalue()


def _unnamed(kind: str) -> dict[str, None]:
    return {"Date": None} if kind == "svg" else {}


def _below(charts: Sequence[Chart]) -> "Figure":
    heights = [max(_HEIGHT, 1.2 + _NAME_HEIGHT * len(each.names)) for each in charts]
    drawn = figure(_WIDTH if not any(each.names for each in charts) else 2 * _WIDTH, sum(heights))
    parts = drawn.subplots(len(charts), 1, squeeze=False, height_ratios=heights)
    for axes, each in zip(parts[:, 0], charts, strict=True):
        _draw(axes, each)
    return drawn


def _draw(axes: "Axes", told: Chart) -> None:
    told = told.drawable()
    (_names if told.names else _curves)(axes, told)
    axes.minorticks_off()
    axes.set_title(_plain(told.title))
    axes.grid(alpha=0.3)
    if told.series:
        axes.legend(fontsize=7)


def _curves(axes: "Axes", told: Chart) -> None:
    from matplotlib.colors import to_hex

    for each in told.series:
        if not each.points:
            continue
        xs, ys = [p.x for p in each.points], [p.y for p in each.points]
        if each.paper:
            axes.plot(xs, ys, "x:", color="grey", label=f"paper: {_plain(each.name)}")
            continue
        marker = "." if len(each.points) <= _MARKED else ""
        (line,) = axes.plot(xs, ys, marker=marker, linewidth=1, label=_plain(each.name))
        _whiskers(axes, each, to_hex(line.get_color()))
    if told.reference is not None:
        axes.axhline(told.reference, color="grey", linestyle="--", linewidth=1)
    for logarithmic, scale in zip(
        told.logarithmic, (axes.set_xscale, axes.set_yscale), strict=True
    ):
        if logarithmic:
            scale("log")
    if not told.logarithmic[1]:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(_plain(told.across))
    axes.set_ylabel(_plain(told.up))


def _names(axes: "Axes", told: Chart) -> None:
    """Each name is a line, from the top down; values go across."""
    for place, each in enumerate(told.series):
        aside = 0.5 * (place + 0.5) / len(told.series) - 0.25
        xs, ys = [p.y for p in each.points], [p.x + aside for p in each.points]
        (line,) = axes.plot(xs, ys, "x" if each.paper else ".", label=_plain(each.name))
        for point, y in zip(each.points, ys, strict=True):
            if point.low is not None and point.high is not None:
                axes.plot([point.low, point.high], [y, y], color=line.get_color(), linewidth=1)
    if told.reference is not None:
        axes.axvline(told.reference, color="grey", linestyle="--", linewidth=1)
    if told.logarithmic[1]:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.set_yticks(range(len(told.names)), labels=[_plain(each) for each in told.names])
    axes.set_ylim(len(told.names) - 0.5, -0.5)
    axes.set_xlabel(_plain(told.up))


def _whiskers(axes: "Axes", series: Series, color: str) -> None:
    found = [(p.x, p.y, p.low, p.high) for p in series.points if p.low is not None]
    for x, y, low, high in found:
        reach = [[y - (low or 0)], [(high or 0) - y]]
        axes.errorbar(x, y, yerr=reach, fmt="none", ecolor=color, elinewidth=1, capsize=2)


def _plain(words: str) -> str:
    """A dollar sign would begin a formula, an underscore first would hide a label."""
    return printable(words).replace("$", r"\$").lstrip("_")
