# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measures what a store lacks of a grid, and tells how far it has come."""

import contextlib
from typing import Any

from beowire.bench.matrix import available, measure, pace, stacks
from beowire.bench.matrix.grid import Grid, Series
from beowire.bench.matrix.nodes import Nodes
from beowire.bench.matrix.stacks import Stack
from beowire.bench.matrix.store import Store
from beowire.progress import Progress
from beowire.run.cluster import Cluster
from beowire.terminal import note


def fill(
    grid: Grid,
    where: Nodes,
    store: Store,
    cores: stacks.Cores,
    shown: Progress | None = None,
) -> None:
    """Runs what is missing. `shown`: a progress that is told already, and gets these runs as
    further steps; None: one of its own. Raises BeowireError if a run fails or proves another
    path."""
    if not any(store.missing_rounds(key, grid.rounds) for key in grid.wanted()):
        note(f"all {len(grid.wanted())} cells stand in {store.path} already")
        return
    with where.of_mtu(grid.mtus[0]) as cluster:
        tcp = available.working(grid, store, cluster, note)
    for each in store.missing:
        note(f"missing: {told_missing(each)}")
    if dropped := available.forget_others(grid, store, tcp):
        note(f"{len(dropped)} cells are measured anew: other stacks speak TCP now")
    runs = list(measure.steps(grid, store, tcp))
    planned_s = [pace.job_s(grid.cell_ms, measured) for *_, measured in runs]
    note(
        f"{len(grid.wanted())} cells, {len(runs)} runs to do: about "
        f"{pace.told(sum(planned_s))} on an idle machine"
    )

    def run_one(
        series: Series, stack: Stack, measured: dict[str, list[int]], cluster: Cluster
    ) -> list[dict[str, Any]]:
        bind = cores.bind(series.place, series.ranks)
        job = stacks.job_for(series, stack, bind, measured, grid.cell_ms)
        return stacks.run(job, series, stack, cluster)

    if shown is None:
        showing: contextlib.AbstractContextManager[Progress] = Progress(len(runs)).shown()
    else:
        shown.steps += len(runs)
        showing = contextlib.nullcontext(shown)
    with showing as progress:
        measure.sweep(grid, store, tcp, where.of_mtu, run_one, pace.Pace(progress, planned_s))


def told_missing(each: dict[str, str]) -> str:
    """What could not be measured, and why, in a line."""
    what = " ".join(filter(None, (each["mpi"], each["stack"])))
    return f"{what}: {each['why']}"
