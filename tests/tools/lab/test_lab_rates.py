# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `lab check-rates` makes of what it measured; the measuring itself is tested in labs."""

import socket
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from beowire.lab import rates
from beowire.lab.rates import Check
from beowire.topology import reader
from beowire.topology.topology import End

PAIR = """
[[nodes]]
name = "node"
count = 2

[[links]]
name = "cable"
a = "node1"
b = "node2"
rate = "20M"
"""
ADDRESS = bytes.fromhex("020000000001")


@pytest.mark.parametrize(
    ("tcp", "raw", "offered", "verdict"),
    [
        (20e6, 20e6, 23e6, "alike"),
        (18.1e6, 20e6, 23e6, "alike"),
        (20e6, 18.1e6, 23e6, "alike"),
        (17.9e6, 20e6, 23e6, "they differ"),
        (20e6, 17.9e6, 23e6, "they differ"),
        (20e6, 20e6, 21e6, "unknown: the machine cannot send faster than the rate"),
        (20e6, 10e6, 10e6, "unknown: the machine cannot send faster than the rate"),
    ],
)
def test_a_verdict_needs_both_senders_alike_and_enough_on_offer(
    tcp: float, raw: float, offered: float, verdict: str
) -> None:
    found = Check("node1", "node2", 20_000_000, tcp, raw, offered, "")
    assert found.verdict == verdict
    assert found.good == (verdict == "alike")


def test_what_is_not_compared_is_good() -> None:
    found = Check("node1", "node2", 0, 0.0, 0.0, 0.0, "no rate on the way")
    assert (found.verdict, found.good) == ("not compared: no rate on the way", True)


def test_what_is_offered_is_the_bits_of_the_frames_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender of a thousand frames, by a clock that goes on two seconds meanwhile."""
    now = 100.0
    frames: list[bytes] = []

    def received(*_: object) -> float:
        nonlocal now
        now += 2.0
        return 7.0

    def flood(_: object, frame: bytes, ending: threading.Event, sent: Any) -> None:
        frames.append(frame)
        sent.frames = 1000
        ending.wait()

    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(rates, "namespaces", SimpleNamespace(within=lambda _, act: act()))
    monkeypatch.setattr(rates, "_hardware", lambda _: ADDRESS)
    monkeypatch.setattr(rates, "_raw_socket", lambda _: socket.socket())
    monkeypatch.setattr(rates, "_received_bits", received)
    monkeypatch.setattr(rates, "_flood", flood)
    lab: Any = SimpleNamespace(
        topology=reader.parse(PAIR, "test", "test.toml"), namespace_path=lambda name: name
    )
    told = rates._raw(lab, End("node1", "eth0"), End("node2", "eth0"), 2.0)
    (frame,) = frames
    assert len(frame) == 14 + lab.topology.mtu_bytes()
    assert told == (7.0, 1000 * len(frame) * 8 / 2.0)


def test_a_clock_that_is_read_late_makes_no_rate_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second 1000 bytes come; the first look at them takes a second longer than the last."""
    now, late_s = 100.0, iter([1.0, 0.0])

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def rx_bytes(*_: object) -> int:
        nonlocal now
        seen = int(1000 * now)
        now += next(late_s)
        return seen

    monkeypatch.setattr(rates, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(rates, "stream", SimpleNamespace(rx_bytes=rx_bytes))
    lab: Any = None
    assert rates._received_bits(lab, End("node2", "eth0"), 2.0) == pytest.approx(8000)
