# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file against tcp_rmem: the setting is the receiver's, in its namespace alone, and the transfer
is timed to its last byte."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from beowire import namespaces
from beowire.errors import BeowireError
from beowire.evidence.experiment import Context
from beowire.evidence.experiments import files
from beowire.evidence.figures import Figures
from beowire.evidence.registry import ENTRIES
from beowire.lab import stream
from beowire.lab.lab import Lab
from beowire.topology.topology import End

RECEIVE = Path("/proc/sys/net/ipv4/tcp_rmem")
FIRST, SECOND = End("node1", "eth0"), End("node2", "eth0")
FAR = "5000 us one way"
PARAMETERS: dict[str, Any] = {
    "rate_bits": 1_000_000_000,
    "stated_bytes": 900_000_000,
    "file_bytes": 300_000,
    "buffers": (10_000, 100_000),
    "rounds": 2,
}


def told(lab: Lab, node: str) -> str:
    return namespaces.within(lab.namespace_path(node), RECEIVE.read_text)


@pytest.mark.usefixtures("two_nodes")
def test_the_receiver_has_the_setting_while_a_file_comes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = RECEIVE.read_text()
    seen: list[tuple[str, str]] = []
    transfer: Callable[..., stream.Transfer] = stream.transfer

    def watched(lab: Lab, *rest: Any) -> stream.Transfer:
        seen.append((told(lab, "node1"), told(lab, "node2")))
        return transfer(lab, *rest)

    monkeypatch.setattr(stream, "transfer", watched)
    context = Context(lambda _: None, tmp_path, time.monotonic() + 300)
    found = files.receive_buffer(PARAMETERS, context)
    assert [theirs.split() for _, theirs in seen] == [["10000"] * 3, ["100000"] * 3] * 2
    assert {mine for mine, _ in seen} == {before}
    assert RECEIVE.read_text() == before
    assert [x for x, _ in found.curves["seconds"]] == [10_000, 100_000]
    assert all(y > 0 for _, y in found.curves["seconds"])
    assert found.remarks[0] == "a file of 300,000 bytes: the paper's divided by 3000"


@pytest.mark.usefixtures("two_nodes")
def test_a_small_window_holds_up_who_sends_over_a_long_line(tmp_path: Path) -> None:
    """10,000 bytes of buffer hold at most so many on the way: each needs a round trip of 10 ms,
    for much of which the kernel finds the sender held up. Without a delay that is another curve."""
    context = Context(lambda _: None, tmp_path, time.monotonic() + 300)
    more = {"buffers": (10_000, 4_000_000), "delays_us": (0, 5000), "rounds": 1}
    found = files.receive_buffer({**PARAMETERS, **more}, context)
    names = {"seconds", "held up", f"seconds, {FAR}", f"held up, {FAR}"}
    assert set(found.curves) == names
    assert found.pick(f"seconds, {FAR}@10000") > 0.010 * PARAMETERS["file_bytes"] / 10_000
    assert found.pick(f"held up, {FAR}@10000") > 0.25
    assert all(
        0 <= share <= 1 for name in names if "held" in name for _, share in found.curve(name)
    )


def test_a_window_that_is_never_full_holds_up_nobody(two_nodes: Lab) -> None:
    assert stream.transfer(two_nodes, FIRST, SECOND, 1000, 60).held_up_s == 0


NEAR_TRIP, FAR_TRIP = "200 us one way", "1000 us one way"


def world(**other: float) -> Figures:
    """Windows of 5000, 10,000, 25,000, 50,000 and 500,000 bytes, each for a round trip, and a line
    of a Gigabit: what a file of 10 MB takes. A named number is another one."""
    points = {10_000: 5e3, 20_000: 1e4, 50_000: 2.5e4, 100_000: 5e4, 1_000_000: 5e5}

    def took(window: float, trip_s: float) -> float:
        return max(1e7 / window * trip_s, 0.08)

    curves = {
        f"seconds, {name}": {buffer: took(window, trip_s) for buffer, window in points.items()}
        for name, trip_s in ((NEAR_TRIP, 0.0005), (FAR_TRIP, 0.0021))
    }
    curves[f"held up, {NEAR_TRIP}"] = {10_000: 0.95, 1_000_000: 0.2}
    for name, value in other.items():
        curve, _, buffer = name.partition("@")
        curves[curve][int(buffer)] = value
    return Figures(curves={name: tuple(sorted(each.items())) for name, each in curves.items()})


def test_the_round_trip_explains() -> None:
    """It holds in a world where a window is carried in each round trip, and in no other."""
    entry = next(each for each in ENTRIES if each.id == "A11-receive-buffer")
    assert entry.explanation is not None
    judge = entry.explanation.criterion.judge
    assert judge(world()).holds, judge(world()).why
    for name, value in (
        (f"seconds, {NEAR_TRIP}@10000", 0.1),  # the buffer does not matter
        (f"held up, {NEAR_TRIP}@10000", 0.3),  # something else held the sender up
        (f"seconds, {FAR_TRIP}@10000", 1.1),  # nor does the round trip
        (f"seconds, {FAR_TRIP}@10000", 6.0),
        (f"seconds, {FAR_TRIP}@1000000", 0.2),  # it costs also where the window holds it
    ):
        assert not judge(world(**{name: value})).holds, name


def test_a_transfer_is_whole_or_late(two_nodes: Lab) -> None:
    size = 3_000_001
    before = stream.rx_bytes(two_nodes, SECOND)
    assert stream.transfer(two_nodes, FIRST, SECOND, size, 60).seconds > 0
    assert stream.rx_bytes(two_nodes, SECOND) - before > size
    with pytest.raises(BeowireError, match="did not end in 0 s"):
        stream.transfer(two_nodes, FIRST, SECOND, 1 << 30, 0.01)
