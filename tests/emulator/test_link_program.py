# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowire-link as a program: its control socket, its verdict, its ends, and what it refuses."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from link_net import Control, Link, Net, cable, frame, ip, link, received
from stopped import go_on, stop

PATIENCE_S = 240.0


def refused(net: Net, *words: str, status: int = 1) -> str:
    """The one line of complaint of a run that must not begin."""
    program = str(places.product("emulator/beowire-link"))
    done = subprocess.run(
        net.command(program, *words), capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("beowire-link: ")
    assert re.search("[;:(]", done.stderr.removeprefix("beowire-link: ")), "no fix is named"
    return done.stderr


@contextlib.contextmanager
def control(path: Path) -> Iterator[Control]:
    client = Control(path)
    try:
        yield client
    finally:
        client.close()


def until(client: Control, way: str, name: str, count: int) -> dict[str, Any]:
    """What the emulator tells once it has counted so many."""
    patience = time.monotonic() + PATIENCE_S
    while (told := client.ask("stats"))[way][name] < count:
        assert time.monotonic() < patience, told
        time.sleep(0.01)
    return told


def test_help_and_version() -> None:
    program = str(places.product("emulator/beowire-link"))
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    for key in ("rate=", "delay=", "jitter=", "loss=", "burst=", "duplicate=", "reorder=",
                "corrupt=", "queue=", "mark=", "mtu=", "coalesce="):  # fmt: skip
        assert key in shown
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"beowire-link \d+\.\d+\.\d+\n", version.stdout)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "two interfaces"),
        (["pa"], "two interfaces"),
        (["pa", "rate=1G"], "two interfaces"),
        (["pa", "pb", "pc"], "KEY=VALUE"),
        (["pa", "pb", "rate=fast"], "rate=fast"),
        (["pa", "pb", "delay=10"], "unit"),
        (["pa", "pb", "xy.rate=1G"], "no such setting"),
        (["pa", "pb", "jitter=1ms"], "delay"),
        (["pa", "pb", "loss=90%", "burst=2"], "burst"),
        (["--seed", "x", "pa", "pb"], "--seed"),
        (["--cpu", "one", "pa", "pb"], "--cpu"),
        (["--cpu", "900", "pa", "pb"], "processor 900"),
        (["--late", "5", "pa", "pb"], "--late"),
        (["--control"], "needs a value"),
        (["--fast", "pa", "pb"], "--fast"),
    ],
)
def test_wrong_command_lines(net: Net, words: list[str], said: str) -> None:
    assert said in refused(net, *words, status=2)


def test_interfaces_that_cannot_be_joined(own_net: Net) -> None:
    net = own_net
    assert "nosuch: no such interface" in refused(net, "pa", "nosuch")
    assert "same interface" in refused(net, "pa", "pa")
    assert "not an Ethernet" in refused(net, "lo", "pb")
    net.ip("l", "link set pb down")
    assert "ip link set pb up" in refused(net, "pa", "pb")


def test_without_privilege(net: Net) -> None:
    program = str(places.product("emulator/beowire-link"))
    nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", program]
    done = subprocess.run(
        net.command(*nobody, "pa", "pb"), capture_output=True, text=True, check=False
    )
    if "setpriv" in done.stderr or "ermission" in done.stderr.split("beowire-link")[0]:
        pytest.skip("the build cannot be reached by users without privilege")
    assert done.returncode == 1
    assert "CAP_NET_RAW" in done.stderr


def test_control_paths_that_cannot_be_had(net: Net, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("kept")
    assert "no socket" in refused(net, "--control", str(plain), "pa", "pb")
    assert plain.read_text() == "kept"
    assert "cannot listen" in refused(net, "--control", "/proc/no/where", "pa", "pb")
    assert "path" in refused(net, "--control", "x" * 200, "pa", "pb")
    taken = tmp_path / "taken"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(taken))
        other.listen()
        assert "another program" in refused(net, "--control", str(taken), "pa", "pb")
    assert taken.exists()
    # now nobody listens there any more: it is replaced, and gone at the end
    with link(net, options=("--control", str(taken))), control(taken) as client:
        assert "valid" in client.ask("stats")
    assert not taken.exists()
    # a link that cannot begin leaves no socket
    refused(net, "--control", str(taken), "pa", "nosuch")
    assert not taken.exists()


def test_a_full_standard_output(net: Net) -> None:
    program = str(places.product("emulator/beowire-link"))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            net.command(program, "pa", "pb"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=240,
        )
    assert done.returncode == 1
    assert "standard output" in done.stderr


def test_ready_tells_the_settings(net: Net) -> None:
    with link(net, "rate=1G", "ba.delay=5ms", "loss=0.1%", options=("--seed", "9")) as running:
        ready = running.ready
    assert ready["ready"] is True
    assert ready["interfaces"] == ["pa", "pb"]
    assert ready["seed"] == 9
    assert Path(ready["control"]).name == "control"
    assert ready["ab"]["settings"]["rate"] == 1_000_000_000
    assert ready["ab"]["settings"]["delay_ns"] == 0
    assert ready["ba"]["settings"]["delay_ns"] == 5_000_000
    assert ready["ab"]["settings"]["loss"] == 0.001


def test_requests(own_net: Net, tmp_path: Path) -> None:
    path = tmp_path / "link"
    own_net.silence()
    with link(own_net, options=("--control", str(path))) as running, control(path) as client:
        assert path.stat().st_mode & 0o777 == 0o600
        with own_net.raw("b") as receiver, own_net.raw("a") as sender:
            sender.send(frame(bytes(46)))
            assert len(received(receiver, 10, 1)) == 1
            told = client.ask("stats")
            assert told["ab"]["frames"] == told["ab"]["delivered"] == 1
            assert client.ask("set ab.loss=100%") == {"ok": True}
            sender.send(frame(bytes(46)))
            told = until(client, "ab", "lost", 1)
            assert received(receiver) == []
            assert told["ab"]["settings"]["loss"] == 1
            assert told["ba"]["settings"]["loss"] == 0
            assert client.ask("reset") == {"ok": True}
            told = client.ask("stats")
            assert told["ab"]["frames"] == told["ab"]["lost"] == 0
            assert told["ab"]["lateness_us"]["frames"] == 0
            assert told["ab"]["settings"]["loss"] == 1
        for wrong in ("", "set", "set delay=now", "set rate=1M jitter=1s", "halt", "stop it"):
            answer = client.ask(wrong)
            assert answer["ok"] is False
            assert answer["error"]
        assert client.ask("stats")["ab"]["settings"]["rate"] == 0
        with control(path) as second:
            assert second.ask("stop") == {"ok": True}
        running.process.wait(60)
    assert running.process.returncode == 0
    assert not path.exists()


def test_clients_that_misbehave(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "link"
    with link(net, options=("--control", str(path))), control(path) as good:
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(12)]
        try:
            for each in crowd:
                each.connect(str(path))
                with contextlib.suppress(OSError):
                    each.send(b"stats")  # and never the end of the line
            assert good.ask("stats")["valid"]
        finally:
            for each in crowd:
                each.close()
        with socket.socket(socket.AF_UNIX) as endless:
            endless.connect(str(path))
            with contextlib.suppress(OSError):
                for _ in range(100):
                    endless.send(b"x" * 1000)
            endless.settimeout(30)
            with contextlib.suppress(ConnectionError):
                assert json.loads(endless.recv(1000))["ok"] is False
        assert good.ask("stats")["valid"]


def test_settings_change_while_frames_are_under_way(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "link"
    with (
        link(net, "delay=600ms", options=("--control", str(path))),
        control(path) as client,
        net.raw("b") as receiver,
        net.raw("a") as sender,
    ):
        sent = time.clock_gettime_ns(time.CLOCK_REALTIME)
        sender.send(frame(b"slow".ljust(46)))
        until(client, "ab", "under_way", 1)
        client.ask("set delay=0")
        sender.send(frame(b"next".ljust(46)))
        first, second = received(receiver, 10, 2)
    assert first.bytes[14:18] == b"slow"
    assert second.bytes[14:18] == b"next"
    assert first.at - sent >= 600_000_000


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_an_idle_link_sleeps_after_requests(net: Net, tmp_path: Path) -> None:
    path = tmp_path / "link"
    with (
        link(net, options=("--control", str(path))) as running,
        control(path) as client,
        net.raw("a") as sender,
    ):
        for _ in range(500):  # while it looks for frames, so that it may see a request early
            sender.send(frame(bytes(46)))
            client.ask("stats")
        before_s, began = processor_s(running.process.pid), time.monotonic()
        time.sleep(2.0)
        spent_s = processor_s(running.process.pid) - before_s
        assert spent_s < 0.5 * (time.monotonic() - began)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_end_it_in_good_order(net: Net, tmp_path: Path, sign: signal.Signals) -> None:
    path = tmp_path / "link"
    with link(net, "delay=1s", options=("--control", str(path))) as running:
        with net.raw("a") as sender:
            sender.send(frame(bytes(46)))
        assert "promiscuity 1" in net.ip("l", "-d link show pa")
        assert running.end(sign) in (0, 3)
        assert running.report["ab"]["frames"] <= 1
    assert not path.exists()
    assert "promiscuity 0" in net.ip("l", "-d link show pa")


def test_an_overloaded_run_is_invalid(own_net: Net) -> None:
    """It is stopped while frames fall due, and later while its ring overflows."""
    own_net.silence()
    running = Link(own_net, "pa", "pb", "rate=100M", "delay=1ms", "queue=100M")
    try:
        with own_net.raw("b") as receiver, own_net.raw("a") as sender:
            for _ in range(20):
                sender.send(frame(bytes(100)))
                time.sleep(0.002)
            stop(running.process.pid)
            sender.send(frame(bytes(100)))
            time.sleep(0.2)
            for _ in range(8000):
                sender.send(frame(bytes(60)))
            go_on(running.process.pid)
            running.settle(8021, missed=True)
            arrivals = received(receiver)
        status = running.end()
    finally:
        running.kill()
    told = running.report["ab"]
    assert status == 3
    assert running.report["valid"] is False
    assert told["missed"] > 0
    assert told["missed"] + len(arrivals) == 8021
    assert told["lateness_us"]["max"] >= 150_000
    reasons = " ".join(running.report["reasons"])
    assert "late" in reasons
    assert "ring was full" in reasons


def test_the_bound_is_configurable(net: Net) -> None:
    def status(*options: str) -> int:
        running = Link(net, *options, "pa", "pb")
        try:
            with net.raw("b") as receiver, net.raw("a") as sender:
                for _ in range(20):
                    sender.send(frame(bytes(46)))
                assert len(received(receiver, 10, 20)) == 20
            return running.end()
        finally:
            running.kill()

    assert status("--late", "1ns", "--late-share", "0") == 3
    assert status("--late", "100s") == 0


def test_an_interface_that_vanishes(own_net: Net) -> None:
    with link(own_net) as running:
        own_net.ip("l", "link del pb")
        running.process.wait(60)
        assert running.end() == 1
    assert running.report["valid"] is False
    assert "pb is gone" in running.errors
    assert "pb is gone" in running.report["reasons"][0]


def test_an_interface_that_is_renamed(own_net: Net) -> None:
    with link(own_net) as running, own_net.raw("b") as receiver, own_net.raw("a") as sender:
        own_net.ip("l", "link set pb down")
        own_net.ip("l", "link set pb name other")
        own_net.ip("l", "link set other up")
        patience = time.monotonic() + PATIENCE_S
        arrivals = []
        while not arrivals:  # what comes before it has noticed is lost
            assert time.monotonic() < patience
            assert running.process.poll() is None
            sender.send(frame(bytes(46)))
            arrivals = received(receiver, 0.3, 1)


def test_a_link_that_flaps(own_net: Net, tmp_path: Path) -> None:
    net, path = own_net, tmp_path / "link"
    with (
        link(net, options=("--control", str(path))) as running,
        control(path) as client,
        net.raw("b") as receiver,
        net.raw("a") as sender,
    ):
        for _ in range(3):
            net.ip("l", "link set pb down")
            down = client.ask("stats")["ab"]["down"]
            sender.send(frame(b"lost".ljust(46)))
            until(client, "ab", "down", down + 1)
            net.ip("l", "link set pb up")
            while net.ip("b", "-br link show eth0").split()[1] != "UP":
                time.sleep(0.02)
            sender.send(frame(b"kept".ljust(46)))
            arrivals = received(receiver, 10, 1)
            assert [each.bytes[14:18] for each in arrivals] == [b"kept"]
        # and the side where frames come in
        net.ip("l", "link set pa down")
        net.ip("l", "link set pa up")
        while net.ip("a", "-br link show eth0").split()[1] != "UP":
            time.sleep(0.02)
        sender.send(frame(b"kept".ljust(46)))
        assert received(receiver, 10, 1)
    told = running.report["ab"]
    assert told["down"] >= 3
    assert told["refused"] == told["dropped_device"] == 0


def test_a_cable_that_comes_back_is_another_one(own_net: Net) -> None:
    """After an interface is gone, a new run finds its successor."""
    with link(own_net) as running:
        own_net.ip("b", "link del eth0")
        running.process.wait(60)
    cable(own_net, "b")
    with link(own_net), own_net.raw("b") as receiver, own_net.raw("a") as sender:
        sender.send(frame(bytes(46)))
        assert received(receiver, 10, 1)


def test_nothing_is_left(net: Net) -> None:
    with link(net):
        assert "beowire-link" in _processes(net)
    assert "beowire-link" not in _processes(net)


def _processes(net: Net) -> str:
    pids = ip(f"netns pids {net.name('l')}").split()
    return " ".join(Path(f"/proc/{pid}/comm").read_text() for pid in pids)
