# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The matrix as heat maps: one for each MPI, MTU and link, figures by sizes.

Each cell has its ratio in it, in bold where the verdict is not `even`; its colour is by how much
Beowire is ahead (blue) or behind (orange), a pair of colours that colour-blind people tell apart.
"""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.figures import told_size

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.image import AxesImage

_COLUMN_INCHES, _ROW_INCHES = 0.72, 0.42
_EDGE_INCHES = (1.6, 1.1)
_COLOURS = ("#b35806", "#f1a340", "#fee0b6", "#f7f7f7", "#d1e5f0", "#67a9cf", "#2166ac")
_RANGE = 2.0
"""Of the colours, in doublings: four times as good or as bad, and beyond."""


def draw(cells: list[Cell], file: Path | None) -> None:
    """All maps in one drawing, by drawing.save(); a row of maps for each MPI and MTU."""
    rows = list(dict.fromkeys((cell.key.mpi, cell.key.mtu) for cell in cells))
    links = list(dict.fromkeys(cell.key.link for cell in cells))
    figures = list(dict.fromkeys(cell.key.figure for cell in cells))
    sizes = sorted({cell.key.bytes for cell in cells})
    width = _EDGE_INCHES[0] + _COLUMN_INCHES * len(sizes)
    height = _EDGE_INCHES[1] + _ROW_INCHES * len(figures)
    picture = drawing.figure(max(width * len(links), 6.0), height * len(rows) + 1.2)
    picture.suptitle(
        "Ratio to the fastest TCP (local: to the MPI library's own memory): times below 1 are "
        "ahead,\nrates (bandwidth, bidirectional, rate, pairs) above 1; bold: outside of doubt",
        fontsize="small",
    )
    grid = picture.subplots(len(rows), len(links), squeeze=False)
    image = None
    for row, (mpi, mtu) in enumerate(rows):
        for column, link in enumerate(links):
            axes = grid[row][column]
            axes.set_title(f"{link}, MTU {mtu}, {mpi}", fontsize="medium")
            own = {
                (cell.key.figure, cell.key.bytes): cell
                for cell in cells
                if (cell.key.mpi, cell.key.mtu, cell.key.link) == (mpi, mtu, link)
            }
            image = _map(axes, own, figures, sizes)
    if image is not None:
        bar = picture.colorbar(image, ax=grid, orientation="horizontal", aspect=50, shrink=0.6)
        bar.set_ticks([-2, -1, 0, 1, 2])
        bar.set_ticklabels(["4x behind", "2x behind", "even", "2x ahead", "4x ahead"])
    drawing.save(picture, file)


def _colours() -> "Colormap":
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("behind-ahead", _COLOURS).with_extremes(bad="white")


def _map(
    axes: "Axes", cells: dict[tuple[str, int], Cell], figures: list[str], sizes: list[int]
) -> "AxesImage":
    """One map; cells that are not there stay white."""
    shades = [
        [
            math.log2(cells[figure, size].advantage) if (figure, size) in cells else math.nan
            for size in sizes
        ]
        for figure in figures
    ]
    image = axes.imshow(shades, cmap=_colours(), vmin=-_RANGE, vmax=_RANGE, aspect="auto")
    axes.set_xticks(range(len(sizes)), [told_size(size) for size in sizes], rotation=45, ha="right")
    axes.set_yticks(range(len(figures)), figures)
    axes.tick_params(labelsize="small")
    for y, figure in enumerate(figures):
        for x, size in enumerate(sizes):
            if (cell := cells.get((figure, size))) is not None:
                axes.text(
                    x,
                    y,
                    told_ratio(cell.ratio.value),
                    ha="center",
                    va="center",
                    fontsize="small",
                    weight="normal" if cell.verdict == "even" else "bold",
                    color="white" if abs(shades[y][x]) > 0.8 * _RANGE else "black",
                )
    return image


def told_ratio(value: float) -> str:
    """Short enough for a cell."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
