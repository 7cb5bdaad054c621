# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thesis's three figures of speedup, drawn again from its formulas [A10]: S(N) by Amdahl's law
for a = 0.2 (1.6), S against n at a = 0.2 and N = 8 (1.8), S(N) for several n near 0 (1.9). Our copy
has the text of the thesis, not its drawings: the ranges and the values of n in the third are ours.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from beowire import drawing
from beowire.model import law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SERIAL = 0.2
NODES = 8
NEAR_ZERO = (0.0, 0.0001, 0.0003, 0.001, 0.003)
_FAR = 32
_MOST = 0.05
_STEPS = 400


def draw(file: Path) -> None:
    """Writes the three into one file."""
    figure = drawing.figure(15, 5)
    amdahl, against, several = figure.subplots(1, 3)
    _amdahl(amdahl)
    _against(against)
    _several(several)
    drawing.save(figure, file)


def _amdahl(axes: "Axes") -> None:
    import numpy as np

    nodes = np.linspace(1, 4 * _FAR, _STEPS)
    axes.plot(nodes, law.speedup(SERIAL, 0.0, nodes))
    axes.axhline(1 / SERIAL, color="grey", ls=":", label="1 / a")
    axes.set_title(f"Amdahl's law, a = {SERIAL:g}")
    _dress(axes, "N")


def _against(axes: "Axes") -> None:
    import numpy as np

    across = np.linspace(0, _MOST, _STEPS)
    axes.plot(across, [law.speedup(SERIAL, float(n), float(NODES)) for n in across])
    axes.axhline(1, color="grey", ls=":", label="one node")
    axes.set_title(f"speedup against n, a = {SERIAL:g}, N = {NODES}")
    _dress(axes, "communication parameter n")


def _several(axes: "Axes") -> None:
    import numpy as np

    nodes = np.linspace(1, _FAR, _STEPS)
    for n in NEAR_ZERO:
        (line,) = axes.plot(nodes, law.speedup(SERIAL, n, nodes), label=f"n = {n:g}")
        if n and (best := law.optimum(SERIAL, n)) <= _FAR:
            axes.plot([best], [law.best_speedup(SERIAL, n)], "o", color=line.get_color())
    axes.set_title(f"several n near 0, a = {SERIAL:g}; dots: N_opt")
    _dress(axes, "N")


def _dress(axes: "Axes", across: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel("speedup S")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
