# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Task graphs from JSON or DOT, checked: every edge joins tasks that are there, every cost is a
time, nothing waits for itself. All that is wrong is named at once.

JSON: {"tasks": {"NAME": COST, ...}, "edges": [["FROM", "TO", COST], ...]}; tasks may also be a list
of {"name", "cost"}, edges of {"from", "to", "cost"}. DOT: the attribute `cost` of nodes and edges;
an edge without one costs nothing. Costs are times in one unit; that of an edge is paid if its two
tasks run on different nodes.
"""

import contextlib
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beowire.errors import BeowireError

if TYPE_CHECKING:
    from networkx import DiGraph

_SHOWN = 20
_JSON_FORM = '{"tasks": {"a": 3, "b": 2}, "edges": [["a", "b", 0.5]]}'


class _Draft:
    """A graph as it is read, with what is wrong."""

    def __init__(self) -> None:
        self.tasks: dict[str, float] = {}
        self.edges: dict[tuple[str, str], float] = {}
        self.wrong: list[str] = []

    def task(self, name: str, cost: Any) -> None:
        if name in self.tasks:
            self.wrong.append(f"task {name} is there twice")
            return
        self.tasks[name] = self.cost(f"task {name}", cost)

    def edge(self, tail: str, head: str, cost: Any) -> None:
        told = f"edge {tail} -> {head}"
        if (tail, head) in self.edges:
            self.wrong.append(f"{told} is there twice")
            return
        self.edges[tail, head] = self.cost(told, 0 if cost is None else cost)

    def cost(self, what: str, cost: Any) -> float:
        """The cost as a number; what is wrong with it is noted."""
        if cost is None:
            self.wrong.append(f"{what} has no cost")
            return 0.0
        try:
            if isinstance(cost, bool) or not isinstance(cost, str | int | float):
                raise ValueError
            value = float(cost)
        except (ValueError, OverflowError):
            self.wrong.append(f"{what}: cost {cost!r} is no number")
            return 0.0
        if not math.isfinite(value) or value < 0:
            self.wrong.append(f"{what}: cost {value:g} is no time")
            return 0.0
        return value


def read(file: Path) -> "DiGraph[str]":
    """The graph; nodes and edges have the attribute `cost`."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise BeowireError(f"{file} cannot be read: {why}.", "Name a JSON or DOT file.") from error
    draft = _Draft()
    if text.lstrip().startswith("{"):
        _read_json(file, text, draft)
    else:
        _read_dot(file, text, draft)
    return _checked(file, draft)


def _read_json(file: Path, text: str, draft: _Draft) -> None:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        draft.wrong.extend(
            f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1
        )
        return dict(pairs)

    try:
        whole = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise BeowireError(
            f"{file}, line {error.lineno}: no JSON: {error.msg}.", "Fix it there."
        ) from error
    tasks, edges = whole.get("tasks"), whole.get("edges", [])
    if not isinstance(tasks, dict | list) or not isinstance(edges, list):
        raise BeowireError(f"{file} is no task graph.", f"Write it as {_JSON_FORM}.")
    for number, task in enumerate(tasks.items() if isinstance(tasks, dict) else tasks, 1):
        if isinstance(task, dict) and "name" in task:
            task = (task["name"], task.get("cost"))
        if not isinstance(task, tuple):
            draft.wrong.append(f"task {number} has no name")
            continue
        draft.task(str(task[0]), task[1])
    for number, edge in enumerate(edges, 1):
        if isinstance(edge, dict):
            edge = [edge.get("from"), edge.get("to"), edge.get("cost")]
        if not isinstance(edge, list) or not 2 <= len(edge) <= 3 or None in edge[:2]:
            draft.wrong.append(f"edge {number} does not name two tasks")
            continue
        draft.edge(str(edge[0]), str(edge[1]), edge[2] if len(edge) > 2 else None)


def _read_dot(file: Path, text: str, draft: _Draft) -> None:
    import pydot

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        graphs = pydot.graph_from_dot_data(text)
    if not graphs:
        why = " ".join(line for line in said.getvalue().splitlines() if line.strip())[-200:]
        raise BeowireError(
            f"{file} is neither JSON nor DOT{': ' if why else ''}{why}.",
            "Begin a DOT file with digraph NAME {, a JSON file with {.",
        )
    if len(graphs) > 1 or graphs[0].get_type() != "digraph":
        raise BeowireError(
            f"{file} is not one directed graph.", "Write one digraph NAME { a -> b; }."
        )
    _walk_dot(graphs[0], draft, {}, {})


def _walk_dot(graph: Any, draft: _Draft, task: dict[str, Any], edge: dict[str, Any]) -> None:
    """Nodes and edges of a graph and its subgraphs; defaults hold for what is inside."""
    for node in graph.get_nodes():
        if node.get_name() == "node":
            task = task | node.get_attributes()
        if node.get_name() == "edge":
            edge = edge | node.get_attributes()
    for node in graph.get_nodes():
        name = node.get_name()
        if name in ("node", "edge", "graph") or not name.strip('"').strip("\\n"):
            continue
        draft.task(_plain(name), _plain((task | node.get_attributes()).get("cost")))
    for each in graph.get_edges():
        ends = each.get_source(), each.get_destination()
        if not all(isinstance(end, str) for end in ends):
            draft.wrong.append("an edge from or to a whole subgraph is not understood")
            continue
        tail, head = (_plain(end if end.startswith('"') else end.split(":")[0]) for end in ends)
        if "cost" in task:
            for name in (tail, head):
                draft.tasks.setdefault(name, draft.cost(f"task {name}", _plain(task["cost"])))
        draft.edge(tail, head, _plain((edge | each.get_attributes()).get("cost")))
    for inner in graph.get_subgraphs():
        _walk_dot(inner, draft, task, edge)


def _plain(word: Any) -> Any:
    """Without the quotes that DOT may have."""
    if isinstance(word, str) and len(word) > 1 and word[0] == word[-1] == '"':
        return word[1:-1]
    return word


def _checked(file: Path, draft: _Draft) -> "DiGraph[str]":
    import networkx as nx

    wrong = list(draft.wrong)
    for tail, head in draft.edges:
        wrong += [
            f"edge {tail} -> {head}: there is no task {name}"
            for name in dict.fromkeys((tail, head))
            if name not in draft.tasks
        ]
    graph: DiGraph[str] = nx.DiGraph()
    for name, cost in draft.tasks.items():
        graph.add_node(name, cost=cost)
    for (tail, head), cost in draft.edges.items():
        if tail in graph and head in graph:
            graph.add_edge(tail, head, cost=cost)
    with contextlib.suppress(nx.NetworkXNoCycle):
        cycle = [tail for tail, _ in nx.find_cycle(graph)]
        wrong.append(f"these tasks wait for one another: {' -> '.join([*cycle, cycle[0]])}")
    if not wrong and not sum(draft.tasks.values()):
        wrong.append("there is no task with a cost" if draft.tasks else "there is no task")
    if wrong:
        shown = "\n  ".join(wrong[:_SHOWN])
        more = f"\n  and others: {len(wrong) - _SHOWN}" if len(wrong) > _SHOWN else ""
        raise BeowireError(
            f"{file}: errors: {len(wrong)}.\n  {shown}{more}",
            "A task needs a cost, at least 0, an edge two tasks, and no task may wait for itself.",
        )
    return graph
