# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire model graph` [A13]: tiers, critical path and schedules of task graphs, and what is wrong
with those that are none."""

import json
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from beowire.errors import BeowireError
from beowire.model import figures, graph_file, graph_plot, law
from beowire.model.graph import tiers
from beowire.model.schedule import Schedule, schedule
from beowire_cli import beowire
from hypothesis import given
from hypothesis import strategies as some

FORK = {
    "tasks": {"read": 2, "f1": 4, "f2": 5, "f3": 3, "join": 1, "log": 1},
    "edges": [
        *(["read", each, 1] for each in ("f1", "f2", "f3")),
        *([each, "join", 0.5] for each in ("f1", "f2", "f3")),
        ["read", "log", 0],
    ],
}
DOT = """digraph g {
    node [cost=2]
    a -> b -> d [cost=1]
    c [cost="3.5"]
    a -> c -> d
    subgraph inner { node [cost=7]; x -> "odd name" }
}
"""


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def fork(tmp_path: Path) -> "nx.DiGraph[str]":
    return graph_file.read(written(tmp_path / "fork.json", FORK))


@some.composite
def graphs(draw: some.DrawFn) -> "nx.DiGraph[str]":
    """Edges lead from earlier to later tasks, so that there is no cycle."""
    costs = draw(some.lists(some.integers(1, 9), min_size=1, max_size=12))
    graph: nx.DiGraph[str] = nx.DiGraph()
    for number, cost in enumerate(costs):
        graph.add_node(f"t{number}", cost=float(cost))
    for head in range(1, len(costs)):
        for tail in draw(some.sets(some.integers(0, head - 1), max_size=3)):
            graph.add_edge(f"t{tail}", f"t{head}", cost=float(draw(some.integers(0, 5))))
    return graph


def check(graph: "nx.DiGraph[str]", found: Schedule, factor: float = 1) -> None:
    """Every task once, after its predecessors and their messages, one at a time on a node."""
    slots = {slot.task: slot for slot in found.slots}
    assert len(slots) == len(found.slots) == len(graph)
    for task, cost in graph.nodes(data="cost"):
        assert slots[task].end == slots[task].start + cost
        assert 1 <= slots[task].node <= found.nodes
    for tail, head, cost in graph.edges(data="cost"):
        paid = factor * cost if slots[tail].node != slots[head].node else 0
        assert slots[head].start >= slots[tail].end + paid
    for node in range(1, found.nodes + 1):
        own = sorted((s for s in found.slots if s.node == node), key=lambda s: (s.start, s.end))
        assert all(one.end <= other.start for one, other in pairwise(own))
    assert found.time == max(slot.end for slot in found.slots)


# --- the form ---


def test_tiers_and_the_critical_path(fork: "nx.DiGraph[str]") -> None:
    form = tiers(fork)
    assert [sorted(row) for row in form.tiers] == [["read"], ["f1", "f2", "f3", "log"], ["join"]]
    assert form.width == 4
    assert form.path == ["read", "f2", "join"]
    assert (form.total, form.path_time, form.lockstep) == (16, 8, 8)
    assert (form.bound(1), form.bound(2), form.bound(99)) == (1, 2, 2)


def test_independent_tasks_may_be_more_than_a_tier_has(tmp_path: Path) -> None:
    chain = {"tasks": {"a": 1, "b": 1, "c": 1}, "edges": [["a", "b"]]}
    form = tiers(graph_file.read(written(tmp_path / "g", chain)))
    assert (form.width, form.independent) == (2, 2)
    late = {"tasks": dict.fromkeys("abxyz", 1), "edges": [["a", "b"], ["x", "y"], ["x", "z"]]}
    form = tiers(graph_file.read(written(tmp_path / "g", late)))
    assert (form.width, form.independent) == (3, 3)
    hidden = {"tasks": dict.fromkeys("abcd", 1), "edges": [["a", "b"], ["a", "c"]]}
    form = tiers(graph_file.read(written(tmp_path / "g", hidden)))
    assert (form.width, form.independent) == (2, 3)


@given(graphs())
def test_a_form_holds_what_it_promises(graph: "nx.DiGraph[str]") -> None:
    form = tiers(graph)
    tier = {task: number for number, row in enumerate(form.tiers) for task in row}
    assert len(tier) == len(graph)
    assert all(tier[tail] < tier[head] for tail, head in graph.edges)
    assert all(graph.has_edge(*step) for step in pairwise(form.path))
    costs = nx.get_node_attributes(graph, "cost")
    assert form.path_time == sum(costs[task] for task in form.path)
    ends: dict[str, float] = {}
    for task in nx.topological_sort(graph):
        ends[task] = costs[task] + max((ends[each] for each in graph.pred[task]), default=0)
    assert form.path_time == max(ends.values())
    assert form.path_time <= form.lockstep <= form.total
    assert form.independent is not None
    assert form.width <= form.independent <= len(graph)


# --- schedules ---


@given(graphs(), some.integers(1, 6), some.sampled_from([0.0, 0.5, 1.0, 10.0]))
def test_schedules_are_possible_and_within_the_bound(
    graph: "nx.DiGraph[str]", nodes: int, factor: float
) -> None:
    found = schedule(graph, nodes, factor)
    check(graph, found, factor)
    form = tiers(graph)
    assert form.total / found.time <= form.bound(nodes) + 1e-9
    assert found.time <= form.total  # never slower than one node


def test_a_schedule_pays_for_communication(fork: "nx.DiGraph[str]") -> None:
    assert schedule(fork, 1).time == 16
    free = schedule(fork, 3, 0)
    assert (free.time, free.communication) == (8, 0)
    paid = schedule(fork, 3)
    # f2 stays with read; the others wait for 1, and join for 0.5 after the later of both.
    assert 8 < paid.time <= 9
    assert paid.communication > 0


def test_dear_communication_leaves_nodes_unused(fork: "nx.DiGraph[str]") -> None:
    found = schedule(fork, 4, 1000)
    assert found.time <= 16
    assert found.used <= 2  # log's edge costs nothing


# --- files ---


def test_dot_is_read(tmp_path: Path) -> None:
    graph = graph_file.read(written(tmp_path / "g.dot", DOT))
    assert dict(graph.nodes(data="cost")) == {
        "a": 2,
        "b": 2,
        "c": 3.5,
        "d": 2,
        "x": 7,
        "odd name": 7,
    }
    assert graph.edges["a", "b"]["cost"] == graph.edges["b", "d"]["cost"] == 1
    assert graph.edges["a", "c"]["cost"] == 0
    assert graph.has_edge("x", "odd name")


def test_json_as_lists_of_objects_is_read(tmp_path: Path) -> None:
    tasks = [{"name": "a", "cost": 1}, {"name": "b", "cost": "2.5"}]
    edges = [{"from": "a", "to": "b", "cost": 3}]
    graph = graph_file.read(written(tmp_path / "g", {"tasks": tasks, "edges": edges}))
    assert graph.nodes["b"]["cost"] == 2.5
    assert graph.edges["a", "b"]["cost"] == 3


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ({"tasks": {"a": 1, "b": 1}, "edges": [["a", "b"], ["b", "a"]]}, "a -> b -> a"),
        ({"tasks": {"a": 1}, "edges": [["a", "a"]]}, "wait for one another: a -> a"),
        ({"tasks": {"a": -1, "b": 2}}, "task a: cost -1 is no time"),
        ({"tasks": {"a": 1, "b": 2}, "edges": [["a", "b", -3]]}, "edge a -> b: cost -3"),
        ('{"tasks": {"a": NaN, "b": 2}}', "task a: cost nan"),
        ({"tasks": {"a": "dear", "b": 1}}, "cost 'dear' is no number"),
        ({"tasks": {"a": 1}, "edges": [["a", "z"]]}, "edge a -> z: there is no task z"),
        ({"tasks": {"a": 1, "b": 2}, "edges": [["a", "b"], ["a", "b", 1]]}, "a -> b is there twi"),
        ({"tasks": [{"name": "a", "cost": 1}, {"name": "a", "cost": 2}]}, "task a is there twice"),
        ('{"tasks": {"a": 1, "a": 2}}', "a is there twice"),
        ({"tasks": [{"cost": 1}]}, "task 1 has no name"),
        ({"tasks": {"a": 1}, "edges": [["a"]]}, "edge 1 does not name two tasks"),
        ({"tasks": {}}, "there is no task"),
        ({"tasks": {"a": 0}}, "no task with a cost"),
        ({"jobs": {}}, "is no task graph"),
        ('{"tasks": {"a": 1,\n}', "line 2: no JSON"),
        ("digraph { a -> b }", "there is no task a"),
        ("digraph { a [color=red]; b [cost=1]; a -> b }", "task a has no cost"),
        ("graph { a -- b }", "is not one directed graph"),
        ("digraph { a -> ", "neither JSON nor DOT"),
        ("", "neither JSON nor DOT"),
    ],
)
def test_what_is_no_task_graph_is_named(tmp_path: Path, content: object, what: str) -> None:
    with pytest.raises(BeowireError) as caught:
        graph_file.read(written(tmp_path / "g", content))
    assert what in str(caught.value)


def test_everything_wrong_is_named_at_once(tmp_path: Path) -> None:
    wrong = {"tasks": {"a": 1, "b": -2}, "edges": [["a", "b"], ["b", "a"], ["a", "zz"]]}
    done = beowire("model", "graph", str(written(tmp_path / "g", wrong)))
    assert done.status == 1
    for text in ("errors: 3", "task b: cost -2", "no task zz", "wait for one another"):
        assert text in done.errors


# --- the command and the drawings ---


def test_the_command_tells_and_writes_and_draws(tmp_path: Path) -> None:
    told, drawn = tmp_path / "told.json", tmp_path / "fork.svg"
    file = written(tmp_path / "fork.json", FORK)
    words = ["--nodes", "1-3", "--json", str(told), "--plot", str(drawn)]
    done = beowire("model", "graph", str(file), *words)
    assert done.status == 0, done.errors
    assert "Critical path: read -> f2 -> join, 8 of 16 in all." in done.output
    whole = json.loads(told.read_text())
    assert whole["speedup_bound"] == 2
    assert [each["nodes"] for each in whole["schedules"]] == [1, 2, 3]
    assert b"<svg" in drawn.read_bytes()


def test_a_large_graph_is_drawn_too(tmp_path: Path) -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    for number in range(1200):
        graph.add_node(str(number), cost=1.0)
        if number >= 100:
            graph.add_edge(str(number - 100), str(number), cost=0.1)
    form = tiers(graph)
    assert (form.width, form.independent, len(form.tiers)) == (100, None, 12)
    file = tmp_path / "large.png"
    graph_plot.draw(graph, form, schedule(graph, 4), file)
    assert file.read_bytes()[:4] == b"\x89PNG"


def test_the_thesis_figures_are_drawn(tmp_path: Path) -> None:
    file = tmp_path / "figures.svg"
    figures.draw(file)
    assert b"<svg" in file.read_bytes()
    # What the second shows at its left end is Amdahl's law.
    assert law.speedup(0.2, 0.0, 8.0) == pytest.approx(10 / 3)
