# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The paper's two programs [B6], and speedup measured [A10]: MPI jobs on labs.

Their nodes have equal limits of processor time, or wait instead of computing.
"""

import json
import os
from collections.abc import Sequence
from statistics import median
from typing import Any

from beowire import places
from beowire.bench import samples
from beowire.evidence.entry import Parameters
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import labs
from beowire.evidence.figures import Curve, Figures
from beowire.lab import up
from beowire.lab.lab import Lab
from beowire.run.job import run_captured
from beowire.run.launch import Job, Transport
from beowire.topology.topology import DIRECTIONS, Model
from beowire.wan.sites import default_cpus

_ALONE = "one process"
_MANY: tuple[Transport, ...] = ("tcp", "beowire")

Times = dict[str, dict[float, list[float]]]
"""Seconds by setting and x, a number of each round."""


def _seconds(
    lab: Lab, context: Context, words: list[str], ranks: int, transport: Transport, spins: bool
) -> float:
    """What the program says that it took."""
    environment = {"OMPI_MCA_mpi_yield_when_idle": "0"} if spins else {}
    job = Job(words, ranks, transport, per_node=1, environment=environment)
    _, output = run_captured(job, labs.first(lab, ranks), context.left_s())
    told: dict[str, Any] = json.loads(output)
    return float(told["time_ns"]) / 1e9


def _curves(times: Times) -> dict[str, Curve]:
    return {
        name: tuple((x, median(each)) for x, each in sorted(by_x.items()))
        for name, by_x in times.items()
    }


def _settings(count: int) -> list[tuple[str, int, Transport]]:
    """One process, then so many over TCP and over Beowire."""
    return [(_ALONE, 1, "tcp"), *((each, count, each) for each in _MANY)]


def _compared(times: Times, ratios: Sequence[tuple[str, str]], xs: Sequence[float]) -> Figures:
    """Curves of the times and of their ratios, each x with its interval."""
    found = Figures(curves=_curves(times))
    for over, under in ratios:
        points = []
        for x in xs:
            each = samples.ratio(times[over][x], times[under][x])
            points.append((x, each.value))
            found.numbers[f"{over} to {under} at {x:g}"] = each.value
            found.spread[f"{over} to {under} at {x:g}"] = (each.low, each.high)
        found.curves[f"{over} to {under}"] = tuple(sorted(points))
    return found


_RATIOS = (("tcp", _ALONE), ("beowire", _ALONE), ("beowire", "tcp"))


def pi(parameters: Parameters, context: Context) -> Figures:
    """Pi by one process, over TCP and over Beowire; x is the number of intervals, about one to the
    precision. One sum of 8 bytes for all ranks comes after each share of the intervals."""
    precisions = [float(each) for each in parameters["precisions"]]
    count, sums = int(parameters["nodes"]), int(parameters["sums"])
    times: Times = {}
    cpus = default_cpus(count, os.cpu_count() or 1)
    with labs.of(labs.nodes(count, cpus=cpus)) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for precision in precisions:
                intervals = round(1 / precision)
                for name, ranks, transport in _settings(count):
                    context.tell(f"round {number}: pi to {precision:g}, {name}")
                    slice_ = max(1, intervals // (ranks * sums))
                    words = [str(places.example("pi")), "--json", "--precision", f"{precision:g}"]
                    words += ["--slice", str(slice_)]
                    took = _seconds(lab, context, words, ranks, transport, spins=False)
                    times.setdefault(name, {}).setdefault(float(intervals), []).append(took)
    figures = _compared(times, _RATIOS, [round(1 / each) * 1.0 for each in precisions])
    return _told(figures, cpus)


def tridiagonal(parameters: Parameters, context: Context) -> Figures:
    """The tridiagonal system by one process, over TCP and over Beowire; x is the bytes of the
    messages that deal it out."""
    sizes = [int(each) for each in parameters["unknowns"]]
    count = int(parameters["nodes"])
    times: Times = {}
    cpus = default_cpus(count, os.cpu_count() or 1)
    with labs.of(labs.nodes(count, cpus=cpus)) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for size in sizes:
                for name, ranks, transport in _settings(count):
                    context.tell(f"round {number}: {size:,} unknowns, {name}")
                    words = [str(places.example("tridiagonal")), "--json", "--size", str(size)]
                    words += ["--repeat", str(parameters["repeat"])]
                    took = _seconds(lab, context, words, ranks, transport, spins=False)
                    times.setdefault(name, {}).setdefault(8.0 * size / count, []).append(took)
    return _told(_compared(times, _RATIOS, [8.0 * each / count for each in sizes]), cpus)


def _told(figures: Figures, cpus: float) -> Figures:
    remark = f"{cpus:g} processors for each node: equal limits by control groups"
    return Figures(figures.numbers, figures.curves, figures.spread, (remark,))


def speedup(parameters: Parameters, context: Context) -> Figures:
    """S(N) of pi whose ranks wait instead of computing, over links without a delay and with one:
    a slower network is a greater n."""
    most = int(parameters["nodes"])
    times: Times = {}
    words = [str(places.example("pi")), "--json", "--precision", str(parameters["precision"])]
    words += ["--slice", str(parameters["slice"]), "--wait", str(parameters["wait_us"])]
    far = Model(delay_ns=int(parameters["delay_ns"]))
    lines = {"fast network": Model(), "slow network": far}
    with labs.of(labs.nodes(most)) as lab:
        for number in range(1, int(parameters["rounds"]) + 1):
            for name, line in lines.items():
                models = {each.name: dict.fromkeys(DIRECTIONS, line) for each in lab.topology.links}
                up.set_links(lab.name, models)
                for ranks in range(1, most + 1):
                    context.tell(f"round {number}: {name}, {ranks} nodes")
                    took = _seconds(lab, context, words, ranks, "beowire", spins=True)
                    times.setdefault(name, {}).setdefault(float(ranks), []).append(took)
    alone = {name: median(by_nodes[1.0]) for name, by_nodes in times.items()}
    curves = {
        f"S, {name}": tuple((x, alone[name] / y) for x, y in curve)
        for name, curve in _curves(times).items()
    }
    return Figures(curves=curves, remarks=("calibrated waits stand for computing",))
