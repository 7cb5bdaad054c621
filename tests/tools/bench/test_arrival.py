# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""From a frame's arrival to the program: what is computed and refused, and runs in a lab."""

import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from beowire import places
from beowire.bench import activation, arrival
from beowire.errors import BeowireError
from beowire_cli import beowire
from stopped import go_on, stop

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="root is needed for packet sockets")


def told(arrived: list[int], one_way: list[int]) -> str:
    return json.dumps({"arrived_ns": arrived, "one_way_ns": one_way, "unstamped": 0})


def test_frames_that_were_not_seen_are_no_figure() -> None:
    assert arrival.checked(told([1] * 9, [2] * 10))["arrived_ns"] == [1] * 9
    with pytest.raises(BeowireError, match="only 8 frames"):
        arrival.checked(told([1] * 8, [2] * 10))
    for said in ("", "{}", told([], []), "[1]"):
        with pytest.raises(BeowireError, match="printed"):
            arrival.checked(said)


def test_ratios_are_by_tcp_of_the_same_round() -> None:
    report = arrival.Report()
    for way, values in (("tcp", [40, 20]), ("raw", [10, 10])):
        report.runs["idle", way] = [json.loads(told([each], [each * 2])) for each in values]
    assert report.ratio(("idle", "raw"), "arrived", "p50").value == pytest.approx(8**-0.5)
    assert report.figure(("idle", "tcp"), "one_way", "max") == [0.08, 0.04]


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["receive"],
        ["receive", "udp", "1", "1"],
        ["receive", "tcp", "7311", "0", "1"],
        ["receive", "beowire", "10"],
        ["send", "tcp", "127.0.0.1", "7311", "1"],
        ["send", "beowire", "beef", "1", "1"],
        ["send", "tcp", "127.0.0.1", "7311", "1", "1x"],
    ],
)
def test_the_program_refuses(words: list[str]) -> None:
    done = subprocess.run(
        [places.product(arrival.PROGRAM), *words],
        capture_output=True,
        text=True,
        env=os.environ | {"BEOWIRE_LINKS": "local"},
    )
    assert done.returncode in (1, 2)
    assert done.stderr
    assert not done.stdout


def free_port() -> int:
    with socket.socket() as other:
        other.bind(("", 0))
        port: int = other.getsockname()[1]
    return port


@needs_root
def test_the_stamp_lies_between_sender_and_receiver() -> None:
    """By itself, over loopback."""
    program, port = places.product(arrival.PROGRAM), free_port()
    words = [program, "receive", "tcp", str(port), "60", "10"]
    began = time.monotonic_ns()
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        send = [program, "send", "tcp", "127.0.0.1", str(port), "70", "200"]
        subprocess.run(send, check=True)
        found = arrival.checked(child.stdout.read())
    took = time.monotonic_ns() - began
    assert len(found["one_way_ns"]) == 60
    assert len(found["arrived_ns"]) + found["unstamped"] == 60
    assert 0 < min(found["one_way_ns"]) <= max(found["one_way_ns"]) <= took
    if not found["unstamped"]:
        pairs = zip(found["arrived_ns"], found["one_way_ns"], strict=True)
        assert all(arrived <= one_way for arrived, one_way in pairs)


@needs_root
def test_who_is_late_has_the_stamps_of_all() -> None:
    """All frames are there before the program looks at the first of them."""
    program, port = places.product(arrival.PROGRAM), free_port()
    words = [program, "receive", "tcp", str(port), "60", "10"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        stop(child.pid)
        send = [program, "send", "tcp", "127.0.0.1", str(port), "70", "1"]
        with subprocess.Popen(send) as sender:
            until = time.monotonic() + 60
            while unread(port) < 70 * 64 and time.monotonic() < until:
                time.sleep(0.01)
            go_on(child.pid)
            found = arrival.checked(child.stdout.read())
        assert sender.returncode == 0
    assert len(found["one_way_ns"]) == 60


def unread(port: int) -> int:
    """Bytes that lie in the kernel for connections to this port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    here = [row for row in rows if row[1].endswith(f":{port:04X}") and row[3] == "01"]
    return sum(int(row[4].partition(":")[2], 16) for row in here)


@needs_root
@pytest.mark.usefixtures("own_shm")
def test_a_short_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "activation.json"
    words = ["--scopes", "network", "--rounds", "2", "--count", "60", "--loads", "idle"]
    monkeypatch.delenv("BEOWIRE_LINKS", raising=False)
    done = beowire("bench", "activation", *words, "--json", str(file))
    assert done.status == 0, done.errors
    assert "arrival" in done.output
    assert "ratio of maximum" in done.output
    found = json.loads(file.read_text())["network"]
    assert {each["way"] for each in found["runs"]} == set(arrival.WAYS)
    for each in found["runs"]:
        assert [len(one["one_way_ns"]) for one in each["rounds"]] == [60, 60]
    assert {each["step"] for each in found["figures"]} == set(arrival.STEPS)


def test_a_lab_that_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise BeowireError("no namespaces here")

    monkeypatch.setattr(arrival.up, "up", refuse)
    report = arrival.measure(activation.Plan(rounds=1), lambda _: None)
    assert "no namespaces" in report.missing
    assert not report.runs
