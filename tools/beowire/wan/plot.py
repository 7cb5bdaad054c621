# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The sweeps of `beowire bench wan` as a drawing, the paper's points beside [C2]."""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.wan.grid import SweepName
from beowire.wan.report import PAPER_DELAY, PAPER_FLAT, PAPER_RATE_MBIT, Report, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES: dict[SweepName, tuple[str, str]] = {
    "delay": ("one-way delay, ms", "performance to that without emulation"),
    "rate": ("rate, Mbit/s", "performance to that without emulation"),
    "size": ("N", "time, s"),
    "block": ("block size", "performance to that without emulation"),
}
_MARKS = {"tcp": "o-", "beowire": "s--"}


def draw(report: Report, file: Path | None) -> None:
    """All sweeps in one drawing, by drawing.save(); an invalid point is drawn hollow."""
    figure = drawing.figure(11, 8)
    for axes, name in zip(figure.subplots(2, 2).flat, _TITLES, strict=True):
        _sweep(axes, name, [row for row in report.rows if row.sweep == name])
    drawing.save(figure, file)


def _sweep(axes: "Axes", name: SweepName, rows: list[Row]) -> None:
    for key in dict.fromkeys(_series(row) for row in rows):
        own = sorted((row for row in rows if _series(row) == key), key=_across)
        x, y = [_across(row) for row in own], [_up(row) for row in own]
        (line,) = axes.plot(x, y, _MARKS[own[0].point.transport], label=key)
        bad = [(_across(row), _up(row)) for row in own if row.invalid]
        if bad:
            axes.plot(*zip(*bad, strict=True), "o", mfc="white", mec=line.get_color(), ms=9)
    _paper(axes, name, rows)
    if name == "block":
        axes.set_xscale("log")
    across, up = _TITLES[name]
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)


def _paper(axes: "Axes", name: SweepName, rows: list[Row]) -> None:
    if name == "delay":
        axes.plot(list(PAPER_DELAY), list(PAPER_DELAY.values()), "k*", ms=11, label="paper")
    elif name == "rate":
        axes.axvline(PAPER_RATE_MBIT, color="k", ls=":", label="paper: saturates near here")
    elif name == "block" and (size := max((row.point.problem.size for row in rows), default=0)):
        low, high = (size / part for part in PAPER_FLAT)
        axes.axvspan(low, high, color="k", alpha=0.07, label="paper: flat from N/60 to N/6")


def _series(row: Row) -> str:
    """What is held fixed along a line of the drawing."""
    point = row.point
    if row.sweep == "size":
        return f"{point.transport}, NB={point.problem.block}"
    if row.sweep == "block":
        return f"{point.transport}, {point.line.delay_ms:g} ms"
    return f"{point.transport}, {point.problem}"


def _across(row: Row) -> float:
    point = row.point
    return {
        "delay": point.line.delay_ms,
        "rate": point.line.rate_mbit,
        "size": float(point.problem.size),
        "block": float(point.problem.block),
    }[row.sweep]


def _up(row: Row) -> float:
    if row.sweep == "size":
        return row.time_s
    return row.relative.value if row.relative else float("nan")
