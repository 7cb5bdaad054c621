# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The ping-pong measured over both transports in turn, and what comes of it.

Every round runs the example program once over TCP and once over Beowire; each run proves its
path. The baseline is the fastest software that speaks TCP here, found by a short trial.
"""

import json
import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from beowire import installed, places
from beowire.bench import samples
from beowire.errors import BeowireError
from beowire.run import mpi, path
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Bind, Job, TcpStack, Transport
from beowire.run.mpi import Mpi

Mode = Literal["latency", "bandwidth", "rate"]

MODES: tuple[Mode, ...] = ("latency", "bandwidth", "rate")
SIZES: dict[Mode, str] = {"latency": "8,1k,64k", "bandwidth": "1m", "rate": "8"}
STACKS: tuple[TcpStack, ...] = ("native", "ofi", "ucx")
RUN_LIMIT_S = 300.0

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    modes: tuple[Mode, ...] = MODES
    sizes: str = ""
    """Message sizes with commas; empty: what suits each mode."""
    rounds: int = 5
    iterations: int = 0
    """Round trips or windows for each size; 0: the program's own choice."""
    window: int = 64
    bind: Bind = "core"
    mpi: Mpi = "openmpi"
    baseline: TcpStack | Literal["fastest"] = "fastest"


@dataclass(frozen=True)
class Figure:
    """One compared number: a mode at a size. Times for latency, else rates from windows."""

    mode: Mode
    size_bytes: int
    unit: str
    lower_is_better: bool
    tcp: dict[str, float]
    beowire: dict[str, float]
    ratio: samples.Ratio
    """Beowire's over TCP's, of the medians of rounds."""


@dataclass
class Report:
    """All figures and how they came about."""

    figures: list[Figure] = field(default_factory=list)
    baseline: dict[str, str] = field(default_factory=dict)
    """By mode, the software that spoke TCP."""
    commands: dict[str, str] = field(default_factory=dict)
    carried: dict[str, dict[str, int]] = field(default_factory=dict)
    """By transport, what the witnesses counted over all runs."""
    rounds: int = 0

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "order": "A B A B, A is TCP", "machine": machine()}


def machine() -> dict[str, Any]:
    """The machine as far as it explains a figure."""
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    }


def pingpong_job(plan: Plan, mode: Mode, transport: Transport, stack: TcpStack) -> Job:
    suffix = ".mpich" if mpi.find(plan.mpi).family == "mpich" else ""
    program = [str(places.example(f"pingpong{suffix}")), "--json", "-", "--mode", mode]
    program += ["--sizes", plan.sizes or SIZES[mode], "--window", str(plan.window)]
    if plan.iterations:
        program += ["--iters", str(plan.iterations)]
    return Job(program, 2, transport, mpi=plan.mpi, per_node=1, bind=plan.bind, tcp_stack=stack)


def run_pingpong(job: Job, cluster: Cluster) -> tuple[dict[str, Any], path.JobRecord]:
    """One proved run; the program's report and the record."""
    record, output = run_captured(job, cluster, RUN_LIMIT_S)
    report = json.loads(output)
    path.prove(record, between_nodes_bytes(report))
    return report, record


def between_nodes_bytes(report: dict[str, Any]) -> int:
    """What a ping-pong is known to have sent between its nodes, without its warm-up."""
    total = 0
    for result in report["results"]:
        trips = len(result["samples_ns"])
        if report["mode"] == "latency":
            messages = 2 * trips * int(result["batch"])
        else:
            messages = trips * int(report["window"])
        total += messages * int(result["size_bytes"])
    return total


def choose_stack(plan: Plan, mode: Mode, cluster: Cluster, progress: Progress) -> TcpStack:
    """The fastest software for TCP at this mode, by one short run of each that works."""
    if plan.baseline != "fastest":
        return plan.baseline
    if mpi.find(plan.mpi).family == "mpich":
        candidates: tuple[TcpStack, ...] = ("ofi", "ucx")
    else:
        candidates = STACKS
    times = {}
    complaint = ""
    for stack in candidates:
        progress(f"{mode}: trying TCP by {stack}")
        try:
            report, _ = run_pingpong(pingpong_job(plan, mode, "tcp", stack), cluster)
        except BeowireError as error:
            complaint = error.what
            continue
        times[stack] = sum(float(result["p50_ns"]) for result in report["results"])
    if not times:
        raise BeowireError(
            f"No software that speaks TCP works here. {complaint}",
            f"Try one by hand: {installed.COMMAND} run --lab NAME -n 2 --transport tcp -- PROGRAM",
        )
    return min(times, key=lambda stack: times[stack])


def compare(plan: Plan, cluster: Cluster, progress: Progress) -> Report:
    """Measures everything in the plan, rounds of TCP and Beowire in turn."""
    if len(cluster.hosts) < 2:
        raise BeowireError(
            f"A ping-pong needs two nodes; there is {cluster.hosts[0]} alone.",
            f"Give a lab of two nodes ({installed.COMMAND} lab up NAME --nodes 2), or two hosts.",
        )
    report = Report(rounds=plan.rounds)
    for mode in plan.modes:
        stack = choose_stack(plan, mode, cluster, progress)
        report.baseline[mode] = stack
        runs: dict[Transport, list[dict[str, Any]]] = {"tcp": [], "beowire": []}
        for number in range(1, plan.rounds + 1):
            for transport in runs:
                progress(f"{mode}: round {number} of {plan.rounds}, {transport}")
                job = pingpong_job(plan, mode, transport, stack)
                result, record = run_pingpong(job, cluster)
                runs[transport].append(result)
                report.commands[f"{mode} {transport}"] = record.command
                add_carried(report.carried, record)
        report.figures += figures(mode, runs["tcp"], runs["beowire"])
    return report


def add_carried(carried: dict[str, dict[str, int]], record: path.JobRecord) -> None:
    """Adds what the witnesses counted in one run to the sums of its transport."""
    sums = carried.setdefault(
        record.job.transport, {"payload_bytes": 0, "raw_bytes": 0, "tcp_bytes": 0}
    )
    sums["payload_bytes"] += record.payload_bytes
    sums["raw_bytes"] += record.raw_bytes
    sums["tcp_bytes"] += record.tcp_octets


def figures(mode: Mode, tcp: list[dict[str, Any]], beowire: list[dict[str, Any]]) -> list[Figure]:
    """The figures of one mode out of the reports of its rounds."""
    result = []
    for position, first in enumerate(tcp[0]["results"]):
        size_bytes = int(first["size_bytes"])
        window = int(tcp[0]["window"])
        rounds_tcp = [_samples(mode, size_bytes, window, each["results"][position]) for each in tcp]
        rounds_beowire = [
            _samples(mode, size_bytes, window, each["results"][position]) for each in beowire
        ]
        result.append(
            Figure(
                mode=mode,
                size_bytes=size_bytes,
                unit={"latency": "us", "bandwidth": "MB/s", "rate": "messages/s"}[mode],
                lower_is_better=mode == "latency",
                tcp=samples.percentiles([each for run in rounds_tcp for each in run]),
                beowire=samples.percentiles([each for run in rounds_beowire for each in run]),
                ratio=samples.ratio(
                    [samples.percentiles(run)["p50"] for run in rounds_beowire],
                    [samples.percentiles(run)["p50"] for run in rounds_tcp],
                ),
            )
        )
    return result


def medians(mode: Mode, report: dict[str, Any]) -> list[float]:
    """The median of each size in one run's report: us one way, MB/s or messages/s."""
    return [
        samples.percentiles(_samples(mode, int(each["size_bytes"]), int(report["window"]), each))[
            "p50"
        ]
        for each in report["results"]
    ]


def _samples(mode: Mode, size_bytes: int, window: int, result: dict[str, Any]) -> list[float]:
    """A run's samples in the figure's unit."""
    times_ns = [float(each) for each in result["samples_ns"]]
    if mode == "latency":
        return [each / 1e3 for each in times_ns]
    if mode == "rate":
        return [window * 1e9 / each for each in times_ns]
    return [window * size_bytes * 1e3 / each for each in times_ns]
