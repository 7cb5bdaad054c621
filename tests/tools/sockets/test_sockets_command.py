# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire sockets`: where the program runs, what it gets, and what is told of it."""

import json
import subprocess
from pathlib import Path

import pytest
from beowire.lab.lab import Lab
from beowire.sockets import cli
from beowire_cli import COMMAND, beowire

PORT = 7700
SERVER = f"""
import socket
with socket.create_server(("", {PORT})) as listener:
    print("listening", flush=True)
    one = listener.accept()[0]
    while got := one.recv(65536):
        one.sendall(got)
"""
CLIENT = f"""
import ctypes, socket, time
way = ctypes.CDLL(None).beowire_sockets_way
one = socket.create_connection(("node2", {PORT}))
until = time.monotonic() + 240
switched = 0
while switched < 50:
    assert time.monotonic() < until
    switched += way(one.fileno()) == 3
    one.sendall(bytes(10000))
    one.recv(10000, socket.MSG_WAITALL)
"""


def on(lab: Lab, node: str, *options: str) -> list[str]:
    return ["sockets", "--lab", lab.name, "--node", node, *options, "--"]


def test_connections_between_nodes_use_beowire(
    two_nodes: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By raw frames alone: on a busy machine messages go by UDP at times, where they may."""
    monkeypatch.setenv("BEOWIRE_LINKS", "local,packet")
    monkeypatch.setenv("BEOWIRE_SOCKETS_COMPARE", "off")  # nor is TCP tried in turn
    counted = [tmp_path / "one.json", tmp_path / "two.json"]
    words = [*COMMAND, *on(two_nodes, "node2", "--json", str(counted[1])), "python3", "-c", SERVER]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listening\n"
        options = on(two_nodes, "node1", "--explain", "--json", str(counted[0]))
        answer = beowire(*options, "python3", "-c", CLIENT)
        assert answer.status == 0, answer.errors
        assert server.wait(240) == 0
    assert f":{PORT}: sent " in answer.errors
    assert answer.errors.strip().endswith(": Beowire (raw frames)")
    for file in counted:
        told = json.loads(file.read_text())
        assert told["processes"] == told["switched"] == len(told["each"]) == 1
        assert told["tx_beowire"] > 100_000
        assert told["rx_beowire"] > 100_000
        assert told["lost"] == 0
        assert told["each"][0]["link"] == "packet"


@pytest.mark.parametrize("options", [(), ("--json", "FILE")])
def test_the_status_is_the_programs(tmp_path: Path, options: tuple[str, ...]) -> None:
    options = tuple(each.replace("FILE", str(tmp_path / "file.json")) for each in options)
    assert beowire("sockets", *options, "--", "sh", "-c", "exit 7").status == 7


def test_a_program_without_connections_counts_nothing(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    assert beowire("sockets", "--json", str(file), "--", "true").status == 0
    assert json.loads(file.read_text())["processes"] == 0


def test_a_node_needs_a_lab() -> None:
    answer = beowire("sockets", "--node", "node1", "--", "true")
    assert answer.status != 0
    assert "belong together" in answer.errors


def test_the_library_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    alone = cli.preload()["LD_PRELOAD"]
    monkeypatch.setenv("LD_PRELOAD", f"{alone}:/lib/other.so")
    assert cli.preload()["LD_PRELOAD"] == f"{alone}:/lib/other.so"


def test_what_was_counted_is_summed(tmp_path: Path) -> None:
    for number in range(2):
        told = dict.fromkeys(cli._COUNTS, 3) | {"each": [{"here": str(number)}]}
        (tmp_path / f"sockets-host-{number}-0.json").write_text(json.dumps(told))
    (tmp_path / "sockets-host-3-0.json.part").write_text("{")
    told = cli.gathered(tmp_path)
    assert told["processes"] == 2
    assert told["tx_bytes"] == 6
    assert told["each"] == [{"here": "0"}, {"here": "1"}]
