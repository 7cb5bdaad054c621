# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The runs of `beowire bench matrix`: which there are, in which order, how measuring goes on, who
carries their messages and how that is proved."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from beowire.bench.matrix import available, measure, pace, stacks
from beowire.bench.matrix.grid import FULL, QUICK, Series
from beowire.bench.matrix.stacks import Cores, Stack
from beowire.bench.matrix.store import Store
from beowire.errors import BeowireError
from beowire.lab.counters import NodeCounters
from beowire.progress import Progress
from beowire.run import mpi
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire.run.path import Endpoint, JobRecord
from matrix_runs import GRID, SETTING, TCP, WHERE, Runs


def test_the_grid_is_what_was_promised() -> None:
    whole = FULL.wanted()
    assert len(whole) == len(set(whole)) == 8 * 9 * 3 * 2 * 2
    assert len(QUICK.wanted()) == 4 * 4 * 3 * 2
    assert QUICK.rounds == 3
    assert set(QUICK.wanted()) <= set(whole)


def test_all_stacks_take_turns_in_every_round() -> None:
    runs, store = Runs(), Store(None, SETTING)
    runs.sweep(GRID, store)
    turn = ["native", "ucx", "raw", "udp"]
    within = ["memory", "local"]
    assert runs.stacks == (turn * 3 * 2 + within * 3 * 2) * 2
    assert runs.mtus == [1500, 9000]
    assert {series.ranks for series, _, measured in runs.made if "allreduce" in measured} == {4}
    assert {series.ranks for series, _, measured in runs.made if "latency" in measured} == {2}
    assert set(store.cells) == set(GRID.wanted())
    assert {each.rounds for each in store.cells.values()} == {3}


def test_what_is_told_beforehand_is_what_is_run() -> None:
    store = Store(None, SETTING)
    told = [
        (series, stack.name, measured)
        for series, _, stack, measured in measure.steps(GRID, store, TCP)
    ]
    runs = Runs()
    runs.sweep(GRID, store)
    assert told == runs.made
    assert list(measure.steps(GRID, store, TCP)) == []


def test_time_is_told() -> None:
    three = {"openmpi": [Stack(name) for name in ("native", "ofi", "ucx")]}
    runs = measure.steps(QUICK, Store(None, SETTING), three)
    planned_s = [pace.job_s(QUICK.cell_ms, measured) for *_, measured in runs]
    assert len(planned_s) == 42
    assert sum(planned_s) < 300
    shown = pace.Pace(Progress(3), [10.0, 20.0, 30.0])
    assert shown.left_s(0) == 60
    shown.begin("first")
    assert shown.left_s(20) == 100  # twice as slow as planned
    shown.begin("second")
    assert shown.left_s(30) == 30
    assert [pace.told(each) for each in (5, 200, 7200)] == ["5 s", "3 minutes", "2.0 hours"]


def test_nothing_but_an_unfinished_round_is_lost(tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    first = Runs(interrupted_at=4 + 3)  # in the second round of the first series
    with pytest.raises(KeyboardInterrupt):
        first.sweep(GRID, Store(file, SETTING))
    kept = Store(file, SETTING)
    assert {each.rounds for each in kept.cells.values()} == {1}
    assert {key.figure for key in kept.cells} == {"latency", "rate"}
    again = Runs()
    again.sweep(GRID, kept)
    whole = Runs()
    whole.sweep(GRID, Store(None, SETTING))
    assert again.stacks == whole.stacks[4:]
    last = Runs()
    last.sweep(GRID, Store(file, SETTING))
    assert last.made == []
    assert last.mtus == []


def test_only_what_is_missing_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "cells.json"
    Runs().sweep(GRID, Store(file, SETTING))
    more = Runs()
    store = Store(file, SETTING)
    more.sweep(replace(GRID, rounds=4, mtus=(9000,)), store)
    assert more.mtus == [9000]
    assert more.stacks == ["native", "ucx", "raw", "udp"] * 2 + ["memory", "local"] * 2
    wider = Runs()
    wider.sweep(replace(GRID, sizes=(8, 64, 4096), mtus=(1500,), links=("raw",)), store)
    assert {size for *_, measured in wider.made for row in measured.values() for size in row} == {
        64
    }
    assert len(store.cells) == len(GRID.wanted()) + 3
    told = json.loads(file.read_text())["cells"]
    rounds = {(each["bytes"], each["mtu"], each["rounds"]) for each in told}
    assert rounds == {(8, 1500, 3), (4096, 1500, 3), (64, 1500, 3), (8, 9000, 4), (4096, 9000, 4)}


def test_other_stacks_than_before_are_measured_anew() -> None:
    store = Store(None, SETTING)
    Runs().sweep(GRID, store)
    assert available.forget_others(GRID, store, TCP) == []
    alone = {"openmpi": TCP["openmpi"][:1]}
    dropped = available.forget_others(GRID, store, alone)
    assert {key.link for key in dropped} == {"raw", "udp"}
    assert {key.link for key in store.cells} == {"local"}


SERIES = Series("openmpi", 1500, "between", 4, ("latency",), (8,), ("raw", "udp"))


@pytest.mark.parametrize(
    ("stack", "place", "transport", "variables"),
    [
        ("native", "between", "tcp", {}),
        ("ucx", "between", "tcp", {}),
        ("memory", "within", "memory", {}),
        ("raw", "between", "beowire", {"BEOWIRE_LINKS": "local,packet,udp"}),
        ("udp", "between", "beowire", {"BEOWIRE_LINKS": "local,udp"}),
        ("local", "within", "beowire", {"BEOWIRE_LINKS": "local"}),
    ],
)
def test_jobs(stack: str, place: Any, transport: str, variables: dict[str, str]) -> None:
    made = stacks.job_for(
        replace(SERIES, place=place), Stack(stack), "none", {"latency": [8, 64], "rate": [8]}, 7
    )
    assert made.transport == transport
    assert made.environment == variables
    assert made.per_node == (4 if place == "within" else 2)
    assert made.tcp_stack == (stack if stack == "ucx" else "native")
    assert made.program[1:] == [
        "--cell-ms",
        "7",
        "--measure",
        "latency:8,64",
        *("--measure", "rate:8"),
    ]


def test_ranks_are_bound_only_where_each_has_a_core() -> None:
    lab_of_two = Cores(2, shared=True)
    assert lab_of_two.bind("between", 2) == lab_of_two.bind("within", 2) == "core"
    assert lab_of_two.bind("between", 4) == "none"
    assert lab_of_two.collective_ranks == 2
    hosts_of_two = Cores(2, shared=False)
    assert hosts_of_two.bind("between", 4) == "core"
    assert hosts_of_two.bind("within", 4) == "none"
    assert Cores(4, shared=True).collective_ranks == 4


def record(transport: Any, links: dict[str, dict[str, int]]) -> JobRecord:
    endpoints = [Endpoint(f"node{i}", i, links, 0, {}) for i in (1, 2)]
    if transport != "beowire":
        endpoints = []
    return JobRecord(Job(["x"], 2, transport), "x", 0, False, 0, 0, {}, endpoints)


def test_another_link_than_asked_for_is_noticed() -> None:
    results = [{"figure": "latency", "bytes": 100, "window": 1, "ranks": 2, "units": 10}]
    by_udp = record("beowire", {"udp": {"rx_payload": 1000}})
    stacks.prove(by_udp, "between", Stack("udp"), results)
    told = "Of 2,000 bytes sent Beowire's links carried: `packet` 0, `udp` 2,000"
    with pytest.raises(BeowireError, match=told) as caught:
        stacks.prove(by_udp, "between", Stack("raw"), results)
    assert caught.value.code == 4
    by_both = record("beowire", {"packet": {"rx_payload": 10}, "udp": {"rx_payload": 990}})
    stacks.prove(by_both, "between", Stack("raw"), results)
    with pytest.raises(BeowireError, match="carried 2,000 bytes of the 4,000"):
        stacks.prove(by_udp, "between", Stack("udp"), [{**results[0], "units": 20}])
    by_memory = record("beowire", {"local": {"rx_payload": 1000}})
    stacks.prove(by_memory, "within", Stack("local"), results)
    with pytest.raises(BeowireError, match="`local` carried 0 bytes"):
        stacks.prove(by_udp, "within", Stack("local"), results)
    told = replace(by_udp, job=Job(["x"], 2, "tcp"))
    with pytest.raises(BeowireError, match="endpoints of Beowire were open"):
        stacks.prove(told, "within", Stack("memory"), results)


def test_memory_that_is_none_is_noticed() -> None:
    # MPICH is not told to use its memory, so it may do otherwise.
    quiet = NodeCounters(0, 0, 0, 0, 10_000, 0, 0, 0, 0, 0)
    by_memory = replace(record("tcp", {}), nodes={"node1": quiet})
    results = [{"figure": "latency", "bytes": 1 << 20, "window": 1, "ranks": 2, "units": 10}]
    stacks.prove(by_memory, "within", Stack("memory"), results)
    by_tcp = replace(by_memory, nodes={"node1": replace(quiet, ip_out_octets=20 << 20)})
    with pytest.raises(BeowireError, match=r"TCP carried 20,971,520 bytes, more than"):
        stacks.prove(by_tcp, "within", Stack("memory"), results)


def test_mpich_does_not_move_messages_of_a_node_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = mpi.Installation("mpich", (4, 3), Path("/nowhere/mpirun"), None)
    monkeypatch.setattr(mpi, "find", lambda _name: wheel)
    monkeypatch.setattr(places, "example", Path)
    within = replace(SERIES, mpi="mpich", place="within")
    distant = {"MPIR_CVAR_NOLOCAL": "1"}
    measured = {"latency": [8]}
    ours = stacks.job_for(within, Stack("local"), "none", measured, 1)
    assert ours.environment == {"BEOWIRE_LINKS": "local", **distant}
    theirs = stacks.job_for(within, Stack("memory"), "none", measured, 1)
    assert (theirs.transport, theirs.environment) == ("tcp", {})
    assert ours.program[0] == theirs.program[0] == "matrix.mpich"
    between = stacks.job_for(replace(SERIES, mpi="mpich"), Stack("raw"), "none", measured, 1)
    assert not distant.keys() & between.environment.keys()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = mpi.find

    def find(name: str) -> mpi.Installation:
        if name == "mpich":
            raise BeowireError("The MPICH that speaks libfabric is not installed.")
        return found(name)

    def run(_job: Job, _series: Series, stack: Stack, _cluster: Cluster) -> list[dict[str, Any]]:
        if stack.name == "ucx":
            raise BeowireError("A run over tcp ended with 1:\nno ucx here\n")
        return []

    monkeypatch.setattr(mpi, "find", find)
    monkeypatch.setattr(stacks, "run", run)
    store = Store(None, SETTING)
    both = replace(GRID, mpis=("openmpi", "mpich"))
    grid = available.usable(both, store, strict=False)
    assert grid.mpis == ("openmpi",)
    tcp = available.working(grid, store, WHERE, lambda _text: None)
    assert tcp == {"openmpi": [Stack("native"), Stack("ofi")]}
    assert store.as_json()["missing"] == [
        {"mpi": "mpich", "stack": "", "why": "The MPICH that speaks libfabric is not installed."},
        {"mpi": "openmpi", "stack": "ucx", "why": "no ucx here"},
    ]
    with pytest.raises(BeowireError, match="not installed"):
        available.usable(both, store, strict=True)
