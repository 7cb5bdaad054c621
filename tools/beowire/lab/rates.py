# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether the rates of a lab hold, and hold alike for TCP and for a sender that bypasses its
queueing discipline (PACKET_QDISC_BYPASS), as Beowire does.

Each node sends to the next one of its network, first a TCP stream, then raw frames as fast as it
can; what arrives is counted by the receiver's interface, headers and all. A comparison of the
two transports in a lab means something only when this check passes.
"""

import contextlib
import ctypes
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from rich.table import Table

from beowire import namespaces, signals
from beowire.errors import BeowireError
from beowire.lab import stream
from beowire.lab.lab import Lab
from beowire.topology.keys import format_rate
from beowire.topology.topology import End, Model

TOLERANCE = 0.1
"""TCP and raw frames may differ by this share of the larger: their starts and ends do."""
OFFER_LEAST = 1.1
"""A sender that offers less than this multiple of the rate does not show that the rate holds."""
DELAY_MAX_NS = 1_000_000
"""Beyond it TCP is slowed by the delay itself, and the comparison says nothing."""

_ETHERTYPE = 0x88B6  # IEEE 802: local experimental EtherType 2
_SOL_PACKET, _PACKET_QDISC_BYPASS = 263, 20
_SO_SNDBUFFORCE = 32
_BATCH = 64
_ATTEMPTS = 10
_WARM_UP_SHARE = 0.4


@dataclass(frozen=True)
class Check:
    """One way through the lab, measured with both kinds of sender."""

    sender: str
    receiver: str
    limit_bits: int
    """The least rate of the links on the way; 0: none has one."""
    tcp_bits: float
    """Bits per second that arrived, Ethernet headers included."""
    raw_bits: float
    offered_bits: float
    """Bits per second that the sender of raw frames handed to its interface."""
    remark: str
    """Why the two are not compared; empty when they are."""

    @property
    def verdict(self) -> str:
        larger = max(self.tcp_bits, self.raw_bits)
        if self.remark:
            return f"not compared: {self.remark}"
        if self.offered_bits < OFFER_LEAST * self.limit_bits:
            return "unknown: the machine cannot send faster than the rate"
        alike = abs(self.tcp_bits - self.raw_bits) <= TOLERANCE * larger
        return "alike" if alike else "they differ"

    @property
    def good(self) -> bool:
        return bool(self.remark) or self.verdict == "alike"


def table(checks: list[Check]) -> Table:
    shown = Table("from", "to", "rate", "TCP Mbit/s", "raw Mbit/s", "verdict")
    for each in checks:
        shown.add_row(
            each.sender,
            each.receiver,
            format_rate(each.limit_bits) if each.limit_bits else "-",
            f"{each.tcp_bits / 1e6:,.1f}",
            f"{each.raw_bits / 1e6:,.1f}",
            each.verdict,
        )
    return shown


def check(lab: Lab, seconds: float) -> Iterator[Check]:
    """Measures from each node to the next one of its network, each sender for `seconds`."""
    if lab.mode == "loopback":
        raise BeowireError(
            f"Lab {lab.name} runs on loopback addresses; it has no rates.",
            "Use a lab of namespaces: run as root where the kernel allows them.",
        )
    nodes = set(lab.node_names())
    for ends in lab.topology.networks():
        members = [end for end in ends if end.device in nodes]
        if len(members) < 2:
            continue
        for sender, receiver in zip(members, [*members[1:], members[0]], strict=True):
            yield _measured(lab, sender, receiver, seconds)


def _measured(lab: Lab, sender: End, receiver: End, seconds: float) -> Check:
    """Measured again when the two differ: a busy machine disturbs one or the other now and then,
    a queueing discipline that only one of them meets disturbs always the same."""
    for _ in range(_ATTEMPTS):
        found = _measure(lab, sender, receiver, seconds)
        if found.good:
            break
    return found


def _measure(lab: Lab, sender: End, receiver: End, seconds: float) -> Check:
    models = way(lab, sender.device, receiver.device)
    limit = min((model.rate_bits for model in models if model.rate_bits), default=0)
    remark = ""
    if not limit:
        remark = "no rate on the way"
    elif any(model.loss or model.corrupt or model.reorder for model in models):
        remark = "TCP yields to losses"
    elif sum(model.delay_ns + model.coalesce_ns for model in models) > DELAY_MAX_NS:
        remark = "TCP is slowed by the delay"
    tcp = 0.0 if not limit else _tcp(lab, sender, receiver, seconds)
    raw, offered = (0.0, 0.0) if not limit else _raw(lab, sender, receiver, seconds)
    return Check(sender.device, receiver.device, limit, tcp, raw, offered, remark)


def way(lab: Lab, start: str, goal: str) -> list[Model]:
    """What befalls frames on the way through switches, link after link."""
    switches = set(lab.topology.switch_names())
    queue: deque[tuple[str, list[Model]]] = deque([(start, [])])
    seen = {start}
    while queue:
        here, models = queue.popleft()
        for link in lab.topology.links_of(here):
            there = link.b.device if link.a.device == here else link.a.device
            found = [*models, link.model(link.leaving(here))]
            if there == goal:
                return found
            if there in switches and there not in seen:
                seen.add(there)
                queue.append((there, found))
    raise BeowireError(f"There is no way from {start} to {goal} without a router.")


def _received_bits(lab: Lab, receiver: End, seconds: float) -> float:
    """Bits per second that come in at the interface in the latter part of so many seconds. The
    clock is read before the first count and after the last one: on a busy machine time passes
    between the two, and no rate may come out higher by that."""
    time.sleep(seconds * _WARM_UP_SHARE)
    begin, first = time.monotonic(), stream.rx_bytes(lab, receiver)
    time.sleep(seconds * (1 - _WARM_UP_SHARE))
    return (stream.rx_bytes(lab, receiver) - first) * 8 / (time.monotonic() - begin)


@contextlib.contextmanager
def _background(pump: threading.Thread, ending: threading.Event) -> Iterator[None]:
    with signals.uninterrupted():
        pump.start()
    try:
        yield
    finally:
        ending.set()
        pump.join()


def _tcp(lab: Lab, sender: End, receiver: End, seconds: float) -> float:
    with stream.running(lab, sender, receiver):
        return _received_bits(lab, receiver, seconds)


def _raw(lab: Lab, sender: End, receiver: End, seconds: float) -> tuple[float, float]:
    """Bits per second that arrive, and that were offered."""
    path = lab.namespace_path
    target = namespaces.within(path(receiver.device), partial(_hardware, receiver.interface))
    source = namespaces.within(path(sender.device), partial(_hardware, sender.interface))
    mtu_bytes = min(
        lab.topology.host(end.device).interface(end.interface).mtu_bytes
        for end in (sender, receiver)
    )
    limits = [model.mtu_bytes for model in way(lab, sender.device, receiver.device)]
    mtu_bytes = min([mtu_bytes, *filter(None, limits)])
    frame = target + source + _ETHERTYPE.to_bytes(2, "big") + bytes(mtu_bytes)
    raw = namespaces.within(path(sender.device), partial(_raw_socket, sender.interface))
    ending = threading.Event()
    sent = _Sent()
    flood = threading.Thread(target=partial(_flood, raw, frame, ending, sent))
    with raw:
        begin = time.monotonic()
        with _background(flood, ending):
            received = _received_bits(lab, receiver, seconds)
        return received, sent.frames * len(frame) * 8 / (time.monotonic() - begin)


def _hardware(interface: str) -> bytes:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as probe:
        probe.bind((interface, 0))
        address = probe.getsockname()[4]
        assert isinstance(address, bytes)
        return address


def _raw_socket(interface: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    raw.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    # What waits before a rate counts as the sender's: with less room it would wait as well.
    raw.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, 1 << 26)
    raw.bind((interface, 0))
    return raw


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_char_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """struct mmsghdr of sendmmsg(2)."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("sent", ctypes.c_uint),
    )


@dataclass
class _Sent:
    frames: int = 0


def _flood(raw: socket.socket, frame: bytes, ending: threading.Event, sent: _Sent) -> None:
    """Sends the frame over and over, many by one system call, so that Python's own speed is no
    limit. Frames that the device drops are sent: the bypass knows no queue to wait in."""
    vector = _Vector(frame, len(frame))
    messages = (_Message * _BATCH)()
    for message in messages:
        message.vectors = ctypes.pointer(vector)
        message.vector_count = 1
    libc = ctypes.CDLL(None)
    while not ending.is_set():
        sent.frames += max(libc.sendmmsg(raw.fileno(), messages, _BATCH, 0), 0)
