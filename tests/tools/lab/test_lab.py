# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs are made whole or not at all, live side by side, and leave nothing behind."""

import gc
import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import beowire_cli
import pytest
from beowire import namespaces
from beowire.errors import BeowireError
from beowire.lab import lab, up
from beowire_cli import COMMAND, NO_NAMESPACES, beowire, fresh_name, small_file_system, traces

needs_namespaces = pytest.mark.skipif(
    NO_NAMESPACES is not None, reason=f"raw frames: {NO_NAMESPACES}"
)


@needs_namespaces
def test_nodes_have_names_addresses_and_mtu(lab_name: str) -> None:
    assert beowire("lab", "up", lab_name, "--nodes", "3", "--mtu", "4000").status == 0
    made = lab.load_ready(lab_name)
    for node in made.node_names():
        script = "hostname; cat /sys/class/net/eth0/mtu; getent hosts node1 node2 node3"
        answer = beowire("lab", "exec", lab_name, node, "--", "sh", "-c", script)
        name, mtu, *hosts = answer.output.splitlines()
        assert (name, mtu) == (node, "4000")
        assert [line.split() for line in hosts] == [
            [made.address(other), other] for other in made.node_names()
        ]


@needs_namespaces
def test_nodes_reach_each_other(two_nodes: lab.Lab) -> None:
    listen = "import socket; s = socket.create_server(('', 7)); print(flush=True); s.accept()"
    server = subprocess.Popen(
        ["sh", two_nodes.enter_path("node2"), "python3", "-c", listen], stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    server.stdout.readline()
    connect = "import socket; print(socket.create_connection(('node2', 7)).getpeername()[0])"
    answer = beowire("lab", "exec", two_nodes.name, "node1", "--", "python3", "-c", connect)
    assert answer.output.strip() == two_nodes.address("node2")
    assert server.wait() == 0


@needs_namespaces
def test_a_single_node_and_the_extreme_mtus(lab_name: str) -> None:
    for mtu in (lab.MTU_MIN_BYTES, lab.MTU_MAX_BYTES):
        up.up(lab_name, 1, mtu)
        answer = beowire("lab", "exec", lab_name, "node1", "--", "cat", "/sys/class/net/eth0/mtu")
        assert answer.output.strip() == str(mtu)
        up.down(lab_name)


@needs_namespaces
def test_nothing_is_left(lab_name: str) -> None:
    gc.collect()  # other tests' descriptors
    before = {entry.name for entry in Path("/proc/self/fd").iterdir()}
    up.up(lab_name, 2, 9000)
    assert traces(lab_name) != []
    up.down(lab_name)
    assert traces(lab_name) == []
    gc.collect()
    assert {entry.name for entry in Path("/proc/self/fd").iterdir()} <= before


@needs_namespaces
def test_labs_live_side_by_side(lab_name: str) -> None:
    other = f"{lab_name}-node1"  # its namespaces begin like those of the first lab
    first = up.up(lab_name, 2, 9000)
    second = up.up(other, 2, 1500)
    try:
        assert first.subnet != second.subnet
        up.down(lab_name)
        assert traces(lab_name) == [] or all(other in trace for trace in traces(lab_name))
        answer = beowire("lab", "exec", other, "node2", "--", "hostname")
        assert answer.output.strip() == "node2"
    finally:
        beowire_cli.remove(other)


def test_exec_passes_status_input_and_output(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    answer = beowire("lab", "exec", lab_name, "node1", "--", "sh", "-c", "cat; exit 7", text="in")
    assert (answer.status, answer.output, answer.errors) == (7, "in", "")


def test_exec_passes_signals(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    process = subprocess.Popen(
        [*COMMAND, "lab", "exec", lab_name, "node1", "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 9


def test_exec_keeps_odd_arguments(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    words = ["a b", "", "'", "--nodes", "*", "$HOME"]
    script = "import sys; print(sys.argv[1:])"
    answer = beowire("lab", "exec", lab_name, "node1", "--", "python3", "-c", script, *words)
    assert answer.output.strip() == str(words)


def test_down_kills_what_runs_on_the_nodes_only(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    inside = subprocess.Popen(["sh", lab.load(lab_name).enter_path("node1"), "sleep", "1000"])
    outside = subprocess.Popen(["sleep", "1000"])
    try:
        while inside.pid not in lab.load(lab_name).processes():
            time.sleep(0.01)
        up.down(lab_name)
        assert inside.wait() == -signal.SIGKILL
        assert outside.poll() is None
    finally:
        outside.kill()
        outside.wait()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "Bad_Name", "--nodes", "2"], "no name for a lab"),
        (["up", "x-", "--nodes", "2"], "no name for a lab"),
        (["up", "x" * 25, "--nodes", "2"], "no name for a lab"),
        (["up", "../x", "--nodes", "2"], "no name for a lab"),
        (["up", "x", "--nodes", "0"], "--nodes 1 to"),
        (["up", "x", "--nodes", "-1"], "--nodes 1 to"),
        (["up", "x", "--nodes", "251"], "--nodes 1 to"),
        (["up", "x", "--nodes", "2", "--mtu", "67"], "--mtu 68 to 65535"),
        (["up", "x", "--nodes", "2", "--mtu", "65536"], "--mtu 68 to 65535"),
        (["up", "x", "--nodes", "two"], "Invalid value for '--nodes'"),
        (["up", "x", "--nodes", "2", "--loss", "2"], "no share"),
        (["up", "x", "--nodes", "2", "--loss", "101%"], "no share"),
        (["up", "x", "--nodes", "2", "--loss", "much"], "no share"),
        (["up", "x", "--nodes", "2", "--loss", "nan"], "no share"),
        (["up", "x", "--nodes", "2", "--rate", "fast"], "no rate"),
        (["up", "x", "--nodes", "2", "--rate", "1bit"], "no rate"),
        (["up", "x", "--nodes", "2", "--offloads", "maybe"], "on or off"),
        (["down", "nosuchlab"], "no lab nosuchlab"),
        (["exec", "nosuchlab", "node1", "--", "true"], "no lab nosuchlab"),
        (["status", "nosuchlab"], "no lab nosuchlab"),
        (["set", "nosuchlab", "--loss", "1%"], "no lab nosuchlab"),
        (["set", "nosuchlab"], "Nothing to set"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    answer = beowire("lab", *arguments)
    assert answer.status != 0
    assert said in " ".join(answer.errors.split())
    assert "Traceback" not in answer.errors
    assert not lab.exists("x")


def test_a_name_is_taken_once(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    answer = beowire("lab", "up", lab_name, "--nodes", "2")
    assert answer.status == 1
    assert f"./beowire lab down {lab_name}" in answer.errors
    assert lab.load_ready(lab_name).nodes == 1


def test_a_node_that_is_not_there(lab_name: str) -> None:
    up.up(lab_name, 2, 9000)
    for words in (("exec", lab_name, "node3", "--", "true"), ("set", lab_name, "--node", "node3")):
        answer = beowire("lab", *words, *(["--loss", "1%"] if words[0] == "set" else []))
        assert answer.status == 1
        assert "node1 to node2" in answer.errors
        assert "Traceback" not in answer.errors


@needs_namespaces
def test_a_namespace_of_somebody_else_is_left_alone(lab_name: str) -> None:
    path = namespaces.NETNS_DIR / f"bw-{lab_name}-node2"
    namespaces.create(path, None, "")
    try:
        with pytest.raises(BeowireError, match="belongs to no lab"):
            up.up(lab_name, 2, 9000)
        assert path.exists()
        assert traces(lab_name)[0] == str(path)
    finally:
        namespaces.remove(path)
    assert traces(lab_name) == []


@needs_namespaces
@pytest.mark.parametrize("delay_s", [0.15, 0.25, 0.3, 0.35, 0.4, 0.5, 0.7])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_making_leaves_all_or_nothing(
    lab_name: str, delay_s: float, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "lab", "up", lab_name, "--nodes", "20"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    time.sleep(delay_s)
    process.send_signal(number)
    process.communicate()
    if lab.exists(lab_name):
        assert lab.load(lab_name).ready
    else:
        assert process.returncode != 0
        assert traces(lab_name) == []


@needs_namespaces
@pytest.mark.parametrize("delay_s", [0.25, 0.3, 0.35, 0.4])
def test_killed_making_can_be_cleaned_up(lab_name: str, delay_s: float) -> None:
    process = subprocess.Popen(
        [*COMMAND, "lab", "up", lab_name, "--nodes", "20"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(delay_s)
    process.kill()
    process.wait()
    if lab.exists(lab_name) and not lab.load(lab_name).ready:
        answer = beowire("lab", "exec", lab_name, "node1", "--", "true")
        assert f"./beowire lab down {lab_name}" in answer.errors
    if lab.exists(lab_name):
        assert beowire("lab", "down", lab_name).status == 0
    assert traces(lab_name) == []


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system without room for the state of a lab."""
    with small_file_system(tmp_path, "nr_inodes=12"):
        yield tmp_path


def test_full_disk_leaves_nothing(lab_name: str, full_disk: Path) -> None:
    answer = beowire("lab", "up", lab_name, "--nodes", "20", BEOWIRE_STATE=str(full_disk))
    assert answer.status == 1
    assert "Free some space" in answer.errors
    assert traces(lab_name) == []
    assert list((full_disk / "labs").iterdir()) == []


def test_what_cannot_be_executed_on_a_node(lab_name: str, tmp_path: Path) -> None:
    """As a shell tells it: 127 for what is not there, 126 for what is no program."""
    up.up(lab_name, 1, 9000)
    (tmp_path / "text").write_text("no program")
    script = 'test "$#" = 3 && test "$1" = "a  b" && exit 9'
    for status, words in (
        (127, ["nosuchprogram"]),
        (127, [str(tmp_path / "nothing")]),
        (126, [str(tmp_path / "text")]),
        (126, [str(tmp_path)]),
        (9, ["sh", "-c", script, "sh", "a  b", "$x", ""]),
    ):
        answer = beowire("lab", "exec", lab_name, "node1", "--", *words)
        assert answer.status == status, answer
        assert words[0] in answer.errors or status == 9


def test_a_lab_that_is_not_there_names_those_that_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path))
    with pytest.raises(BeowireError) as caught:
        up.down("nolab")
    assert (caught.value.what, caught.value.fix) == ("There is no lab nolab.", "There is none.")
    for name in ("one", "two"):
        (tmp_path / "labs" / name).mkdir(parents=True)
        (tmp_path / "labs" / name / "lab.json").write_text("{}")
    with pytest.raises(BeowireError) as caught:
        up.down("nolab")
    assert caught.value.fix == "There are one, two."
    with pytest.raises(BeowireError) as caught:
        lab.load("nolab")
    assert caught.value.fix == "There are one, two; make it: ./beowire lab up nolab --nodes 2"


def test_labs_that_cannot_be_listed_are_not_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path))
    (tmp_path / "labs").touch()
    with pytest.raises(BeowireError, match="labs cannot be read: Not a directory"):
        lab.names()


def test_status_tells_machines(lab_name: str) -> None:
    made = up.up(lab_name, 2, 9000)
    (told,) = json.loads(beowire("lab", "status", lab_name, "--json").output)
    assert told["addresses"] == {"node1": made.address("node1"), "node2": made.address("node2")}
    assert told["mode"] == made.mode


def test_without_namespaces_nodes_are_loopback_addresses(lab_name: str) -> None:
    answer = beowire("lab", "up", lab_name, "--nodes", "2", BEOWIRE_LAB_MODE="loopback")
    assert answer.status == 0
    assert "no raw frames" in answer.errors
    told = beowire("lab", "exec", lab_name, "node2", "--", "env").output.splitlines()
    made = lab.load_ready(lab_name)
    assert made.address("node2").startswith("127.")
    assert f"BEOWIRE_UDP_ADDRESS={made.address('node2')}" in told
    assert "BEOWIRE_NODE=node2" in told
    assert "BEOWIRE_LINKS=local,udp" in told
    assert beowire("lab", "set", lab_name, "--loss", "1%").status == 1


def test_a_lab_of_the_same_name_elsewhere_is_left_alone(
    lab_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its nodes are loopback addresses as well, of another directory of state."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    script = up.up(lab_name, 1, 9000).enter_path("node1")
    with subprocess.Popen(["sh", script, "sleep", "1000"]) as other:
        try:
            with monkeypatch.context() as elsewhere:
                elsewhere.setenv("BEOWIRE_STATE", str(tmp_path))
                made = up.up(lab_name, 1, 9000)
                inside = subprocess.Popen(["sh", made.enter_path("node1"), "sleep", "1000"])
                while inside.pid not in made.processes():
                    time.sleep(0.01)
                up.down(lab_name)
                assert inside.wait() == -signal.SIGKILL
            while lab.load(lab_name).processes() != [other.pid]:
                assert other.poll() is None
                time.sleep(0.01)
        finally:
            other.kill()


def test_names_are_unique_between_tests() -> None:
    assert fresh_name() != fresh_name()
