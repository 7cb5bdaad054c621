# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A list schedule of a task graph on N equal nodes, with communication.

Tasks are taken by the longest way from them to the end, communication included, and each is put
where it ends earliest, also into a gap: HEFT (Topcuoglu, Hariri and Wu, 2002) on equal nodes. An
edge's cost is paid where its tasks run on different nodes; nodes send while they compute. The
schedule is a good one, not the best: finding that is hard. As communication may make many nodes
slower than few, fewer are tried too.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from networkx import DiGraph


@dataclass(frozen=True)
class Slot:
    """A task in its place; times in the unit of the costs."""

    task: str
    node: int
    """From 1."""
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """All tasks in their places."""

    nodes: int
    """That were to be had."""
    slots: list[Slot]
    """In the order of their starts."""
    time: float
    """Until the last task ends."""
    used: int
    """Nodes that have a task."""
    communication: float
    """All edges that were paid, added up."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def schedule(graph: "DiGraph[str]", nodes: int, factor: float = 1.0) -> Schedule:
    """The fastest list schedule found on at most so many nodes; edges cost `factor` times what they
    say."""
    order = _order(graph, factor)
    least = min(nodes, len(graph))
    counts = sorted({1 << power for power in range(least.bit_length())} | {least})
    tried = [_placed(graph, order, count, factor) for count in counts if count <= least]
    slots = min(tried, key=_end)
    where = {slot.task: slot.node for slot in slots}
    paid = sum(
        factor * cost for tail, head, cost in graph.edges(data="cost") if where[tail] != where[head]
    )
    slots.sort(key=lambda slot: (slot.start, slot.node))
    return Schedule(nodes, slots, _end(slots), len(set(where.values())), paid)


def _end(slots: list[Slot]) -> float:
    return max(slot.end for slot in slots)


def _order(graph: "DiGraph[str]", factor: float) -> list[str]:
    """Tasks, those first from which the way to the end is longest; a predecessor is never later."""
    import networkx as nx

    topological = list(nx.topological_sort(graph))
    rank: dict[str, float] = {}
    for task in reversed(topological):
        after = [factor * graph.edges[task, each]["cost"] + rank[each] for each in graph[task]]
        rank[task] = graph.nodes[task]["cost"] + max(after, default=0.0)
    place = {task: number for number, task in enumerate(topological)}
    return sorted(topological, key=lambda task: (-rank[task], place[task]))


def _placed(graph: "DiGraph[str]", order: list[str], nodes: int, factor: float) -> list[Slot]:
    """Each task where it ends earliest."""
    busy: list[list[Slot]] = [[] for _ in range(nodes)]
    done: dict[str, Slot] = {}
    for task in order:
        cost = graph.nodes[task]["cost"]
        best: Slot | None = None
        for node, slots in enumerate(busy, 1):
            ready = max(
                (
                    done[each].end
                    + (factor * graph.edges[each, task]["cost"] if done[each].node != node else 0)
                    for each in graph.pred[task]
                ),
                default=0.0,
            )
            start = _gap(slots, ready, cost)
            if best is None or start + cost < best.end:
                best = Slot(task, node, start, start + cost)
        assert best is not None
        done[task] = best
        slots = busy[best.node - 1]
        slots.append(best)
        slots.sort(key=lambda slot: (slot.start, slot.end))
    return list(done.values())


def _gap(slots: list[Slot], ready: float, cost: float) -> float:
    """The earliest start, not before `ready`, of something so long between these."""
    start = ready
    for slot in slots:
        if start + cost <= slot.start:
            break
        start = max(start, slot.end)
    return start
