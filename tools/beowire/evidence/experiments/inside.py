# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exchange inside a node, and of one node with many [D1, D2, D3]."""

import time
from dataclasses import replace
from statistics import median

from beowire.bench import exchange
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import labs
from beowire.evidence.figures import Curve, Figures
from beowire.run.cluster import of_lab
from beowire.topology import catalogue

_COPIED_BYTES = 64 << 20
_COPIES = 7
_PATTERNS: tuple[exchange.Pattern, ...] = ("scatter", "gather")


def _short(setting: str) -> str:
    """Names of settings as entries have them: `own 8k`, `beowire 64k`."""
    name = "beowire" if setting.startswith("Beowire") else "own"
    if "TCP" in setting:
        name = "tcp"
    limit = setting.partition("eager ")[2].replace(",", "").removesuffix(" B")
    return f"{name} {int(limit) // 1000}k" if limit else name


def _curves(report: exchange.Report) -> dict[str, Curve]:
    """MB/s against the size, by setting, calls and type: the largest of the rounds, as the paper
    draws them."""
    found: dict[str, list[tuple[float, float]]] = {}
    for each in report.figures:
        name = f"{_short(each.setting)} {each.calls} {each.type}"
        found.setdefault(name, []).append((float(each.size_bytes), max(each.rounds_mb_per_s)))
    return {name: tuple(sorted(points)) for name, points in found.items()}


def pair(parameters: Parameters, context: Context) -> Figures:
    """Two ranks of a node: MPI's own memory and Beowire's, at two eager limits each."""
    plan = exchange.Plan(
        types=("byte", "double"),
        sizes=",".join(map(str, parameters["sizes"])),
        rounds=int(parameters["rounds"]),
        iterations=int(parameters["iterations"]),
    )
    memory = _memory_mb_per_s()
    with labs.of(labs.nodes(1)) as lab:
        report = exchange.measure(plan, of_lab(lab.name), context.tell)
    curves = _curves(report)
    numbers = {"memory, MB/s": memory}
    for name, curve in curves.items():
        numbers[f"most, {name}"] = max(y for _, y in curve)
        numbers[f"most to memory, {name}"] = numbers[f"most, {name}"] / memory
        numbers[f"longest to most, {name}"] = curve[-1][1] / numbers[f"most, {name}"]
        if name.endswith(" double"):
            setting = name.removesuffix(" double")
            ratios = [
                y / of_bytes
                for (_, y), (_, of_bytes) in zip(curve, curves[f"{setting} byte"], strict=True)
            ]
            numbers[f"double to byte, {setting}"] = median(ratios)
    numbers["deepest dip"] = _deepest_dip(report)
    remark = "the largest of the rounds at each size; types are compared by the median over sizes"
    return Figures(numbers=numbers, curves=curves, remarks=(remark,))


def _deepest_dip(report: exchange.Report) -> float:
    """Of all sizes, the least rate of a round to the largest one at the same size."""
    return min(min(each.rounds_mb_per_s) / max(each.rounds_mb_per_s) for each in report.figures)


def _memory_mb_per_s() -> float:
    """What one processor reads and writes when it copies memory that no cache holds; the best of
    a few."""
    import numpy as np

    source = np.ones(_COPIED_BYTES, dtype=np.uint8)
    target = np.zeros(_COPIED_BYTES, dtype=np.uint8)
    best = 0.0
    for _ in range(_COPIES):
        began = time.perf_counter()
        np.copyto(target, source)
        best = max(best, 2 * _COPIED_BYTES / (time.perf_counter() - began))
    return best / 1e6


def many(parameters: Parameters, context: Context) -> Figures:
    """One node with a Gigabit link and others with Fast Ethernet: scatter and gather."""
    count = 1 + int(parameters["others"])
    curves: dict[str, Curve] = {}
    with labs.of(catalogue.find("mvs1000")) as lab:
        whole = of_lab(lab.name)
        cluster = replace(whole, hosts=whole.hosts[:count])
        for pattern in _PATTERNS:
            plan = exchange.Plan(
                pattern=pattern,
                calls=("nonblocking",),
                types=("byte", "double"),
                sizes=",".join(map(str, parameters["sizes"])),
                rounds=int(parameters["rounds"]),
                iterations=int(parameters["iterations"]),
                window=int(parameters["window"]),
                bind="none",
            )
            report = exchange.measure(plan, cluster, context.tell)
            curves |= {f"{pattern} {name}": each for name, each in _curves(report).items()}
    numbers = {f"most, {name}": max(y for _, y in each) for name, each in curves.items()}
    for name, each in curves.items():
        long = [y for x, y in each if x > float(parameters["short"])]
        numbers[f"long, {name}"] = median(long)
    remark = f"one node with {count - 1} others, the largest of the rounds at each size"
    return Figures(numbers=numbers, curves=curves, remarks=(remark,))
