# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Answers of nodes that are anybody's: what is of another kind than it has to be is refused."""

import copy
import os
from typing import Any

import board_bytes
import pytest
from beowire.status import cluster, layout, node, processes
from beowire.status.boards import Found
from beowire.status.sensible import sensible

BAD: list[Any] = [None, "x", [], {}, [[]], 10**400, float("nan"), float("inf"), True]


def answer() -> dict[str, Any]:
    """Of a node with an endpoint, a peer, two waits and this process."""
    data = board_bytes.board([board_bytes.peer(way=1)])
    head = layout.head(data)
    sheet = layout.sheet(head, board_bytes.sheet([board_bytes.peer(way=1)]), 10)
    process = processes.look(os.getpid())
    return {
        "form": 1,
        "endpoints": [node.endpoint(None, Found(0, 1, head, sheet))],
        "processes": {"1": node._ran(None, process or {}, 1.0)},
        "kernel": None,
    }


def test_what_a_node_tells_is_sensible() -> None:
    assert sensible(answer())
    assert cluster._sensible(answer())


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: str(bad)[:5])
@pytest.mark.parametrize(
    ("place", "name"),
    [
        *(("endpoint", name) for name in ("host", "asleep", "rates", "peers", "waits")),
        *(("peer", name) for name in ("identity", "status", "srtt_ns", "rates", "pulls")),
        *(("peer", name) for name in ("known", "stalled")),
        *(("wait", name) for name in ("kind", "tag", "tagged")),
        *(("process", name) for name in ("state", "running", "starved", "faults", "frozen")),
    ],
)
def test_any_other_kind_is_refused(place: str, name: str, bad: Any) -> None:
    told = answer()
    places = {
        "endpoint": told["endpoints"][0],
        "peer": told["endpoints"][0]["peers"][0],
        "wait": told["endpoints"][0]["waits"][0],
        "process": told["processes"]["1"],
    }
    good = places[place][name]
    if type(good) is type(bad) and (isinstance(bad, bool) or not bad or bad == "x"):
        return  # it is of the kind
    places[place][name] = copy.copy(bad)
    assert not cluster._sensible(told)


@pytest.mark.parametrize("name", ["rank", "size", "job", "slurm"])
@pytest.mark.parametrize("bad", [[], {}, 1.5, 10**400], ids=lambda bad: str(bad)[:5])
def test_what_may_be_absent_is_checked_as_well(name: str, bad: Any) -> None:
    told = answer()
    assert sensible(told | {"processes": {"1": told["processes"]["1"] | {name: None}}})
    assert not sensible(told | {"processes": {"1": told["processes"]["1"] | {name: bad}}})


@pytest.mark.parametrize("pid", ["", "-1", "x", "\u0661", "1" * 5000])
def test_processes_have_numbers(pid: str) -> None:
    told = answer()
    assert not sensible(told | {"processes": {pid: told["processes"]["1"]}})


def test_nothing_is_nested_deep() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not sensible(answer() | {"kernel": deep})
    while deep:  # Python would follow it to its end at once
        deep = deep.pop()
