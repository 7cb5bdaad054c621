# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tiered parallel form of a task graph [A13], and how much faster it can get.

A tier holds the tasks whose longest chain of predecessors is equally long (in tasks): those of one
tier can run at the same time, tier after tier. The longest path by cost bounds the parallel time on
any number of nodes, communication left out.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from networkx import DiGraph

_CLOSURE_MOST = 1000
"""Tasks up to which the largest set of independent tasks is sought."""


@dataclass(frozen=True)
class Tiers:
    """What the form of a graph tells; times in the unit of its costs."""

    tiers: list[list[str]]
    width: int
    """Tasks of the largest tier."""
    independent: int | None
    """Of the largest set of tasks none of which waits for another; at least the width. None: the
    graph is too large to look for it."""
    total: float
    """All costs: the time on one node."""
    path: list[str]
    """The critical path."""
    path_time: float
    lockstep: float
    """The time if each tier waits for the whole of the one before it, on nodes without limit."""

    def bound(self, nodes: int) -> float:
        """No schedule on so many nodes is faster than one node by more than this."""
        return min(float(nodes), self.total / self.path_time)

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"speedup_bound": self.total / self.path_time}


def tiers(graph: "DiGraph[str]") -> Tiers:
    """The form of an acyclic graph whose nodes have costs."""
    import networkx as nx

    costs: dict[str, float] = dict(graph.nodes(data="cost"))
    rows = [list(each) for each in nx.topological_generations(graph)]
    path = _longest(graph)
    return Tiers(
        tiers=rows,
        width=max(map(len, rows)),
        independent=_independent(graph),
        total=sum(costs.values()),
        path=path,
        path_time=sum(costs[each] for each in path),
        lockstep=sum(max(costs[each] for each in row) for row in rows),
    )


def _longest(graph: "DiGraph[str]") -> list[str]:
    """The path whose tasks cost most together: each edge weighs what its end costs."""
    import networkx as nx

    start = object()
    weighted: DiGraph[Any] = nx.DiGraph()
    weighted.add_edges_from(
        (tail, head, {"weight": graph.nodes[head]["cost"]}) for tail, head in graph.edges
    )
    weighted.add_edges_from(
        (start, each, {"weight": graph.nodes[each]["cost"]})
        for each in graph
        if not graph.in_degree(each)
    )
    return [str(each) for each in nx.dag_longest_path(weighted, weight="weight") if each != start]


def _independent(graph: "DiGraph[str]") -> int | None:
    """By Dilworth's theorem as many as the fewest chains that hold all tasks, and those are the
    tasks less a largest matching of tasks with later ones."""
    import networkx as nx

    if len(graph) > _CLOSURE_MOST:
        return None
    halves: Any = nx.Graph()
    halves.add_nodes_from(("before", each) for each in graph)
    closure = nx.transitive_closure_dag(graph)
    halves.add_edges_from((("before", tail), ("after", head)) for tail, head in closure.edges)
    top = [("before", each) for each in graph]
    matched = nx.bipartite.hopcroft_karp_matching(halves, top)
    return len(graph) - sum(1 for side, _ in matched if side == "before")
