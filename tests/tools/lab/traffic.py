# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Senders and receivers on a lab's nodes: TCP, and raw frames that bypass the queueing discipline.

They run in threads that entered the nodes' namespaces, and count what arrives.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

from beowire import namespaces
from beowire.lab import counters, stream
from beowire.lab.lab import Lab
from beowire.topology.topology import End

ETHERTYPE = 0x88B6
_SOL_PACKET = 263
_PACKET_QDISC_BYPASS = 20
_SO_RCVBUFFORCE = 33
_BROADCAST = b"\xff" * 6
_SOURCE = bytes.fromhex("02beeeeeee01")  # a bridge forwards nothing from an address of zeros
_PORT = 47000
PATIENCE_S = 60.0


@dataclass
class Received:
    """What a receiver got."""

    frames: list[bytes] = field(default_factory=list)
    bytes: int = 0
    least: int = 0
    """So many frames have to come: before them no pause is the end, but for a long one."""


def _raw_socket(ethertype: int) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
    raw.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    raw.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
    raw.bind(("eth0", ethertype))
    raw.settimeout(0.1)
    return raw


def raw_frame(payload: bytes, ethertype: int = ETHERTYPE) -> bytes:
    return _BROADCAST + _SOURCE + ethertype.to_bytes(2, "big") + payload


def until(holds: Callable[[], bool]) -> None:
    """Waits for what the kernel may do late on a busy machine."""
    patience = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.01)


@contextlib.contextmanager
def receiving(
    lab: Lab, node: str, ethertype: int = ETHERTYPE, *, least: int = 0
) -> Iterator[Received]:
    """Collects raw frames on a node until the context ends, at least so many have come, and the
    wire has been quiet."""
    received = Received(least=least)
    raw = namespaces.within(lab.namespace_path(node), partial(_raw_socket, ethertype))
    ending = threading.Event()

    def collect() -> None:
        patience = float("inf")
        while True:
            try:
                frame = raw.recv(70000)
            except TimeoutError:
                if ending.is_set():
                    patience = min(patience, time.monotonic() + PATIENCE_S)
                    if len(received.frames) >= received.least or time.monotonic() > patience:
                        return
                continue
            received.frames.append(frame)
            received.bytes += len(frame)

    thread = threading.Thread(target=collect)
    thread.start()
    try:
        yield received
    finally:
        ending.set()
        thread.join()
        raw.close()


def send_raw(lab: Lab, node: str, frames: list[bytes], ethertype: int = ETHERTYPE) -> None:
    """Sends frames past the node's queueing discipline."""
    raw = namespaces.within(lab.namespace_path(node), partial(_raw_socket, ethertype))
    with raw:
        for frame in frames:
            while True:
                try:
                    raw.send(frame)
                    break
                except (BlockingIOError, OSError):
                    time.sleep(0.001)


def flood_raw(lab: Lab, node: str, frame: bytes, seconds: float) -> None:
    """Sends one frame over and over, faster than the link under test lets pass."""
    raw = namespaces.within(lab.namespace_path(node), partial(_raw_socket, ETHERTYPE))
    end = time.monotonic() + seconds
    with raw:
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                raw.send(frame)


def _listen() -> socket.socket:
    return socket.create_server(("", _PORT))


def _connect(address: str) -> socket.socket:
    return socket.create_connection((address, _PORT))


def tcp_pair(lab: Lab) -> tuple[socket.socket, socket.socket]:
    """A TCP connection from node1 to node2."""
    listener = namespaces.within(lab.namespace_path("node2"), _listen)
    with listener:
        connect = partial(_connect, lab.address("node2"))
        sender = namespaces.within(lab.namespace_path("node1"), connect)
        receiver, _ = listener.accept()
    return sender, receiver


def tcp_bytes(lab: Lab, seconds: float) -> int:
    """How many bytes of one TCP stream from node1 reach node2 in that time."""
    sender, receiver = tcp_pair(lab)
    ending = threading.Event()

    def pump() -> None:
        block = bytes(1 << 16)
        with contextlib.suppress(OSError):
            while not ending.is_set():
                sender.send(block)

    thread = threading.Thread(target=pump)
    total = 0
    end = time.monotonic() + seconds
    thread.start()
    while time.monotonic() < end:
        total += len(receiver.recv(1 << 16))
    ending.set()
    receiver.close()
    thread.join()
    sender.close()
    return total


def counted(lab: Lab, node: str) -> counters.NodeCounters:
    return counters.of_lab(lab)[node]


_WINDOW_S = 0.5
_LOOK_S = 0.02


def _looks(lab: Lab, node: str, send: Callable[[], object]) -> list[tuple[float, float, int]]:
    """While it sends: the time before and after the node's received bytes were read, and these."""
    sender = threading.Thread(target=send)
    looks = []
    sender.start()
    while sender.is_alive():
        before = time.monotonic()
        received = stream.rx_bytes(lab, End(node, "eth0"))
        looks.append((before, time.monotonic(), received))
        time.sleep(_LOOK_S)
    sender.join()
    return looks


_NEARLY_ALL, _OF_THE_LAST = 3, 4


def _windows(
    looks: list[tuple[float, float, int]],
) -> Iterator[tuple[tuple[float, float, int], tuple[float, float, int]]]:
    """Times of half a second or a little more, one after another."""
    first = None
    for look in looks:
        if first is None or look[0] - first[1] >= _WINDOW_S:
            if first is not None:
                yield first, look
            first = look


def assert_rate(lab: Lab, receiver: str, send: Callable[[], object], bits: float) -> None:
    """The bytes that reach the node pass it at this rate: never more of them than the rate and the
    bucket's burst let pass, and nearly as many in three of the last four half seconds. (A start of
    TCP's and a busy machine take off at times, not all the time: it is sent until it was so.)"""
    mtu_bytes = lab.topology.host(receiver).interface("eth0").mtu_bytes
    burst = max(bits / 8 / 1000, 2 * (mtu_bytes + 18))
    shares: list[float] = []
    until = time.monotonic() + 60
    full = False
    while not full and time.monotonic() < until:
        looks = _looks(lab, receiver, send)
        for first, second in combinations(looks, 2):
            if second[0] - first[1] >= _WINDOW_S:
                passed, longest_s = second[2] - first[2], second[1] - first[0]
                assert passed <= 1.02 * bits / 8 * longest_s + burst
        for first, second in _windows(looks):
            shares.append((second[2] - first[2]) / (bits / 8 * (second[1] - first[0])))
            full |= sum(share > 0.9 for share in shares[-_OF_THE_LAST:]) >= _NEARLY_ALL
    assert full, shares
