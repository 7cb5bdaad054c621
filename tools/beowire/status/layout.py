# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The bytes of a board, as hosts/user/board.h lays them out, taken apart.

Another user's process may have written them, to harm whoever reads: nothing in them is believed
but as a number of its width or as text, every place is checked to lie within the bytes, and text
loses what is not printable.
"""

import struct
from dataclasses import dataclass
from typing import Any

MAGIC = b"beowire\0"
VERSION = 1
HEAD_BYTES = 816
FILE_BYTES_MAX = 1 << 17
"""A file that is longer is none of ours."""
PEERS_MAX = 256
WAITS_MAX = 256
LINKS = ("packet", "udp", "local", "kernel")
WAYS = ("none", "engine", "local", "kernel")
_LINK_BITS = {"local": 1, "packet": 2, "udp": 4, "kernel": 8}
_UDP_LINK = 3
FLAGS = {"known": 1, "up": 2, "pressed": 4, "stalled": 8, "expected": 16, "sleeping": 32}


class DamagedError(Exception):
    """These bytes are no board, or not a whole one."""


@dataclass(frozen=True)
class _Layout:
    """Named numbers one after another, little-endian, without gaps."""

    names: tuple[str, ...]
    form: struct.Struct

    def read(self, data: bytes, offset: int = 0) -> dict[str, int]:
        if offset < 0 or offset + self.form.size > len(data):
            raise DamagedError("it ends too early")
        return dict(zip(self.names, self.form.unpack_from(data, offset), strict=True))


def _layout(text: str) -> _Layout:
    """From words NAME:LETTER, where Q is meant if there is no letter."""
    names, letters = [], []
    for word in text.split():
        name, _, letter = word.partition(":")
        names.append(name)
        letters.append(letter or "Q")
    return _Layout(tuple(names), struct.Struct("<" + "".join(letters)))


_HEAD = _layout(
    "version:I bytes:I head_bytes:I sheet_bytes:I peer_bytes:I wait_bytes:I peers_max:I "
    "waits_max:I pid:I uid:I started opened node network incarnation:I serial:I engine:H links:H "
    "cluster:I keyed:I ifaces:I"
)
_HOST_AT, _PROGRAM_AT, _IFACES_AT, _DROPS_AT, _CURRENT_AT = 104, 168, 232, 280, 792
_IFACES, _IFACE_BYTES, _DROPS, _DROP_BYTES = 3, 16, 32, 16
_LINK_FIELDS = "tx_frames rx_frames tx_bytes rx_bytes tx_payload rx_payload rx_overruns"
_LINK = _layout(_LINK_FIELDS)
_SHEET_BEGIN = _layout("turn at rounds handled rounds_at handled_at asleep")
_COUNTERS = (
    "overruns send_errors retransmits losses probes spurious backoffs credit_stalls tx_messages "
    "rx_messages tx_pulls rx_pulls memory_bytes copied_bytes arriving_bytes peers peers_down "
    "receives unexpected unexpected_bytes"
)
_SHEET_END = _layout(f"{_COUNTERS} peers_told:I waits_told:I")
_LINKS_AT = _SHEET_BEGIN.form.size
_SHEET_DROPS_AT = _LINKS_AT + len(LINKS) * _LINK.form.size
_SHEET_END_AT = _SHEET_DROPS_AT + 8 * _DROPS
SHEET_FIXED = _SHEET_END_AT + _SHEET_END.form.size
_PEER_FIELDS = (
    "srtt_ns var_ns window inflight credit tx_packets rx_packets tx_messages rx_messages "
    "tx_charged rx_charged retransmits losses heard proven waiting_since queued queued_bytes "
    "exposed exposed_bytes exposed_since pulls pull_bytes serves arriving"
)
_PEER = _layout(
    "node incarnation:I number:I engine:H way:B link:B flags:I status:i pid:I mtu:I probes:I "
    f"paths:B silent:B reserved0:H reserved1:I {_PEER_FIELDS}"
)
_PEER_HOST_BYTES = 32
PEER_BYTES = _PEER.form.size + _PEER_HOST_BYTES
_WAIT = _layout("tag ignore bytes since node incarnation:I engine:H kind:B tagged:B")
WAIT_BYTES = _WAIT.form.size
TIMES = ("heard", "proven", "waiting_since", "exposed_since")
"""Of a peer: clock readings, 0 for never."""


def text(data: bytes, offset: int, room: int) -> str:
    """Text up to its zero byte: printable ASCII, a question mark for anything else."""
    raw = data[offset : offset + room].partition(b"\0")[0]
    return "".join(chr(byte) if 0x20 <= byte < 0x7F else "?" for byte in raw)


@dataclass(frozen=True)
class Head:
    """Who an endpoint is: what does not change."""

    numbers: dict[str, int]
    host: str
    program: str
    interfaces: list[str]
    drop_names: list[str]

    @property
    def sheets(self) -> tuple[int, int]:
        """Where the two sheets begin."""
        first = self.numbers["head_bytes"]
        return first, first + self.numbers["sheet_bytes"]


def head(data: bytes) -> Head:
    """The fixed part of a board; `data` are its first bytes, and at least HEAD_BYTES of them."""
    if data[: len(MAGIC)] != MAGIC:
        raise DamagedError("it is no board")
    found = _HEAD.read(data, len(MAGIC))
    if found["version"] != VERSION:
        raise DamagedError(f"it has layout {found['version']}, this reads {VERSION}")
    if len(data) < HEAD_BYTES or found["head_bytes"] < HEAD_BYTES:
        raise DamagedError("it ends too early")
    within = found["head_bytes"] + 2 * found["sheet_bytes"]
    room = SHEET_FIXED + found["peers_max"] * found["peer_bytes"]
    room += found["waits_max"] * found["wait_bytes"]
    sizes = found["peer_bytes"] >= PEER_BYTES and found["wait_bytes"] >= WAIT_BYTES
    counts = found["peers_max"] <= PEERS_MAX and found["waits_max"] <= WAITS_MAX
    if within > FILE_BYTES_MAX or room > found["sheet_bytes"] or not sizes or not counts:
        raise DamagedError("its sizes contradict one another")
    ifaces = min(found["ifaces"], _IFACES)
    return Head(
        numbers=found,
        host=text(data, _HOST_AT, 64),
        program=text(data, _PROGRAM_AT, 64),
        interfaces=[text(data, _IFACES_AT + _IFACE_BYTES * i, _IFACE_BYTES) for i in range(ifaces)],
        drop_names=[text(data, _DROPS_AT + _DROP_BYTES * i, _DROP_BYTES) for i in range(_DROPS)],
    )


def current(data: bytes) -> int:
    """Which sheet is to be read, 0 or 1."""
    if len(data) < HEAD_BYTES:
        raise DamagedError("it ends too early")
    return int.from_bytes(data[_CURRENT_AT : _CURRENT_AT + 4], "little") & 1


def turn(data: bytes) -> int:
    """How often a sheet has been begun and finished; `data` are its first bytes."""
    if len(data) < 8:
        raise DamagedError("it ends too early")
    return int.from_bytes(data[:8], "little")


def sheet(of: Head, data: bytes, now: int) -> dict[str, Any]:
    """What a sheet says, by names; `data` are all its bytes, ages are those at `now`."""
    numbers = of.numbers
    told: dict[str, Any] = dict(_SHEET_BEGIN.read(data))
    ends = _SHEET_END.read(data, _SHEET_END_AT)
    drops = struct.unpack_from(f"<{_DROPS}Q", data, _SHEET_DROPS_AT)
    told["links"] = {
        name: _LINK.read(data, _LINKS_AT + i * _LINK.form.size) for i, name in enumerate(LINKS)
    }
    told["drops"] = {name: n for name, n in zip(of.drop_names, drops, strict=True) if name and n}
    peers = min(ends.pop("peers_told"), numbers["peers_max"])
    waits = min(ends.pop("waits_told"), numbers["waits_max"])
    told |= ends
    first_wait = SHEET_FIXED + numbers["peers_max"] * numbers["peer_bytes"]
    told["peer"] = [
        peer(data, SHEET_FIXED + i * numbers["peer_bytes"], now, told["at"]) for i in range(peers)
    ]
    told["wait"] = [wait(data, first_wait + i * numbers["wait_bytes"], now) for i in range(waits)]
    return told


def ages(found: dict[str, Any], names: tuple[str, ...], now: int) -> None:
    """Turns readings of the clock into seconds before `now`, None for never."""
    for name in names:
        reading = found.pop(name)
        found[f"{name}_s"] = max(0, now - reading) / 1e9 if reading else None


def identity(node: int, engine: int, incarnation: int) -> str:
    """An endpoint's name, one in the world."""
    return f"{node:016x}/{engine}/{incarnation:08x}"


def _unanswered(found: dict[str, Any], at: int) -> float | None:
    """For how many seconds an answer had been missing when the sheet was written; None: it was not.
    Whoever has been stopped or has computed since then has not looked for answers."""
    since: int = found["waiting_since"]
    proven: int = found["proven"]
    return max(0, at - max(since, proven)) / 1e9 if since else None


def peer(data: bytes, offset: int, now: int, at: int) -> dict[str, Any]:
    """A peer; ages are those at `now`, the sheet is of `at`."""
    found: dict[str, Any] = dict(_PEER.read(data, offset))
    host = text(data, offset + _PEER.form.size, _PEER_HOST_BYTES)
    flags, way, link = found.pop("flags"), found.pop("way"), found.pop("link")
    del found["reserved0"], found["reserved1"]
    found["unanswered_s"] = _unanswered(found, at)
    ages(found, TIMES, now)
    name = identity(found.pop("node"), found.pop("engine"), found.pop("incarnation"))
    way_name = WAYS[way] if way < len(WAYS) else "none"
    if way_name == "engine":
        way_name = "udp" if link >= _UDP_LINK else "packet"
    return {
        "identity": name,
        "host": host,
        "link": way_name,
        **{word: bool(flags & bit) for word, bit in FLAGS.items()},
        **found,
    }


def wait(data: bytes, offset: int, now: int) -> dict[str, Any]:
    found: dict[str, Any] = dict(_WAIT.read(data, offset))
    ages(found, ("since",), now)
    node, engine = found.pop("node"), found.pop("engine")
    incarnation, kind = found.pop("incarnation"), found.pop("kind")
    found["tagged"] = bool(found["tagged"])
    return {
        "kind": "message" if kind == 2 else "receive",
        "peer": identity(node, engine, incarnation) if node else None,
        **found,
    }


def links(bits: int) -> list[str]:
    """The links of an endpoint."""
    return [name for name, bit in _LINK_BITS.items() if bits & bit]
