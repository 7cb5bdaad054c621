# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A fit as a drawing: speedup with its band and the measured points, S against n, residuals."""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.model import law
from beowire.model.fit import Fit
from beowire.model.report import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STEPS = 200


def draw(report: Report, file: Path | None) -> None:
    """The three drawings in one, by drawing.save()."""
    figure = drawing.figure(15, 5)
    curve, against, rest = figure.subplots(1, 3)
    _curve(curve, report)
    _against(against, report)
    _residuals(rest, report)
    drawing.save(figure, file)


def _curve(axes: "Axes", report: Report) -> None:
    """S(N) to half as far again as was measured, or beyond the optimum."""
    import numpy as np

    found, nodes = report.fit, report.runs.nodes()
    far = 1.5 * float(nodes.max())
    if found.clear:
        far = max(far, min(1.5 * found.optimum, 3 * float(nodes.max())))
    across = np.linspace(1, far, _STEPS)
    line, name = ("-", "fitted") if found.clear else ("--", "fitted, its optimum not known")
    axes.plot(across, found.alone / found.time(across), line, label=name)
    band = [found.speedup(float(each)) for each in across]
    top = 1.5 * float(max((found.alone / report.runs.times()).max(), 1))
    low = [min(max(each.low, 0), 10 * top) for each in band]
    high = [min(each.high, 10 * top) for each in band]
    axes.fill_between(across, low, high, alpha=0.2, label="95 %")
    axes.plot(nodes, found.alone / report.runs.times(), "k.", label="measured")
    axes.plot(across, across, ":", color="grey", label="linear")
    if found.clear and found.optimum <= far:
        interval = found.optimum_interval
        axes.axvline(found.optimum, color="C3", lw=1, label="N_opt")
        axes.axvspan(interval.low, min(interval.high, far), color="C3", alpha=0.1)
    _dress(axes, "N", "speedup S")
    axes.set_ylim(0, max(top, 1.2 * found.best) if found.clear else top)


def _against(axes: "Axes", report: Report) -> None:
    """S against n at the largest N measured, for the a found; where we are on it."""
    import numpy as np

    found: Fit = report.fit
    most = float(report.runs.nodes().max())
    a, n = min(max(found.a, 0.0), 1.0), found.n_interval
    far = 2 * n.high if n.high > 0 else 1 / most**3
    across = np.linspace(0, far, _STEPS)
    axes.plot(across, [law.speedup(a, float(each), most) for each in across])
    axes.axvspan(max(n.low, 0), min(n.high, far), color="C3", alpha=0.15, label="n, 95 %")
    if found.clear:
        axes.plot([found.n], [law.speedup(a, found.n, most)], "o", color="C3", label="n")
    _dress(axes, f"communication parameter n (a = {a:.3g}, N = {most:g})", "speedup S")
    axes.set_ylim(bottom=0)


def _residuals(axes: "Axes", report: Report) -> None:
    """What the fit leaves, in per cent of the time."""
    nodes, times = report.runs.nodes(), report.runs.times()
    axes.plot(nodes, 100 * (times / report.fit.time(nodes) - 1), "k.")
    axes.axhline(0, color="grey", lw=1)
    noise = 100 * report.fit.noise
    axes.axhspan(-2 * noise, 2 * noise, alpha=0.1, label="two standard deviations")
    _dress(axes, "N", "measured above fitted time, %")


def _dress(axes: "Axes", across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=8)
