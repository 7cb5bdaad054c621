# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who carries the messages of a run: Beowire by one of its links, or what it is compared with.

Each run proves by counters who did. Between nodes Beowire is compared with all software here that
speaks TCP, within a node with the MPI library's own shared memory.
"""

import json
import os
from dataclasses import dataclass, replace
from typing import Any

from beowire import places
from beowire.bench.matrix.figures import FIGURES, Place
from beowire.bench.matrix.grid import Link, Series
from beowire.errors import BeowireError
from beowire.run import mpi, path, remote
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Bind, Job, TcpStack, Transport
from beowire.run.path import JobRecord

RUN_LIMIT_S = 900.0

_LINKS: dict[Link, tuple[str, tuple[str, ...]]] = {
    "raw": ("local,packet,udp", ("packet", "udp")),
    "udp": ("local,udp", ("udp",)),
    "local": ("local", ("local",)),
}
"""What Beowire may use, in BEOWIRE_LINKS, and whose counters bear witness: all of them together,
the first at least a little."""

_TCP: dict[mpi.Family, tuple[TcpStack, ...]] = {
    "openmpi": ("native", "ofi", "ucx"),
    "mpich": ("ofi", "ucx"),
}

_TOLD = {
    ("openmpi", "native"): "Open MPI's own TCP (btl tcp)",
    ("openmpi", "ofi"): "libfabric's TCP (tcp;ofi_rxm)",
    ("openmpi", "ucx"): "UCX over TCP",
    ("mpich", "ofi"): "libfabric's TCP",
    ("mpich", "ucx"): "UCX over TCP",
}


@dataclass(frozen=True)
class Stack:
    """One way of a run's messages."""

    name: str
    """A link of Beowire's, a stack of launch.TcpStack, or `memory`."""

    @property
    def link(self) -> Link | None:
        """Beowire's link; None: it is not Beowire."""
        return next((link for link in _LINKS if link == self.name), None)

    def __str__(self) -> str:
        return f"Beowire {self.name}" if self.link else self.name


def told_stack(family: mpi.Family, name: str) -> str:
    """What a stack of TCP is, in words."""
    return _TOLD[family, name]


def tcp_stacks(library: mpi.Mpi) -> tuple[TcpStack, ...]:
    """What may speak TCP for this MPI, where it is installed."""
    return _TCP[mpi.find(library).family]


@dataclass(frozen=True)
class Cores:
    """Of the nodes; ranks that share one wait for each other, and that is what is measured then."""

    count: int
    """Of each node, or of the machine that all nodes are."""
    shared: bool

    def suffice(self, place: Place, ranks: int) -> bool:
        """Whether each rank has one to itself."""
        return (ranks if self.shared or place == "within" else ranks // 2) <= self.count

    def bind(self, place: Place, ranks: int) -> Bind:
        """To cores only if each rank has one."""
        return "core" if self.suffice(place, ranks) else "none"

    @property
    def collective_ranks(self) -> int:
        """Several on each node if that is possible everywhere."""
        return 4 if self.suffice("within", 4) else 2


def cores_of(cluster: Cluster | None) -> Cores:
    """Asks the nodes; None: labs on this machine."""
    if cluster is None or cluster.shares_cores:
        return Cores(os.cpu_count() or 1, shared=True)
    told = remote.execute_everywhere(cluster, "nproc")
    return Cores(min(map(int, told.values())), shared=False)


def job_for(
    series: Series, stack: Stack, bind: Bind, measured: dict[str, list[int]], cell_ms: int
) -> Job:
    """The job that measures these sizes, by figure."""
    family = mpi.find(series.mpi).family
    suffix = ".mpich" if family == "mpich" else ""
    program = [str(places.example(f"matrix{suffix}")), "--cell-ms", str(cell_ms)]
    for figure, sizes in measured.items():
        program += ["--measure", f"{figure}:{','.join(map(str, sizes))}"]
    within = series.place == "within"
    environment = {}
    transport: Transport = "tcp"
    if stack.link is not None:
        transport = "beowire"
        environment["BEOWIRE_LINKS"] = _LINKS[stack.link][0]
        if within and family == "mpich":  # else it moves messages of one node itself
            environment["MPIR_CVAR_NOLOCAL"] = "1"
    elif within and family == "openmpi":
        transport = "memory"
    speaks_tcp = not (within or stack.link)
    return Job(
        program,
        series.ranks,
        transport,
        mpi=series.mpi,
        per_node=series.ranks if within else series.ranks // 2,
        bind=bind,
        tcp_stack=next(each for each in ("native", "ofi", "ucx") if each == stack.name)
        if speaks_tcp
        else "native",
        environment=environment,
    )


def run(job: Job, series: Series, stack: Stack, cluster: Cluster) -> list[dict[str, Any]]:
    """One proved run; what its program printed, line by line."""
    record, output = run_captured(job, cluster, RUN_LIMIT_S)
    results = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    prove(record, series.place, stack, results)
    return results


def prove(record: JobRecord, place: Place, stack: Stack, results: list[dict[str, Any]]) -> None:
    """Fails unless the stack carried what these results are known to have moved."""
    moved = sum(FIGURES[each["figure"]].moved_bytes(each, place) for each in results)
    if place == "within":
        if stack.link is None:  # MPICH's memory is no transport of its own: nothing else may carry
            record = replace(record, job=replace(record.job, transport="memory"))
        path.prove(record, local_bytes=moved)
    else:
        path.prove(record, moved)
    if stack.link is None:
        return
    witnesses = _LINKS[stack.link][1]
    carried = [record.sum("rx_payload", each) for each in witnesses]
    if sum(carried) < moved or not carried[0]:
        told = ", ".join(f"`{name}` {n:,}" for name, n in zip(witnesses, carried, strict=True))
        raise BeowireError(
            f"Of {moved:,} bytes sent Beowire's links carried: {told}.",
            f"It was started by: {record.command}",
            code=4,
        )
