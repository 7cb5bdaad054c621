# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench load` as a user meets it: mistakes, each pattern in a small run, and Ctrl-C in the
midst of one."""

import json
from pathlib import Path
from typing import Any

import pytest
from beowire.bench.load import nodes
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire_cli import beowire, no_pair
from terminal import on_terminal

SMALL = ("--sizes", "uniform:100-4k", "--rate", "20M", "--nodes", "3", "--seconds", "0.5")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--sizes", "w7"), "there is no such distribution"),
        (("--pattern", "beside", "--sizes", "w4"), "'w4' is no size of messages"),
        (("--pattern", "incast", "--sizes", "0"), "'0' is no size of messages"),
        (("--pattern", "incast", "--to", "all"), "incast is to one node"),
        (("--loads", "half"), "--loads half?"),
        (("--rate", "0"), "loads are shares of a rate"),
        (("--rate", "fast"), "fast"),
        (("--nodes", "1"), "needs 2 nodes or more; there are 1"),
        (("--nodes", "999"), "A lab of 999 nodes?"),
        (("--mpi", "/nowhere"), "there is no directory /nowhere"),
        (("--mpi", "mpich"), "MPICH has no TCP of its own"),
        (("--json", "/nowhere/file"), "/nowhere/file cannot be written"),
        (("--plot", "tail.txt"), "tail.txt names no kind of drawing"),
        (("--lab", "nosuch"), "There is no lab nosuch"),
        (("--hosts", "one"), "needs 2 nodes or more; there are 1"),
        (("--pattern", "incast", "--seconds", "0.1"), "Give --seconds 1 or more"),
        (("--hosts", "one,two", "--nodes", "3"), "--nodes 3: there are 2"),
    ],
)
def test_mistakes(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "load", *words, "--ssh", "false")
    assert done.status == 1
    assert why in " ".join(done.errors.split())
    assert "Traceback" not in done.errors


def chosen(name: str, rate: str) -> nodes.Nodes:
    return nodes.chosen(
        name, None, None, "ssh", "", pattern="mixed", nodes=0, rate=rate, mtu_bytes=1500
    )


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_rate_is_that_of_the_lab(two_nodes: lab.Lab) -> None:
    with pytest.raises(BeowireError, match=f"Lab {two_nodes.name} has no rate"):
        chosen(two_nodes.name, "")
    made = chosen(two_nodes.name, "100M")
    assert (made.rate_bits, made.count, made.shares_clock) == (10**8, 2, True)


def leftover() -> list[str]:
    return [name for name in lab.names() if name.startswith("load-")]


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_command(tmp_path: Path) -> None:
    file, drawing, page = tmp_path / "l.json", tmp_path / "l.svg", tmp_path / "r.html"
    words = (*SMALL, "--loads", "20,40", "--classes", "3", "--rounds", "1", "--json", str(file))
    done = beowire("--report", str(page), "bench", "load", *words, "--plot", str(drawing))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    names = {(each["load"], each["high_bytes"], each["percentile"]) for each in told["figures"]}
    assert len(names) == 2 * 3 * 3
    assert len(told["figures"]) == 2 * 4 * 3
    for each in told["figures"]:
        assert (each["low"], each["high"], each["verdict"]) in (
            (None, None, "even"),
            (None, None, None),
        )
        if each["percentile"] == "p99.9":
            assert each["tcp"] is each["beowire"] is each["ratio"] is None
    assert len(told["alone"]) == 12
    assert "too few" in done.output
    assert drawing.read_bytes().startswith(b"<?xml")
    assert "data:image/svg+xml" in page.read_text()
    assert leftover() == []
    again = beowire("bench", "load", *words)
    assert again.status == 0, again.errors
    assert "all 1 rounds stand in" in " ".join(again.errors.split())
    assert json.loads(file.read_text())["rounds"] == told["rounds"]
    other = beowire("bench", "load", *words, "--to", "all")
    assert other.status == 1
    assert "to one, not all" in " ".join(other.errors.split())


def small(tmp_path: Path, *words: str) -> tuple[dict[str, Any], str]:
    """A round of a pattern, with its drawing: its file, and what was printed."""
    file, drawing = tmp_path / "l.json", tmp_path / "l.png"
    more = ("--seconds", "0.5", "--rounds", "1", "--json", str(file), "--plot", str(drawing))
    done = beowire("bench", "load", *words, *more)
    assert done.status == 0, done.errors
    assert drawing.read_bytes().startswith(b"\x89PNG")
    return json.loads(file.read_text()), done.output


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_beside_a_bulk_transfer(tmp_path: Path) -> None:
    words = ("--pattern", "beside", "--rate", "50M", "--per-second", "200", "--round-trips")
    told, output = small(tmp_path, *words)
    assert told["setting"]["times"] == "round trip"
    assert {each["high_bytes"] for each in told["figures"]} == {8}
    phase = told["rounds"][0]["beowire"][-1]
    assert phase["bulk_ns"] > 0.5e9
    assert "bulk" in output
    assert "8 B beside a bulk transfer" in output


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_an_incast(tmp_path: Path) -> None:
    words = ("--pattern", "incast", "--nodes", "3", "--sizes", "64k", "--rate", "200M")
    told, output = small(tmp_path, *words)
    for name in ("beowire", "tcp"):
        waves = told["incast"][name]
        assert 0 < waves["least_share"] <= waves["share"] <= 1
        assert waves["messages"] == 2 * waves["waves"] > 2  # 190 where nothing holds them up
        assert waves["longest"] > 0.8  # of two messages' fair time, a fifth passes at once
    assert "2 to 1, 64 KiB each" in output


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_ctrl_c_leaves_what_is_measured(tmp_path: Path) -> None:
    file, temporary = tmp_path / "l.json", tmp_path / "temporary"
    temporary.mkdir()
    words = ("bench", "load", *SMALL, "--loads", "20", "--rounds", "9", "--json", str(file))
    with on_terminal(temporary, *words) as terminal:
        terminal.expect("round 2 of 9, TCP")
        terminal.press_ctrl_c()
        assert terminal.wait() in (130, -2), terminal.output
        assert "the same command" in terminal.output
        assert "Traceback" not in terminal.output
        assert terminal.left() == []
    assert 1 <= len(json.loads(file.read_text())["rounds"]) < 9
    assert leftover() == []
