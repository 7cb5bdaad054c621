# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Links of a lab that beowire-link emulates: it is started, spoken to, missed and ended."""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import beowire_cli
import pytest
from beowire import namespaces
from beowire.errors import BeowireError
from beowire.lab import emulator, lab, status, up
from beowire.topology import catalogue, reader
from beowire.topology.topology import Model
from beowire_cli import COMMAND, beowire, traces
from traffic import raw_frame, receiving, send_raw


def emulator_missing() -> str:
    with contextlib.suppress(BeowireError):
        emulator.binary()
        return ""
    return "beowire-link is not built"


pytestmark = [
    pytest.mark.skipif(
        beowire_cli.NO_NAMESPACES is not None, reason=f"raw frames: {beowire_cli.NO_NAMESPACES}"
    ),
    pytest.mark.skipif(bool(emulator_missing()), reason=emulator_missing()),
]

PAIR = """
[[nodes]]
name = "node"
count = 2
[[links]]
name = "cable"
a = "node1"
b = "node2"
emulator = "beowire-link"
"""


def lab_of(name: str, text: str) -> lab.Lab:
    return up.up_topology(name, reader.parse(text, "test", "test.toml"))


@pytest.fixture
def emulated(lab_name: str) -> lab.Lab:
    return lab_of(lab_name, PAIR)


def numbered(count: int, size: int = 100) -> list[bytes]:
    return [raw_frame(number.to_bytes(4, "big") + bytes(size - 4)) for number in range(count)]


PATIENCE_S = 240.0


def taken(made: lab.Lab) -> int:
    """How many frames the lab's emulators have taken and let go again."""
    counted = [
        emulator.ask(made, link, "stats")[direction]
        for link, wire in made.wires.items()
        if wire.pid
        for direction in ("ab", "ba")
    ]
    return sum(each["frames"] - each["under_way"] for each in counted)


def arrived(made: lab.Lab, sender: str, receiver: str, expected: int, sent: int = 50) -> int:
    """How many of the frames sent arrive. An emulator takes its time on a busy machine: what is
    expected is waited for, and so is the emulator where nothing is."""
    made = lab.load(made.name)
    before, deadline = taken(made), time.monotonic() + PATIENCE_S
    with receiving(made, receiver) as received:
        send_raw(made, sender, numbered(sent))
        while time.monotonic() < deadline:
            if len(received.frames) >= max(expected, 1) or taken(made) >= before + sent:
                break
            time.sleep(0.01)
        while len(received.frames) < expected and time.monotonic() < deadline:
            time.sleep(0.01)
    return len(received.frames)


def test_frames_pass_both_ways_whole_and_in_order(emulated: lab.Lab) -> None:
    for sender, receiver in (("node1", "node2"), ("node2", "node1")):
        with receiving(emulated, receiver, least=200) as received:
            send_raw(emulated, sender, numbered(200, 1500))
        assert received.frames == numbered(200, 1500)
    assert lab.load(emulated.name).wires["cable"].kind == "beowire-link"


def test_nothing_is_left(emulated: lab.Lab) -> None:
    pid = emulated.wires["cable"].pid
    assert namespaces.network_of(pid) is not None
    up.down(emulated.name)
    assert namespaces.network_of(pid) is None
    assert traces(emulated.name) == []


def test_the_ends_are_those_of_the_topology(lab_name: str) -> None:
    """Whichever end the switch is at, `ab` is from a to b."""
    text = """
[[nodes]]
name = "node"
count = 3
[[switches]]
name = "one"
[[switches]]
name = "two"
[[links]]
a = "node1"
b = "one"
[[links]]
a = "two"
b = "node2"
[[links]]
a = "node3"
b = "two"
[[links]]
name = "up"
a = "one"
b = "two"
"""
    made = lab_of(lab_name, text)
    frames = ("node1", "node2"), ("node2", "node1")
    for link, ab in (("node1", frames[0]), ("node2", frames[0]), ("up", frames[0])):
        up.set_links(lab_name, {link: {"ab": Model(loss=1.0, delay_ns=1000)}})
        assert lab.load(lab_name).wires[link].kind == "beowire-link"
        assert arrived(made, *ab, 0) == 0
        assert arrived(made, *ab[::-1], 50) == 50
        up.set_links(lab_name, {link: {"ab": Model()}})
        assert arrived(made, *ab, 50) == 50


def test_settings_change_without_a_new_process(emulated: lab.Lab) -> None:
    answer = beowire("lab", "link", "set", emulated.name, "cable", "ab.loss=100%", "ba.mtu=90")
    assert answer.status == 0, answer.errors
    assert arrived(emulated, "node1", "node2", 0) == 0
    assert arrived(emulated, "node2", "node1", 0) == 0
    up.set_links(emulated.name, {"cable": {"ab": Model(), "ba": Model()}})
    assert arrived(emulated, "node1", "node2", 50) == 50
    assert lab.load(emulated.name).wires["cable"].pid == emulated.wires["cable"].pid
    (told,) = status.links(lab.load_ready(emulated.name))
    assert told["emulator"]["ab"]["lost"] >= 50
    assert told["emulator"]["ba"]["too_long"] >= 50
    assert isinstance(told["emulator"]["valid"], bool)
    flow = status.flows(lab.load_ready(emulated.name))["cable", "ab"]
    assert flow.lost >= 50


def test_frames_are_as_late_as_the_link_says(emulated: lab.Lab) -> None:
    up.set_links(emulated.name, {"cable": {"ab": Model(delay_ns=200_000_000)}})
    with receiving(emulated, "node2") as received:
        begin = time.monotonic()
        send_raw(emulated, "node1", numbered(1))
        while not received.frames:
            assert time.monotonic() < begin + PATIENCE_S
            time.sleep(0.001)
        assert time.monotonic() - begin >= 0.2


def test_a_killed_emulator_is_told(emulated: lab.Lab) -> None:
    pid = emulated.wires["cable"].pid
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    answer = beowire("lab", "status", emulated.name)
    assert answer.status == 0
    assert "emulator of link cable is dead" in answer.errors
    (told,) = json.loads(beowire("lab", "status", emulated.name, "--json").output)
    assert told["dead_emulators"] == ["cable"]
    assert "cable" in beowire("lab", "link", "show", emulated.name).output
    for arguments in (
        ["exec", emulated.name, "node1", "--", "true"],
        ["link", "set", emulated.name, "cable", "loss=1%"],
    ):
        answer = beowire("lab", *arguments)
        assert answer.status == 1
        assert f"./beowire lab down {emulated.name}" in answer.errors
    up.down(emulated.name)
    assert traces(emulated.name) == []


def test_a_lab_outlives_the_command_that_made_it_and_no_emulator_the_lab(lab_name: str) -> None:
    assert beowire("lab", "up", lab_name, "--topology", "two-sites").status == 0
    made = lab.load_ready(lab_name)
    pids = [wire.pid for wire in made.wires.values() if wire.pid]
    assert len(pids) == 2
    assert sorted(made.wire_processes()) == sorted(pids)
    assert made.processes() == []
    assert beowire("lab", "down", lab_name).status == 0
    assert not any(map(namespaces.network_of, pids))
    assert traces(lab_name) == []


def test_a_killed_making_can_be_cleaned_up(lab_name: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, "lab", "up", lab_name, "--topology", "two-sites"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    control = lab.labs_dir() / lab_name / "wan-a.control"
    while not control.exists() and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    process.wait()
    assert lab.exists(lab_name)
    emulators = lab.load(lab_name).wire_processes()
    up.down(lab_name)
    assert not any(map(namespaces.network_of, emulators))
    assert traces(lab_name) == []


def test_links_of_a_lab_have_fates_of_their_own(lab_name: str) -> None:
    made = up.up_topology(lab_name, catalogue.find("two-sites"))
    seeds = {emulator.ask(made, link, "stats")["seed"] for link in ("wan-a", "wan-b")}
    assert len(seeds) == 2


def test_emulators_run_where_and_before_whom_the_topology_says(lab_name: str) -> None:
    processor = min(os.sched_getaffinity(0))
    made = lab_of(lab_name, f'realtime = true\nemulator-cpus = "{processor}"\n{PAIR}')
    pid = made.wires["cable"].pid
    threads = [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()]
    assert any(os.sched_getaffinity(thread) == {processor} for thread in threads)
    assert any(os.sched_getscheduler(thread) == os.SCHED_FIFO for thread in threads)


def test_distant_nodes_in_one_subnet_exchange_raw_frames(lab_name: str) -> None:
    made = up.up_topology(lab_name, catalogue.find("one-subnet"))
    assert arrived(made, "node1", "node8", 50) == 50


def test_what_the_emulator_refuses_is_told(emulated: lab.Lab) -> None:
    with pytest.raises(BeowireError, match="refuses 'nonsense'"):
        emulator.ask(emulated, "cable", "nonsense")
