# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ratios as a drawing: a row for each application and shape, the worst on top."""

import math
from pathlib import Path

from beowire import drawing
from beowire.bench.apps.cells import Cell
from beowire.bench.matrix.cells import has_interval

_COLOURS = {"behind": "#c05000", "even": "#707070", "ahead": "#2060a0"}


def draw(cells: list[Cell], file: Path | None) -> None:
    """Ratios with their intervals, on a logarithmic scale."""
    rows = sorted(cells, key=lambda cell: cell.badness, reverse=True)
    picture = drawing.figure(8.0, 1.2 + 0.28 * len(rows))
    axes = picture.subplots()
    for height, cell in enumerate(rows):
        found, colour = cell.ratio, _COLOURS[cell.verdict]
        if has_interval(found) and math.isfinite(found.high):
            axes.plot([found.low, found.high], [height, height], color=colour, linewidth=2)
        axes.plot([found.value], [height], "o", color=colour)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(
        range(len(rows)), [f"{cell.key.figure} {cell.key.shape}" for cell in rows], fontsize="small"
    )
    axes.set_ylim(-0.7, len(rows) - 0.3)
    low = min(cell.ratio.value for cell in rows)
    high = max(cell.ratio.value for cell in rows)
    axes.set_xlim(min(0.5, low / 1.2), max(2.0, high * 1.2))
    marks = [each for each in (0.1, 0.25, 0.5, 0.7, 1, 1.4, 2, 4, 10) if low / 2 < each < high * 2]
    axes.set_xticks(marks, [f"{each:g}" for each in marks])
    axes.minorticks_off()
    axes.set_xlabel("Beowire's time to TCP's; left of 1 Beowire is ahead")
    axes.set_title("Applications, ranks x nodes", fontsize="medium")
    drawing.save(picture, file)
