# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The order of runs: series by series, round by round, all stacks in turn (A B C A B C).

A round counts when all of its stacks have been measured, and is kept at once; a round that was
interrupted is measured anew, since a ratio is one of runs that follow one another.
"""

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from beowire.bench.matrix.figures import FIGURES
from beowire.bench.matrix.grid import Grid, Key, Series
from beowire.bench.matrix.pace import Pace
from beowire.bench.matrix.stacks import Stack
from beowire.bench.matrix.store import Store
from beowire.run.cluster import Cluster

Places = Callable[[int], contextlib.AbstractContextManager[Cluster]]
"""Gives the nodes whose MTU is this."""
Runner = Callable[[Series, Stack, dict[str, list[int]], Cluster], list[dict[str, Any]]]
"""Measures sizes by figure over a stack."""

MEMORY = Stack("memory")


def missing_of(series: Series, store: Store, rounds: int) -> list[Key]:
    """The cells that lack at least this many rounds fewer than wanted."""
    return [key for key in series.wanted() if store.missing_rounds(key, rounds)]


def sizes_of(keys: list[Key], link: str | None) -> dict[str, list[int]]:
    """Sizes by figure, of the cells of one link, or of all."""
    found: dict[str, dict[int, None]] = defaultdict(dict)
    for key in keys:
        if link in (None, key.link):
            found[key.figure][key.bytes] = None
    return {figure: list(sizes) for figure, sizes in found.items()}


def stacks_of(series: Series, tcp: dict[str, list[Stack]]) -> list[Stack]:
    """All that take turns, what Beowire is compared with first."""
    others = [MEMORY] if series.place == "within" else tcp[series.mpi]
    return [*others, *(Stack(link) for link in series.links)]


def steps(
    grid: Grid, store: Store, tcp: dict[str, list[Stack]]
) -> Iterator[tuple[Series, int, Stack, dict[str, list[int]]]]:
    """Every run that is left: its series, its round from 1, its stack, and sizes by figure."""
    for series in grid.series():
        for number in range(1, grid.rounds + 1):
            keys = [
                key
                for key in series.wanted()
                if store.missing_rounds(key, grid.rounds) > grid.rounds - number
            ]
            for stack in stacks_of(series, tcp) if keys else []:
                if measured := sizes_of(keys, stack.link):
                    yield series, number, stack, measured


def sweep(
    grid: Grid,
    store: Store,
    tcp: dict[str, list[Stack]],
    where: Places,
    run: Runner,
    pace: Pace,
) -> None:
    """Measures what the store lacks."""
    for mtu in grid.mtus:
        waiting = [
            series
            for series in grid.series()
            if series.mtu == mtu and missing_of(series, store, grid.rounds)
        ]
        if not waiting:
            continue
        with where(mtu) as cluster:
            for series in waiting:
                _series(grid, series, store, stacks_of(series, tcp), cluster, run, pace)


def _series(
    grid: Grid,
    series: Series,
    store: Store,
    turns: list[Stack],
    cluster: Cluster,
    run: Runner,
    pace: Pace,
) -> None:
    for number in range(1, grid.rounds + 1):
        left = grid.rounds - number
        keys = [key for key in series.wanted() if store.missing_rounds(key, grid.rounds) > left]
        found: dict[Stack, dict[tuple[str, int], float]] = {}
        for stack in turns:
            if not (measured := sizes_of(keys, stack.link)):
                continue
            pace.begin(f"{series}: round {number} of {grid.rounds}, {stack}")
            results = run(series, stack, measured, cluster)
            found[stack] = {
                (each["figure"], each["bytes"]): FIGURES[each["figure"]].of(each)
                for each in results
            }
        for key in keys:
            what = (key.figure, key.bytes)
            others = {stack.name: row[what] for stack, row in found.items() if not stack.link}
            store.add(key, found[Stack(key.link)][what], others)
        if keys:
            store.save()
