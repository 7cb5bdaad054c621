# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the emulated link does to frames, by the word of those who receive them."""

import hashlib
import random
import socket
import statistics
import struct
import threading
import time
from itertools import pairwise

import pytest
from link_net import (
    ADDRESS,
    ADDRESS6,
    ETHERTYPE,
    Link,
    Net,
    frame,
    link,
    received,
    wire_bits,
)

_SOL_PACKET = 263
_PACKET_AUXDATA = 8
_AUXDATA = (_SOL_PACKET, _PACKET_AUXDATA)
COUNTED = ("lost", "duplicated", "reordered", "corrupted", "marked", "dropped_queue", "too_long")


def settled(running: Link, frames: int, to: str = "b") -> dict[str, int]:
    """The direction's report, after a check that all frames are accounted for."""
    told = running.report["ab" if to == "b" else "ba"]
    assert told["missed"] == 0
    went = told["delivered"] - told["duplicated"]
    assert went + told["lost"] + told["dropped_queue"] + told["too_long"] == told["frames"]
    assert told["frames"] >= frames
    return dict(told)


@pytest.mark.parametrize("to", ["b", "a"])
def test_frames_pass_unchanged(net: Net, to: str) -> None:
    seeded = random.Random(7)
    sizes = [46, 47, 60, 100, 1499, 1500, 1501, 4000, 8986]
    frames = [frame(seeded.randbytes(size), to) for size in sizes]
    with (
        net.raw(to) as receiver,
        net.raw("a" if to == "b" else "b") as sender,
        link(net) as running,
    ):
        for each in frames:
            sender.send(each)
        arrivals = received(receiver, 10, len(frames))
    assert [each.bytes for each in arrivals] == frames
    told = settled(running, len(frames), to)
    assert all(told[name] == 0 for name in COUNTED)


@pytest.mark.parametrize("kind", [0x8100, 0x88A8], ids=["802.1Q", "802.1ad"])
def test_vlan_tags_pass(net: Net, kind: int) -> None:
    """A kernel hands them over apart from the frame, to the emulator and to the receiver."""
    plain = frame(bytes(range(46)))
    tag = kind.to_bytes(2, "big") + (0x6005).to_bytes(2, "big")
    with net.raw("b", 3) as receiver, net.raw("a") as sender, link(net, "mtu=1500"):
        receiver.setsockopt(_SOL_PACKET, _PACKET_AUXDATA, 1)
        receiver.settimeout(10)
        sender.send(plain[:12] + tag + plain[12:])
        while True:
            data, more, _, _ = receiver.recvmsg(2000, 256)
            if data == plain:
                break
    told = next(each for level, number, each in more if (level, number) == _AUXDATA)
    assert struct.unpack("IIIHHHH", told)[5:] == (0x6005, kind)


def test_delay_by_the_receivers_clock(own_net: Net) -> None:
    took = []
    own_net.silence()
    with (
        own_net.raw("b") as receiver,
        own_net.raw("a") as sender,
        link(own_net, "delay=20ms") as running,
    ):
        for number in range(40):
            began = time.clock_gettime_ns(time.CLOCK_REALTIME)
            sender.send(frame(number.to_bytes(46, "big")))
            (arrival,) = received(receiver, 10, 1)
            took.append(arrival.at - began)
    assert min(took) >= 20_000_000
    # what it says of its own lateness is what the receiver sees, but for the way in and out
    late = running.report["ab"]["lateness_us"]
    assert statistics.median(took) / 1e3 - 20_000 <= late["median"] + 2_000
    assert late["frames"] == 40


def test_rate_by_the_receivers_clock(net: Net) -> None:
    """No frame leaves before the line is free of those before it. Half of them are later than
    their turn by no more than the emulator says, which says no more than the receiver sees."""
    frames, size, rate = 200, 1514, 10_000_000
    before, after = [], []
    with net.raw("b") as receiver, net.raw("a") as sender:
        with link(net, "rate=10M", "queue=1M") as running:
            for number in range(frames):
                before.append(time.time_ns())
                sender.send(frame(number.to_bytes(size - 14, "big")))
                after.append(time.time_ns())
            arrivals = received(receiver, 10, frames)
        assert [int.from_bytes(each.bytes[14:], "big") for each in arrivals] == list(range(frames))
    each_takes = wire_bits(size) * 1_000_000_000 // rate
    earliest, latest = before[0], after[0]
    beyond = []
    for sent, gone, arrival in zip(before, after, arrivals, strict=True):
        earliest, latest = max(earliest, sent), max(latest, gone) + each_takes
        assert arrival.at >= earliest
        earliest += each_takes
        beyond.append(arrival.at - latest)
    late = running.report["ab"]["lateness_us"]["median"] * 1e3
    assert statistics.median(beyond) <= late + 1e6
    assert late <= statistics.median(beyond) + each_takes + 1e6


def test_loss_duplicates_and_reordering_are_as_counted(own_net: Net) -> None:
    frames = 1000
    settings = ("loss=10%", "duplicate=5%", "reorder=3%", "delay=1ms", "burst=3")
    own_net.silence()
    with own_net.raw("b") as receiver, own_net.raw("a") as sender:
        with link(own_net, *settings, options=("--seed", "42")) as running:
            for number in range(frames):
                sender.send(frame(number.to_bytes(46, "big")))
            running.settle(frames)
            arrivals = received(receiver)
        numbers = [int.from_bytes(each.bytes[14:], "big") for each in arrivals]
    told = settled(running, frames)
    assert told["frames"] == frames
    assert told["lost"] == frames - len(set(numbers))
    assert told["duplicated"] == len(numbers) - len(set(numbers))
    assert told["lost"]
    assert told["duplicated"]
    assert told["reordered"]
    overtaken = sum(one > other for one, other in pairwise(numbers))
    assert 0 < overtaken <= 2 * told["reordered"]
    carried = told["lost"] + told["delivered"] - told["duplicated"]
    assert told["realised_loss"] == pytest.approx(told["lost"] / carried)


def test_the_seed_decides(net: Net) -> None:
    def lost(seed: str) -> list[bytes]:
        options = ("--seed", seed)
        with (
            net.raw("b") as receiver,
            net.raw("a") as sender,
            link(net, "loss=30%", options=options) as running,
        ):
            for number in range(100):
                sender.send(frame(number.to_bytes(46, "big")))
            running.settle(100)
            return [each.bytes for each in received(receiver)]

    first = lost("5")
    assert lost("5") == first
    assert lost("6") != first


def test_corruption_is_one_bit_and_spares_arp(net: Net) -> None:
    with (
        net.raw("b") as receiver,
        net.raw("a") as sender,
        net.raw("b", 0x0806) as arps,
        link(net, "corrupt=100%") as running,
    ):
        for number in range(50):
            sender.send(frame(number.to_bytes(100, "big")))
            sender.send(frame(bytes(46), ethertype=0x0806))
        running.settle(100)
        arrivals = received(receiver, 10, 50)
        spared = received(arps)
    assert len(arrivals) == 50
    for number, arrival in enumerate(arrivals):
        meant = frame(number.to_bytes(100, "big"))
        wrong = int.from_bytes(meant, "big") ^ int.from_bytes(arrival.bytes, "big")
        assert wrong.bit_count() == 1
        assert arrival.bytes[:14] == meant[:14]
    assert [each.bytes[14:] for each in spared if each.bytes[14:] == bytes(46)] == [bytes(46)] * 50


def _folded(data: bytes) -> int:
    """The Internet checksum's sum [RFC 1071]."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_corrupted_frames_have_the_checksum_that_was_right(net: Net) -> None:
    """The sender's kernel leaves it to the device, which here is the emulator."""
    payload = random.Random(5).randbytes(1000)
    with (
        net.raw("b", 0x0800) as receiver,
        net.udp("a") as sender,
        link(net, "ab.corrupt=100%") as running,
    ):
        for _ in range(50):
            sender.sendto(payload, (ADDRESS["b"], 9))
        running.settle(50)
        arrivals = [each.bytes for each in received(receiver)]
    wrong = [each for each in arrivals if len(each) == 1042 and each[42:] != payload]
    assert len(wrong) > 30
    for each in wrong:
        pseudo = each[26:34] + struct.pack("!HH", 17, 1008)
        assert _folded(pseudo + each[34:42] + payload) == 0xFFFF


def _stream(one: socket.socket, data: bytes) -> threading.Thread:
    def pump() -> None:
        with one:
            one.sendall(data)

    thread = threading.Thread(target=pump)
    thread.start()
    return thread


def _drained(other: socket.socket) -> bytes:
    parts = []
    with other:
        while part := other.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def test_tcps_super_frames_are_charged_as_segments(net: Net) -> None:
    """Offloads are on: the sender hands 64 KiB to its device at a time."""
    rate = 40_000_000
    data = random.Random(3).randbytes(2_000_000)
    with link(net, "rate=40M", "delay=1ms") as running:
        one, other = net.tcp(5001)
        began = time.monotonic()
        thread = _stream(one, data)
        assert hashlib.sha256(_drained(other)).digest() == hashlib.sha256(data).digest()
        spent = time.monotonic() - began
        thread.join()
    told = running.report["ab"]
    # jumbo frames: 9000 bytes less the headers of IP and TCP
    assert told["frames"] >= len(data) / (9000 - 40)
    assert told["bytes"] / told["frames"] <= 9014
    assert told["odd_offloads"] == 0
    # all of it was on the wire, less what waited in the queue when the clock began
    assert spent >= 0.9 * len(data) * 8 / rate


@pytest.mark.parametrize("setting", ["corrupt=3%", "loss=2%", "reorder=5%", "duplicate=5%"])
def test_tcp_fixes_what_the_link_breaks(net: Net, setting: str) -> None:
    """In particular: a wrong bit is found by the checksum, though the sender left that to us."""
    data = random.Random(4).randbytes(1_500_000)
    before = net.counter("b", "Tcp", "InCsumErrors")
    with link(net, "ab." + setting, "delay=100us") as running:
        one, other = net.tcp(5002)
        thread = _stream(one, data)
        assert _drained(other) == data
        thread.join()
    told = running.report["ab"]
    wrong = net.counter("b", "Tcp", "InCsumErrors") - before
    if setting.startswith("corrupt"):
        assert told["corrupted"] > 0
        # some bits hit the IP header instead
        assert 0 < wrong <= told["corrupted"]
    else:
        assert wrong == 0
        assert told["lost"] + told["reordered"] + told["duplicated"] > 0


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=["ipv4", "ipv6"])
def test_marks_reach_the_receiver(net: Net, family: int) -> None:
    ipv4 = family == socket.AF_INET
    level, tos, tell = (
        (socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS)
        if ipv4
        else (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS)
    )
    with net.udp("b", family=family) as receiver, net.udp("a", family=family) as sender:
        receiver.setsockopt(level, tell, 1)
        receiver.settimeout(5.0)
        to = ((ADDRESS if ipv4 else ADDRESS6)["b"], receiver.getsockname()[1])
        with link(net, "rate=20M", "mark=10000", "queue=1M") as running:
            sender.sendto(b"first", to)
            receiver.recv(100)  # the neighbour is known: nothing overtakes what waited for that
            receiver.settimeout(1.0)
            for capable in (2, 0):
                sender.setsockopt(level, tos, 0xB8 | capable)
                for _ in range(40):
                    sender.sendto(bytes(1000), to)
            running.settle(81)
            seen = []
            try:
                while True:
                    _, more, _, _ = receiver.recvmsg(2000, 64)
                    seen.append(more[0][2][0])
            except TimeoutError:
                pass
    assert len(seen) == 80
    assert seen.count(0xBB) == running.report["ab"]["marked"] > 0
    assert seen.count(0xB8) == 40, "a sender that does not understand marks got one"
    assert seen[:10] == [0xBA] * 10, "marked although the queue was short"


def test_longer_packets_are_dropped(net: Net) -> None:
    with net.raw("b") as receiver, net.raw("a") as sender, link(net, "mtu=1500") as running:
        for size in (1500, 1501, 9000, 46):
            sender.send(frame(bytes(size)))
        arrivals = received(receiver, 10, 2)
    assert [len(each.bytes) for each in arrivals] == [1514, 60]
    assert running.report["ab"]["too_long"] == 2


def test_a_full_queue_drops_the_newest(net: Net) -> None:
    with net.raw("b") as receiver, net.raw("a") as sender:
        with link(net, "rate=1M", "queue=10000") as running:
            for number in range(30):
                sender.send(frame(number.to_bytes(986, "big")))
            running.settle(30)
            arrivals = received(receiver)
        numbers = [int.from_bytes(each.bytes[14:], "big") for each in arrivals]
    told = settled(running, 30)
    assert told["dropped_queue"] == 30 - len(numbers)
    assert numbers[:10] == list(range(10))
    assert len(numbers) < 30


def test_coalesced_frames_come_together(net: Net) -> None:
    with net.raw("b") as receiver, net.raw("a") as sender, link(net, "coalesce=50ms"):
        for number in range(10):
            sender.send(frame(number.to_bytes(46, "big")))
            time.sleep(0.001)
        arrivals = received(receiver, 10, 10)
    # all ten in one group, sent over 10 ms or more, or few groups on a busy machine
    gaps = [b.at - a.at for a, b in pairwise(arrivals)]
    assert len(arrivals) == 10
    assert statistics.median(gaps) < 1_000_000


def test_raw_and_other_protocols_pass_alike(net: Net) -> None:
    with (
        net.raw("b", 3) as everything,
        net.raw("a") as sender,
        link(net, "ab.delay=1ms") as running,
    ):
        for ethertype in (0x88CC, 0x8809, 0x0842, ETHERTYPE):
            sender.send(frame(bytes(46), ethertype=ethertype))
        running.settle(4)
        seen = {each.bytes[12:14].hex() for each in received(everything)}
    assert {"88cc", "8809", "0842", "88b6"} <= seen
