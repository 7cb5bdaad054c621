# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exchange inside a node, and of one node with many [D1, D2, D3], measured in turn.

Inside a node an MPI's own shared memory is compared with Beowire's link `local`, with two eager
limits each; between nodes TCP with Beowire. Every round runs the example program once in each
setting, and each run proves its path.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from beowire import installed, places
from beowire.bench import caches
from beowire.bench.exchange_figures import (
    Comparison,
    Edge,
    Figure,
    Setting,
    TypeRatio,
    comparisons,
    edges,
    rates,
    type_ratios,
)
from beowire.bench.pingpong import machine
from beowire.errors import BeowireError
from beowire.run import mpi, path
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Bind, Job, TcpStack
from beowire.run.mpi import Mpi

Pattern = Literal["pair", "scatter", "gather"]

CALLS = ("blocking", "nonblocking")
TYPES = ("byte", "double", "vector", "struct")
RUN_LIMIT_S = 300.0

# The paper's two limits [D1], for the MPI's own; Beowire's largest stands for the greater one.
EAGER_BYTES = (8_192, 81_920)
BEOWIRE_EAGER_BYTES = (8_192, 65_536)

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    pattern: Pattern = "pair"
    calls: tuple[str, ...] = CALLS
    types: tuple[str, ...] = TYPES
    sizes: str = ""
    """Message sizes with commas; empty: 1 KiB to 16 MiB, doubling."""
    rounds: int = 5
    iterations: int = 0
    """Turns for each size; 0: the program's own choice."""
    window: int = 16
    """Messages in flight to or from each node, of scatter and gather."""
    bind: Bind = "core"
    mpi: Mpi = "openmpi"
    tcp_stack: TcpStack = "native"


@dataclass
class Report:
    """All figures and how they came about."""

    plan: Plan
    figures: list[Figure] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    type_ratios: list[TypeRatio] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    """By setting."""
    carried: dict[str, dict[str, int]] = field(default_factory=dict)
    """By setting, what the witnesses counted over all runs."""

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "order": "A B A B", "machine": machine()}


def settings(plan: Plan) -> list[tuple[Setting, Setting]]:
    """What is compared: Beowire, and that to which it is compared."""
    if plan.pattern != "pair":
        return [(Setting("beowire"), Setting("tcp"))]
    return [
        (Setting("beowire", ours), Setting("memory", theirs))
        for ours, theirs in zip(BEOWIRE_EAGER_BYTES, EAGER_BYTES, strict=True)
    ]


def exchange_job(plan: Plan, setting: Setting, cluster: Cluster) -> Job:
    """A pair lies on one node; else there is one rank on each."""
    suffix = ".mpich" if mpi.find(plan.mpi).family == "mpich" else ""
    program = [str(places.example(f"exchange{suffix}")), "--json", "-"]
    program += ["--pattern", plan.pattern, "--window", str(plan.window)]
    program += ["--calls", ",".join(plan.calls), "--types", ",".join(plan.types)]
    if plan.sizes:
        program += ["--sizes", plan.sizes]
    if plan.iterations:
        program += ["--iters", str(plan.iterations)]
    pair = plan.pattern == "pair"
    return Job(
        program,
        2 if pair else len(cluster.hosts),
        setting.transport,
        mpi=plan.mpi,
        per_node=2 if pair else 1,
        bind=plan.bind,
        tcp_stack=plan.tcp_stack,
        eager_bytes=setting.eager_bytes,
    )


def moved_bytes(report: dict[str, Any]) -> int:
    """What a run is known to have moved, without its warm-up."""
    return sum(
        int(each["turn_bytes"]) * int(each["batch"]) * len(each["samples_ns"])
        for each in report["results"]
    )


def run_exchange(job: Job, cluster: Cluster) -> tuple[dict[str, Any], path.JobRecord]:
    """One proved run; the program's report and the record."""
    record, output = run_captured(job, cluster, RUN_LIMIT_S)
    report = json.loads(output)
    moved = moved_bytes(report)
    if report["pattern"] == "pair":
        path.prove(record, local_bytes=moved)
    else:
        path.prove(record, moved)
    return report, record


def check(plan: Plan, cluster: Cluster) -> None:
    """Fails where this pattern cannot be measured."""
    if plan.pattern == "pair" and mpi.find(plan.mpi).family == "mpich":
        raise BeowireError(
            "Inside a node MPICH moves messages itself, whatever carries them between nodes.",
            "Take --mpi openmpi, or a directory with an Open MPI, for --pattern pair.",
        )
    if plan.pattern != "pair" and len(cluster.hosts) < 2:
        raise BeowireError(
            f"--pattern {plan.pattern} needs two nodes or more; there is {cluster.hosts[0]} alone.",
            f"Give a lab of nodes ({installed.COMMAND} lab up NAME --nodes 4), or more hosts.",
        )


def measure(plan: Plan, cluster: Cluster, progress: Progress) -> Report:
    """Measures everything in the plan, the settings in turn."""
    check(plan, cluster)
    report = Report(plan)
    compared = settings(plan)
    runs: dict[Setting, list[dict[str, Any]]] = {
        each: [] for ours, theirs in compared for each in (theirs, ours)
    }
    for number in range(1, plan.rounds + 1):
        for setting, reports in runs.items():
            progress(f"{plan.pattern}: round {number} of {plan.rounds}, {setting.label}")
            result, record = run_exchange(exchange_job(plan, setting, cluster), cluster)
            reports.append(result)
            report.commands[setting.label] = record.command
            _add_carried(report.carried.setdefault(setting.label, {}), record)
    for setting, reports in runs.items():
        report.figures += rates(setting, reports)
    for ours, theirs in compared:
        report.comparisons += comparisons(report.figures, ours, theirs)
    report.type_ratios = type_ratios(report.figures)
    report.edges = edges(report.figures, known_caches(plan, cluster), rank_cpus())
    return report


def _add_carried(sums: dict[str, int], record: path.JobRecord) -> None:
    counted = {
        "local_bytes": record.sum("rx_payload", "local"),
        "payload_bytes": record.payload_bytes,
        "raw_bytes": record.raw_bytes,
        "tcp_bytes": record.tcp_octets,
    }
    for name, value in counted.items():
        sums[name] = sums.get(name, 0) + value


def known_caches(plan: Plan, cluster: Cluster) -> list[caches.Cache]:
    """The caches of the processors on which a pair runs: of those of a lab, whose nodes are this
    machine, with the ranks pinned; other nodes' are not known here."""
    known = plan.pattern == "pair" and cluster.shares_cores and plan.bind == "core"
    return caches.read() if known else []


def rank_cpus() -> tuple[int, int]:
    """Where pin.sh puts the two ranks of a pair."""
    return 0, 1 % len(os.sched_getaffinity(0))
