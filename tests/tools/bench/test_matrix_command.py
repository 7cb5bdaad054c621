# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench matrix` as a user meets it: mistakes, a small run, and Ctrl-C in the midst of
one."""

import json
from pathlib import Path

import pytest
from beowire.bench.matrix import nodes
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire_cli import beowire, no_pair
from terminal import on_terminal


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--figures", "speed"), "--figures speed: there is no speed"),
        (("--sizes", "8,many"), "--sizes 8,many?"),
        (("--sizes", "12"), "12 cannot be measured"),
        (("--links", "raw,wire"), "there is no wire"),
        (("--mtu", "9"), "--mtu 9?"),
        (("--mpi", "/nowhere"), "there is no directory /nowhere"),
        (("--ranks", "5"), "--ranks 5?"),
        (("--json", "/nowhere/file"), "/nowhere/file cannot be written"),
        (("--plot", "cells.txt"), "cells.txt names no kind of drawing"),
        (("--lab", "nosuch"), "There is no lab nosuch"),
        (("--hosts", "one"), "needs two nodes"),
    ],
)
def test_mistakes(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "matrix", *words)
    assert done.status == 1
    assert why in done.errors
    assert "Traceback" not in done.errors


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_mtu_of_nodes_is_found_out(two_nodes: lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    made = nodes.chosen(two_nodes.name, None, None, "ssh", "")
    assert made.mtus((1500, 9000), asked=False) == (9000,)
    with pytest.raises(BeowireError, match="the MTU of these nodes is 9000"):
        made.mtus((1500, 9000), asked=True)
    assert nodes.Nodes().mtus((1500, 9000), asked=True) == (1500, 9000)
    monkeypatch.setenv("BEOWIRE_LAB_DIR", str(two_nodes.directory))
    assert made.given is not None
    reached = nodes.chosen(None, "node[1-2]", None, made.given.agent[0], "")
    assert reached.mtus((1500,), asked=False) == (9000,)


def leftover() -> list[str]:
    return [name for name in lab.names() if name.startswith("matrix-")]


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_the_command(tmp_path: Path) -> None:
    file, drawing, page = tmp_path / "cells.json", tmp_path / "cells.svg", tmp_path / "r.html"
    words = ("--quick", "--figures", "latency,rate", "--sizes", "8,4k", "--mtu", "1500")
    more = ("--rounds", "1", "--cell-ms", "2", "--json", str(file), "--plot", str(drawing))
    done = beowire("--report", str(page), "bench", "matrix", *words, *more)
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    names = {(each["figure"], each["bytes"], each["link"]) for each in told["cells"]}
    assert names == {
        (figure, size, link)
        for figure in ("latency", "rate")
        for size in (8, 4096)
        for link in ("raw", "udp", "local")
    }
    for each in told["cells"]:
        assert each["ratio"] == pytest.approx(each["beowire"] / each["tcp"])
        assert (each["low"], each["high"], each["verdict"]) == (None, None, "even")
        assert (each["stack"] == "memory") == (each["link"] == "local")
        others = set(each["values"]) - {"beowire"}
        missing = {row["stack"] for row in told["missing"]}
        assert others == {"memory"} if each["link"] == "local" else others | missing >= {"native"}
    assert "about" in done.errors
    assert drawing.read_bytes().startswith(b"<?xml")
    assert "data:image/svg+xml" in page.read_text()
    assert leftover() == []
    again = beowire("bench", "matrix", *words, *more)
    assert again.status == 0, again.errors
    assert "all 12 cells stand in" in again.errors
    assert json.loads(file.read_text())["cells"] == told["cells"]


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_ctrl_c_leaves_what_is_measured(tmp_path: Path) -> None:
    file, temporary = tmp_path / "cells.json", tmp_path / "temporary"
    temporary.mkdir()
    words = ("bench", "matrix", "--figures", "latency", "--sizes", "8", "--mtu", "1500")
    more = ("--links", "local", "--mpi", "openmpi", "--rounds", "9", "--cell-ms", "2")
    with on_terminal(temporary, *words, *more, "--json", str(file)) as terminal:
        terminal.expect("round 2 of 9, Beowire")
        terminal.press_ctrl_c()
        assert terminal.wait() in (130, -2), terminal.output
        assert "the same command goes on" in terminal.output
        assert "Traceback" not in terminal.output
        assert terminal.left() == []
    (kept,) = json.loads(file.read_text())["cells"]
    assert 1 <= kept["rounds"] < 9
    assert leftover() == []
