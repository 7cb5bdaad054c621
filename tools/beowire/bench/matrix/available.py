# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What of a grid can be measured here: which MPIs there are, and which software speaks TCP.

What is missing is named, in the store and so in its file, and never left out in silence.
"""

from collections.abc import Callable
from dataclasses import replace

from beowire import installed, places
from beowire.bench.matrix import stacks
from beowire.bench.matrix.grid import Grid, Key, Series
from beowire.bench.matrix.measure import stacks_of
from beowire.bench.matrix.stacks import Stack
from beowire.bench.matrix.store import Store
from beowire.errors import BeowireError
from beowire.run import mpi
from beowire.run.cluster import Cluster


def usable(grid: Grid, store: Store, *, strict: bool) -> Grid:
    """The grid without MPIs that are not here, which the store names; an error if `strict`."""
    found = []
    for name in grid.mpis:
        try:
            suffix = ".mpich" if mpi.find(name).family == "mpich" else ""
            places.example(f"matrix{suffix}")
            mpi.find(name).check_libfabric()
        except BeowireError as error:
            if strict or len(grid.mpis) == 1:
                raise
            store.missing.append({"mpi": name, "stack": "", "why": error.what})
            continue
        found.append(name)
    if not found:
        raise BeowireError(
            f"No MPI of {', '.join(grid.mpis)} can be measured: {store.missing[0]['why']}",
            "Install one: apt-get install openmpi-bin libopenmpi-dev",
        )
    return replace(grid, mpis=tuple(found))


def working(
    grid: Grid, store: Store, cluster: Cluster, tell: Callable[[str], None]
) -> dict[str, list[Stack]]:
    """By MPI, the software that speaks TCP between these nodes, each tried once; what does not is
    named in the store."""
    found: dict[str, list[Stack]] = {}
    for name in grid.mpis if {"raw", "udp"} & set(grid.links) else ():
        family = mpi.find(name).family
        series = Series(name, 0, "between", 2, ("latency",), (8,), ())
        found[name] = []
        for stack in map(Stack, stacks.tcp_stacks(name)):
            tell(f"{name}: trying {stacks.told_stack(family, stack.name)}")
            job = stacks.job_for(series, stack, "none", {"latency": [8]}, 1)
            try:
                stacks.run(job, series, stack, cluster)
            except BeowireError as error:
                why = next((line for line in reversed(error.what.splitlines()) if line.strip()), "")
                store.missing.append({"mpi": name, "stack": stack.name, "why": why.strip()})
                continue
            found[name].append(stack)
        if not found[name]:
            raise BeowireError(
                f"No software that speaks TCP works with {name} here. {store.missing[-1]['why']}",
                f"Try one: {installed.COMMAND} run --lab NAME -n 2 --transport tcp -- PROGRAM",
            )
    return found


def forget_others(grid: Grid, store: Store, tcp: dict[str, list[Stack]]) -> list[Key]:
    """Drops cells of the grid that were compared with other stacks than work here now."""
    dropped = []
    for series in grid.series():
        names = {stack.name for stack in stacks_of(series, tcp) if not stack.link}
        for key in series.wanted():
            if key in store.cells and set(store.cells[key].others) != names:
                del store.cells[key]
                dropped.append(key)
    return dropped
