# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exchange benchmark's rates against message size, as a picture.

A panel for each type and kind of calls, a curve for each setting; as in the paper [D1] the smaller
eager limit is dashed and the larger one solid. A vertical line stands at the message size whose
buffers just fill a cache.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.bench.exchange import Report
from beowire.bench.exchange_figures import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL_INCHES = (6.0, 3.6)


def draw(report: Report, file: Path | None) -> None:
    """All panels in one drawing, by drawing.save()."""
    types, calls = report.plan.types, report.plan.calls
    width, height = _PANEL_INCHES
    picture = drawing.figure(width * len(calls), height * len(types))
    grid = picture.subplots(len(types), len(calls), squeeze=False, sharex=True)
    for row, kind in enumerate(types):
        for column, how in enumerate(calls):
            chosen = [each for each in report.figures if (each.type, each.calls) == (kind, how)]
            axes = grid[row][column]
            axes.set_title(f"{report.plan.pattern}, {how}, {kind}")
            _curves(axes, chosen)
            _cache_lines(axes, report, chosen)
    grid[0][0].legend(fontsize="small")
    drawing.save(picture, file)


def _curves(axes: "Axes", figures: list[Figure]) -> None:
    """The first half of the settings in dashed lines, of a single pair all in solid ones."""
    settings = list(dict.fromkeys(each.setting for each in figures))
    for position, setting in enumerate(settings):
        points = sorted(
            (each.size_bytes, each.mb_per_s["p50"]) for each in figures if each.setting == setting
        )
        dashed = len(settings) > 2 and position < len(settings) // 2
        axes.plot(
            [size for size, _ in points],
            [rate for _, rate in points],
            "--" if dashed else "-",
            marker=".",
            color=f"C{position % 2}",
            label=setting,
        )
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("message, bytes")
    axes.set_ylabel("MB/s")


def _cache_lines(axes: "Axes", report: Report, figures: list[Figure]) -> None:
    """At the message size whose buffers fill the cache."""
    first = figures[0]
    known = {each.cache: each for each in report.edges if each.buffers}
    for cache in known.values():
        buffer_bytes = cache.cache_bytes / cache.buffers
        at = buffer_bytes * first.payload_bytes / first.span_bytes
        axes.axvline(at, color="grey", linestyle=":")
        axes.annotate(
            f"{cache.cache} {cache.cache_bytes >> 10} KiB",
            (at, 0.98),
            xycoords=("data", "axes fraction"),
            rotation=90,
            ha="right",
            va="top",
            fontsize="small",
            color="grey",
        )
