# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thesis's figures of speedup, computed from its law [A10], and its closed forms checked."""

from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.figures import Curve, Figures
from beowire.model import law

_FAR = 64
"""Numbers of nodes that are looked at for the best one."""
_STEPS = 16
"""Of each node."""


def curves(parameters: Parameters, context: Context) -> Figures:
    """S(N) by Amdahl's law and for each n near 0, S against n, and how far the closed forms of the
    best N and the best speedup are from what a search finds."""
    context.tell("computing the law")
    a = float(parameters["a"])
    nodes = [1 + step / _STEPS for step in range(_STEPS * (_FAR - 1) + 1)]
    found: dict[str, Curve] = {
        "Amdahl": _every(nodes, [law.speedup(a, 0.0, each) for each in nodes]),
        "against n": tuple(
            (n, law.speedup(a, n, float(parameters["nodes"]))) for n in parameters["across"]
        ),
    }
    numbers: dict[str, float] = {"N_opt off": 0.0, "S(N_opt) off": 0.0}
    best_at, best = [], []
    for n in parameters["near_zero"]:
        values = [law.speedup(a, n, each) for each in nodes]
        found[f"n = {n:g}"] = _every(nodes, values)
        most = max(values)
        at = nodes[values.index(most)]
        best_at.append((n, at))
        best.append((n, most))
        numbers["N_opt off"] = max(numbers["N_opt off"], abs(law.optimum(a, n) - at))
        off = abs(law.best_speedup(a, n) / most - 1)
        numbers["S(N_opt) off"] = max(numbers["S(N_opt) off"], off)
    found["best N"], found["best S"] = tuple(best_at), tuple(best)
    return Figures(numbers=numbers, curves=found)


def _every(nodes: list[float], values: list[float]) -> Curve:
    """Of whole numbers of nodes only."""
    return tuple((x, y) for x, y in zip(nodes, values, strict=True) if x == int(x))
