# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Losses, rates and corruption meet every sender alike: TCP, and raw frames that bypass the
sender's queueing discipline."""

import hashlib
import threading
from functools import partial

import pytest
import traffic
from beowire.lab import up
from beowire.lab.lab import Lab, Shape, load
from traffic import raw_frame, receiving, send_raw, until

FRAMES = 4000
RATE_BITS = 40_000_000
RATE_SECONDS = 1.5


def shape(made: Lab, **fields: float | int | bool) -> Lab:
    """Gives every port of the lab this shape."""
    shaped = Shape(**fields)  # type: ignore[arg-type]
    return up.reshape(made.name, dict.fromkeys(made.node_names(), shaped))


def numbered(count: int, size: int = 100) -> list[bytes]:
    return [raw_frame(number.to_bytes(4, "big") + bytes(size - 4)) for number in range(count)]


def send_digest(made: Lab, size: int) -> tuple[str, str]:
    """Sends `size` bytes over TCP; the digests of what was sent and of what was received."""
    sender, receiver = traffic.tcp_pair(made)
    data = bytes(range(256)) * (size // 256)

    def pump() -> None:
        with sender:
            sender.sendall(data)

    thread = threading.Thread(target=pump)
    thread.start()
    got = hashlib.sha256()
    with receiver:
        while chunk := receiver.recv(1 << 16):
            got.update(chunk)
    thread.join()
    return hashlib.sha256(data).hexdigest(), got.hexdigest()


def test_a_clear_port_loses_nothing(two_nodes: Lab) -> None:
    frames = numbered(FRAMES)
    with receiving(two_nodes, "node2", least=FRAMES) as received:
        send_raw(two_nodes, "node1", frames)
    assert received.frames == frames


def test_loss_hits_raw_frames(two_nodes: Lab) -> None:
    shape(two_nodes, loss=0.1)
    with receiving(two_nodes, "node2") as received:
        send_raw(two_nodes, "node1", numbered(FRAMES))
        until(lambda: up.port_counts(two_nodes)["node1"].frames >= FRAMES)
        received.least = FRAMES - up.port_counts(two_nodes)["node1"].lost
    counts = up.port_counts(two_nodes)["node1"]
    assert counts.lost >= FRAMES - len(received.frames)
    # 0.1 of 4000 is 400, with a standard deviation of 19: six of them either way.
    assert 286 <= FRAMES - len(received.frames) <= 514


def test_loss_hits_tcp(two_nodes: Lab) -> None:
    before = traffic.counted(two_nodes, "node1")
    shape(two_nodes, loss=0.02)
    sent, got = send_digest(two_nodes, 8 << 20)
    assert sent == got
    assert up.port_counts(two_nodes)["node1"].lost > 0
    after = traffic.counted(two_nodes, "node1").since(before)
    assert after.tcp_retransmitted_segments > 0


def test_everything_lost(two_nodes: Lab) -> None:
    shape(two_nodes, loss=1.0)
    with receiving(two_nodes, "node2") as received:
        send_raw(two_nodes, "node1", numbered(200))
    assert received.frames == []


def test_loss_can_be_taken_back(two_nodes: Lab) -> None:
    shape(two_nodes, loss=1.0)
    shape(two_nodes)
    assert up.port_counts(two_nodes) == {}
    with receiving(two_nodes, "node2", least=200) as received:
        send_raw(two_nodes, "node1", numbered(200))
    assert len(received.frames) == 200


def test_one_port_alone(two_nodes: Lab) -> None:
    up.reshape(two_nodes.name, {"node2": Shape(loss=1.0)})
    with receiving(two_nodes, "node2", least=100) as there, receiving(two_nodes, "node1") as back:
        send_raw(two_nodes, "node1", numbered(100))
        send_raw(two_nodes, "node2", numbered(100))
    assert (len(there.frames), len(back.frames)) == (100, 0)


def test_corruption_flips_one_bit_behind_the_ethernet_header(two_nodes: Lab) -> None:
    shape(two_nodes, corrupt=1.0)
    frame = raw_frame(bytes(1000))
    with receiving(two_nodes, "node2", least=300) as received:
        send_raw(two_nodes, "node1", [frame] * 300)
    assert len(received.frames) == 300
    places = set()
    for got in received.frames:
        assert got[:14] == frame[:14]
        difference = int.from_bytes(got, "big") ^ int.from_bytes(frame, "big")
        assert difference.bit_count() == 1
        places.add(difference.bit_length())
    assert len(places) > 200  # 300 draws out of 8000 bits
    assert up.port_counts(two_nodes)["node1"].corrupted >= 300


def test_corruption_does_not_pass_tcp(two_nodes: Lab) -> None:
    shape(two_nodes, corrupt=0.03)
    sent, got = send_digest(two_nodes, 4 << 20)
    assert sent == got
    assert up.port_counts(two_nodes)["node1"].corrupted > 0


def test_a_rate_is_the_same_for_tcp_and_for_raw_frames(two_nodes: Lab) -> None:
    shape(two_nodes, rate_bits=RATE_BITS)
    stream = partial(traffic.tcp_bytes, two_nodes, RATE_SECONDS)
    flood = partial(traffic.flood_raw, two_nodes, "node1", raw_frame(bytes(9000)), RATE_SECONDS)
    for send in (stream, flood):
        traffic.assert_rate(two_nodes, "node2", send, RATE_BITS)


def test_long_packets_do_not_pass_a_switch_without_jumbo_frames(two_nodes: Lab) -> None:
    shape(two_nodes, longest_bytes=1500)
    with receiving(two_nodes, "node2", least=1) as received:
        send_raw(two_nodes, "node1", [raw_frame(bytes(size)) for size in (1500, 1501, 9000)])
        until(lambda: up.port_counts(two_nodes)["node1"].too_long == 2)
    assert [len(frame) for frame in received.frames] == [1514]


def test_raw_frames_do_not_pass_where_only_ip_does(two_nodes: Lab) -> None:
    shape(two_nodes, drop_raw=True)
    with receiving(two_nodes, "node2") as received:
        send_raw(two_nodes, "node1", numbered(50))
        until(lambda: up.port_counts(two_nodes)["node1"].raw_dropped >= 50)
    assert received.frames == []
    sent, got = send_digest(two_nodes, 1 << 20)
    assert sent == got


def test_shapes_are_written_down(two_nodes: Lab) -> None:
    shape(two_nodes, loss=0.25, rate_bits=RATE_BITS)
    assert load(two_nodes.name).shape("node1") == Shape(loss=0.25, rate_bits=RATE_BITS)


@pytest.mark.parametrize("loss", [1e-9, 0.5, 0.9999999])
def test_any_share_loads(two_nodes: Lab, loss: float) -> None:
    shape(two_nodes, loss=loss, corrupt=loss, longest_bytes=9000, drop_raw=True)
    assert set(up.port_counts(two_nodes)) == {"node1", "node2"}
