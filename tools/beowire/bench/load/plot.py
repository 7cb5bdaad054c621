# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slowdown against size, as it is published for Homa: a panel for each load, and a step of the
abscissa for each class, so that it is scaled by numbers of messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.bench.load.incast import Incast
from beowire.bench.load.runs import TOLD
from beowire.bench.load.slowdown import PERCENTILES, Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANEL_INCHES = (6.4, 4.6)
_COLOURS = {"tcp": "#e66101", "beowire": "#2166ac"}
_STYLES = {"p50": ":", "p99": "--", "p99.9": "-"}


def draw(figures: Sequence[Figure], title: str, file: Path | None) -> None:
    """All panels in one drawing, by drawing.save()."""
    loads = list(dict.fromkeys(each.load for each in figures))
    width, height = _PANEL_INCHES
    picture = drawing.figure(width * len(loads), height)
    picture.suptitle(title, fontsize="small")
    grid = picture.subplots(1, len(loads), squeeze=False, sharey=True)
    for column, load in enumerate(loads):
        axes = grid[0][column]
        axes.set_title(f"{load:.0%} of the line" if load else "beside a bulk transfer")
        _curves(axes, _classes([each for each in figures if each.load == load]))
        axes.set_xlabel("bytes, up to; equal numbers of messages")
    grid[0][0].set_ylabel("slowdown to the best time alone")
    if grid[0][0].lines:
        grid[0][0].legend(fontsize="small")
    drawing.save(picture, file)


def _classes(figures: Sequence[Figure]) -> list[Figure]:
    """Those of classes; of all messages where there is but one class."""
    longest = max(each.high_bytes for each in figures)
    parts = [each for each in figures if each.low_bytes or each.high_bytes < longest]
    return parts or list(figures)


def _curves(axes: "Axes", figures: Sequence[Figure]) -> None:
    bounds = list(dict.fromkeys(each.high_bytes for each in figures))
    for name in PERCENTILES:
        own = [each for each in figures if each.percentile == name]
        for carrier, colour in _COLOURS.items():
            points = [
                (bounds.index(each.high_bytes), value)
                for each in own
                if (value := each.tcp if carrier == "tcp" else each.beowire) is not None
            ]
            if points:
                axes.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    _STYLES[name],
                    marker=".",
                    color=colour,
                    label=f"{TOLD['tcp' if carrier == 'tcp' else 'beowire']} {name}",
                )
    axes.set_yscale("log")
    axes.grid(visible=True, which="major", axis="y", alpha=0.4)
    axes.set_xticks(range(len(bounds)), [f"{each:,}" for each in bounds], rotation=45, ha="right")
    axes.tick_params(labelsize="small")


def draw_incast(found: Incast, title: str, file: Path | None) -> None:
    """The rounds' shares of the line."""
    picture = drawing.figure(*_PANEL_INCHES)
    axes = picture.subplots()
    axes.set_title(title, fontsize="small")
    for each in (found.tcp, found.beowire):
        name = TOLD[each.carrier]
        numbers = range(1, len(each.rounds) + 1)
        axes.plot(numbers, each.rounds, marker="o", color=_COLOURS[each.carrier], label=name)
    axes.set_xticks(range(1, len(found.tcp.rounds) + 1))
    axes.set_xlabel("round")
    axes.set_ylabel("median wave's share of the line")
    axes.set_ylim(0, 1)
    axes.legend(fontsize="small")
    drawing.save(picture, file)
