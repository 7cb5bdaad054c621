# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Boards as bytes, made for tests."""

import struct
from typing import Any

from beowire.status import layout

PEERS, WAITS = 4, 2
SHEET_BYTES = layout.SHEET_FIXED + PEERS * layout.PEER_BYTES + WAITS * layout.WAIT_BYTES
COUNTS_AT = layout.SHEET_FIXED - 8
"""In a sheet: how many peers and waits follow."""


def text(words: str, room: int) -> bytes:
    return words.encode()[: room - 1].ljust(room, b"\0")


def head(**changes: int) -> bytes:
    """The fixed part."""
    numbers = {
        "version": layout.VERSION,
        "bytes": layout.HEAD_BYTES + 2 * SHEET_BYTES,
        "head_bytes": layout.HEAD_BYTES,
        "sheet_bytes": SHEET_BYTES,
        "peer_bytes": layout.PEER_BYTES,
        "wait_bytes": layout.WAIT_BYTES,
        "peers_max": PEERS,
        "waits_max": WAITS,
        "pid": 1,
        "uid": 0,
        "started": 1,
        "opened": 1,
        "node": 0xABC,
        "network": 5,
        "incarnation": 7,
        "serial": 0,
        "engine": 9,
        "links": 6,
        "cluster": 1,
        "keyed": 0,
        "ifaces": 1,
    } | changes
    told = layout.MAGIC + struct.pack("<10I4Q2I2H3I", *numbers.values())
    told += text("host", 64) + text("program", 64) + text("eth0", 16) + bytes(32)
    told += bytes(16) + text("duplicate", 16) + bytes(30 * 16)
    return told + bytes(layout.HEAD_BYTES - len(told))


def peer(**changes: int) -> bytes:
    """One peer of a sheet."""
    numbers = dict.fromkeys(layout._PEER.names, 0) | changes
    return layout._PEER.form.pack(*numbers.values()) + text("other", 32)


def sheet(peers: list[bytes] | None = None, **changes: Any) -> bytes:
    """A sheet with these peers, and as many waits as it has room for."""
    those = peers or []
    begin = dict.fromkeys(layout._SHEET_BEGIN.names, 0) | {"at": 1}
    end = dict.fromkeys(layout._SHEET_END.names, 0)
    end |= {"peers_told": len(those), "waits_told": WAITS}
    for name, value in changes.items():
        (begin if name in begin else end)[name] = value
    told = layout._SHEET_BEGIN.form.pack(*begin.values())
    told += bytes(len(layout.LINKS) * layout._LINK.form.size)
    told += struct.pack("<32Q", 0, 3, *[0] * 30)
    told += layout._SHEET_END.form.pack(*end.values())
    told += b"".join(those) + bytes((PEERS - len(those)) * layout.PEER_BYTES)
    return told + layout._WAIT.form.pack(5, 0, 10, 1, 0xABC, 7, 9, 1, 1) * WAITS


def board(peers: list[bytes] | None = None, **changes: int) -> bytes:
    return head(**changes) + sheet(peers) + sheet(peers)
