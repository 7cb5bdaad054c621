# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stands for the runs of `beowire bench matrix`: nothing is started, every stack has its
time."""

import contextlib
from collections.abc import Iterator
from typing import Any, ClassVar

from beowire.bench.matrix import measure
from beowire.bench.matrix.grid import Grid, Series
from beowire.bench.matrix.pace import Pace
from beowire.bench.matrix.stacks import Stack
from beowire.bench.matrix.store import Store
from beowire.progress import Progress
from beowire.run.cluster import Cluster

GRID = Grid(
    figures=("latency", "rate", "allreduce"),
    sizes=(8, 4096),
    links=("raw", "udp", "local"),
    mtus=(1500, 9000),
    mpis=("openmpi",),
    rounds=3,
    cell_ms=1,
    collective_ranks=4,
)
TCP = {"openmpi": [Stack("native"), Stack("ucx")]}
SETTING = {"nodes": "none", "cell_ms": 1}
WHERE = Cluster(["node1", "node2"], ["ssh"])


class Runs:
    """Stands for the runs: every stack has a time of its own, and each round one."""

    NS: ClassVar = {"native": 4000.0, "ucx": 3000.0, "memory": 1000.0, "raw": 1500.0, "udp": 6000.0}

    def __init__(self, interrupted_at: int = 0) -> None:
        self.made: list[tuple[Series, str, dict[str, list[int]]]] = []
        self.mtus: list[int] = []
        self.interrupted_at = interrupted_at

    @contextlib.contextmanager
    def where(self, mtu: int) -> Iterator[Cluster]:
        self.mtus.append(mtu)
        yield WHERE

    def run(
        self, series: Series, stack: Stack, measured: dict[str, list[int]], cluster: Cluster
    ) -> list[dict[str, Any]]:
        assert cluster is WHERE
        self.made.append((series, stack.name, measured))
        if len(self.made) == self.interrupted_at:
            raise KeyboardInterrupt
        ns = self.NS.get(stack.name, 500.0)
        return [
            {"figure": figure, "bytes": size, "ranks": 2, "window": 64, "p50_ns": ns, "units": 1}
            for figure, sizes in measured.items()
            for size in sizes
        ]

    def sweep(self, grid: Grid, store: Store) -> None:
        measure.sweep(grid, store, TCP, self.where, self.run, Pace(Progress(1), []))

    @property
    def stacks(self) -> list[str]:
        return [name for _, name, _ in self.made]
