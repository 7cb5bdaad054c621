# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The figures of the kernel host: which cases are compared in each.

A row is one case of the guest's program (hosts/kernel/bench); the first row of a figure is what the
others are compared with.
"""

from dataclasses import dataclass, field, replace

MODULE = ("rdm", "seqpacket", "datagram", "stream")
"""Transports of the project's modules, their protocols in the kernel."""


@dataclass(frozen=True)
class Row:
    """One case, as text for the program, and what is said of it."""

    transport: str
    wait: str = "block"
    bytes: int = 1
    options: dict[str, str | int] = field(default_factory=dict)

    @property
    def case(self) -> str:
        words = {"transport": self.transport, "wait": self.wait, "bytes": self.bytes}
        return ",".join(f"{name}={value}" for name, value in {**words, **self.options}.items())

    @property
    def messages(self) -> int:
        """What the measured time is divided by."""
        return max(1, int(self.options.get("count", 0)))

    @property
    def remarks(self) -> str:
        """The options that tell the rows of one figure apart."""
        shown = ("together", "offloads", "checksum", "key", "encrypt")
        return " ".join(f"{name} {self.options[name]}" for name in shown if name in self.options)


@dataclass(frozen=True)
class Figure:
    """Rows to be compared. A figure of growth is what bulk beside adds to each row's trips."""

    name: str
    what: str
    rows: list[Row]
    bulk: int = 0
    wall: bool = False
    """Two processors, and the host's clock."""

    def only(self, transports: set[str]) -> "Figure":
        """The first row and those of these transports."""
        first, *others = self.rows
        return replace(self, rows=[first, *(r for r in others if r.transport in transports)])


def _checked(transport: str, wait: str, size: int, **options: str | int) -> list[Row]:
    """With the payload checksum off, and on."""
    return [Row(transport, wait, size, {**options, "checksum": each}) for each in ("off", "on")]


def _trips(size: int, wait: str, module_wait: str = "", **options: str | int) -> list[Row]:
    """TCP, UDP, raw sockets and the module's, with messages of one size."""
    one_frame = size < int(options.get("mtu", 9000))
    module_wait = module_wait or wait
    rows = [Row(each, wait, size, options) for each in ("tcp", "udp")]
    if one_frame:
        rows.append(Row("raw", wait, size, options))
    for each in ("rdm", "seqpacket"):
        rows += _checked(each, module_wait, size, **options)
    if one_frame:
        rows.append(Row("datagram", module_wait, size, options))
    return rows


_SEGMENTS_OFF: dict[str, str | int] = {"mtu": 1500, "offloads": "off"}


def _rows(wait: str) -> list[Row]:
    row: dict[str, str | int] = {"count": 64, "trips": 40, "warmup": 10}
    each, together = {**row, "together": "off"}, {**row, "together": "on"}
    return [
        *(Row("tcp", wait, 64, options) for options in (each, together)),
        Row("udp", wait, 64, together),
        Row("rdm", wait, 64, each),
        *(Row(name, wait, 64, together) for name in ("rdm", "seqpacket", "datagram")),
    ]


def _bulk(offloads: str) -> list[Row]:
    # Few, as each is long; the first rows fill the buffers' automatic sizes.
    few: dict[str, str | int] = {"count": 8, "trips": 5, "warmup": 3, "offloads": offloads}
    rows = [Row("tcp", "block", 1 << 20, few)]
    for name in ("rdm", "seqpacket", "stream"):
        rows += _checked(name, "block", 1 << 20, **few)
    return rows


def _secured(size: int, wait: str, **options: str | int) -> list[Row]:
    """Without a key, with one, and encrypted."""
    ways: list[dict[str, str | int]] = [
        {"key": "off"},
        {"key": "on"},
        {"key": "on", "encrypt": "on"},
    ]
    return [Row("rdm", wait, size, {**options, **each}) for each in ways]


FIGURES = [
    Figure("blocking-1", "1 byte, blocking", _trips(1, "block")),
    Figure(
        "busy-1",
        "1 byte, busy waiting in the call (others poll)",
        [Row("tcp"), *_trips(1, "poll", "busy")],
    ),
    Figure(
        "server-1",
        "1 byte, blocking, the protocol in the kernel and in servers",
        [Row(each) for each in ("datagram", "server", "udp", "tcp")],
    ),
    Figure("one-thread-1", "1 byte, one thread holding both ends", _trips(1, "one")),
    Figure("blocking-5000", "5000 bytes, blocking, MTU 9000", _trips(5000, "block")),
    Figure(
        "blocking-5000-mtu-1500",
        "5000 bytes, blocking, MTU 1500",
        [
            *_trips(5000, "block", mtu=1500),
            Row("tcp", "block", 5000, _SEGMENTS_OFF),
        ],
    ),
    Figure("one-thread-5000", "5000 bytes, one thread, MTU 9000", _trips(5000, "one")),
    Figure("row-64", "64 messages of 64 bytes, per message, one thread", _rows("one")),
    Figure("row-64-blocking", "64 messages of 64 bytes, per message, blocking", _rows("block")),
    Figure("bulk-1m", "1 MiB in one direction, per message", _bulk("off")),
    Figure(
        "bulk-1m-offloads",
        "1 MiB in one direction, per message, segmentation left to the device",
        _bulk("on"),
    ),
    Figure(
        "secured-8",
        "8 bytes, one thread, without a key, with one, and encrypted",
        _secured(8, "one"),
    ),
    Figure(
        "secured-1m",
        "1 MiB there and back, without a key, with one, and encrypted",
        _secured(1 << 20, "block", trips=5, warmup=3),
    ),
    Figure(
        "growth",
        "growth of the 1-byte trip (one thread) by 64 KiB of TCP beside it",
        [Row(each, "one") for each in ("raw-all", "raw", "udp", "tcp", *MODULE)],
        bulk=64 << 10,
    ),
    Figure(
        "wall",
        "1 byte, two processors, wall clock",
        [
            Row("tcp", "poll"),
            Row("tcp", "block"),
            *(Row(each, wait) for each in ("udp", "raw") for wait in ("poll", "block")),
            *(Row(each, wait) for each in MODULE[:3] for wait in ("busy", "poll", "block")),
        ],
        wall=True,
    ),
]
