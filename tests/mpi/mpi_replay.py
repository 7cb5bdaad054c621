# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""First words of a job (HELLO), recorded on the wire and said again by a node that is not of it."""

import contextlib
import ctypes
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from beowire import namespaces
from beowire.lab.lab import Lab

_ETH_P_ALL = 3
_SO_ATTACH_FILTER = 26
_ETHERTYPE = 0x88B5
_MAGIC = 0x0ABE
"""Of a frame, as its first two bytes in network order."""
_HELLO, _CHALLENGE = 1, 7
_IP_BYTES, _UDP_BYTES = 20, 8
_ADDRESS_AT, _PORT_AT = 14 + 16, 14 + _IP_BYTES + 2
"""Of whom a datagram is for; that of its sender is before it."""

# docs/wire-protocol.md: where a HELLO holds the addressed engine's number and incarnation, the
# sender's number, and the checksum, which is taken with itself 0; where it says whom it is for.
_TO_AT, _FROM_AT, _INCARNATION_AT, _CHECKSUM_AT = 8, 10, 12, 28
_TARGET_AT, _TARGET_BYTES = 72, 12
_HELLO_BYTES = 160

_LOAD_HALF, _LOAD_BYTE, _EQUAL, _RETURN = 0x28, 0x30, 0x15, 0x06


def _frames_of(kind: int) -> tuple[tuple[int, int, int, int], ...]:
    """A classic packet filter: code, jump if true, jump if false, value."""
    return (
        (_LOAD_HALF, 0, 0, 12),
        (_EQUAL, 3, 0, _ETHERTYPE),
        (_EQUAL, 0, 7, 0x0800),
        (_LOAD_HALF, 0, 0, 14 + _IP_BYTES + _UDP_BYTES),
        (_EQUAL, 2, 5, _MAGIC),
        (_LOAD_BYTE, 0, 0, 14 + 3),
        (_EQUAL, 2, 3, kind),
        (_LOAD_BYTE, 0, 0, 14 + _IP_BYTES + _UDP_BYTES + 3),
        (_EQUAL, 0, 1, kind),
        (_RETURN, 0, 0, 0xFFFF),
        (_RETURN, 0, 0, 0),
    )


def _checksum(data: bytes) -> int:
    """CRC32C."""
    value = 0xFFFF_FFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F6_3B78 if value & 1 else 0)
    return value ^ 0xFFFF_FFFF


@dataclass(frozen=True)
class Hello:
    """A HELLO as it was on the wire."""

    frame: bytes

    @property
    def by_udp(self) -> bool:
        return self.frame[12:14] == b"\x08\x00"

    @property
    def body(self) -> bytes:
        """From the inner header on."""
        return self.frame[14 + (_IP_BYTES + _UDP_BYTES if self.by_udp else 0) :]

    def readdressed(self, other: "Hello") -> "Hello":
        """As it would be had it been meant for the engine that said the other one, by the same
        link, whichever its incarnation."""
        body = bytearray(self.body[:_HELLO_BYTES])
        body[_TO_AT : _TO_AT + 2] = other.body[_FROM_AT : _FROM_AT + 2]
        body[_INCARNATION_AT : _INCARNATION_AT + 4] = bytes(4)
        body[_TARGET_AT : _TARGET_AT + _TARGET_BYTES] = bytes(_TARGET_BYTES)
        body[_CHECKSUM_AT : _CHECKSUM_AT + 4] = bytes(4)
        body[_CHECKSUM_AT : _CHECKSUM_AT + 4] = struct.pack("<I", _checksum(bytes(body)))
        head = self.frame[: len(self.frame) - len(self.body)]
        if self.by_udp:
            head = head[:_PORT_AT] + other.frame[_PORT_AT - 2 : _PORT_AT] + head[_PORT_AT + 2 :]
        return Hello(head + bytes(body))

    def answers(self, other: "Hello") -> bool:
        """Whether it came by the same link from the node that the other one was sent to."""
        return self.by_udp == other.by_udp and self.frame[6:12] == other.frame[:6]


def _packet_socket(kind: int) -> socket.socket:
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    rules = _frames_of(kind)
    code = b"".join(struct.pack("HBBI", *each) for each in rules)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(rules), ctypes.addressof(buffer))
    heard.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
    heard.bind(("eth0", _ETH_P_ALL))
    heard.setblocking(False)
    return heard


class Ear:
    """Hears the first words that a node is told, or what it is challenged by."""

    def __init__(self, lab: Lab, node: str, kind: int = _HELLO) -> None:
        make = partial(_packet_socket, kind)
        self._socket = namespaces.within(lab.namespace_path(node), make)

    def close(self) -> None:
        self._socket.close()

    def heard(self) -> list[Hello]:
        """What came since the last call."""
        found = []
        with contextlib.suppress(BlockingIOError):
            while True:
                frame, whence = self._socket.recvfrom(0xFFFF)
                if whence[2] == socket.PACKET_HOST:
                    found.append(Hello(frame))
        return found

    @property
    def address(self) -> bytes:
        """The Ethernet address of the node."""
        address: bytes = self._socket.getsockname()[4]
        return address


def _datagram_socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


class Stranger:
    """A node that says again what it heard; it hears how it is challenged for that."""

    def __init__(self, lab: Lab, node: str) -> None:
        enter = partial(namespaces.within, lab.namespace_path(node))
        self.ear = Ear(lab, node, _CHALLENGE)
        self._mouth: socket.socket = enter(partial(_packet_socket, _HELLO))
        self._datagrams: socket.socket = enter(_datagram_socket)

    def close(self) -> None:
        self.ear.close()
        self._mouth.close()
        self._datagrams.close()

    def _say(self, frame: bytes) -> None:
        while True:
            with contextlib.suppress(BlockingIOError):
                self._mouth.send(frame)
                return
            time.sleep(0.001)

    def repeat(self, hello: Hello) -> None:
        """To whom it was said, in its sender's name and in this node's own."""
        frame = hello.frame
        self._say(frame)
        if hello.by_udp:
            address = socket.inet_ntoa(frame[_ADDRESS_AT : _ADDRESS_AT + 4])
            port = int.from_bytes(frame[_PORT_AT : _PORT_AT + 2], "big")
            with contextlib.suppress(ConnectionRefusedError):
                self._datagrams.sendto(hello.body, (address, port))
        else:
            self._say(frame[:6] + self.ear.address + frame[12:])


@contextlib.contextmanager
def stranger(lab: Lab, node: str) -> Iterator[Stranger]:
    """A stranger at that node, while the context lasts."""
    made = Stranger(lab, node)
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def ear(lab: Lab, node: str) -> Iterator[Ear]:
    """An ear at that node, while the context lasts."""
    made = Ear(lab, node)
    try:
        yield made
    finally:
        made.close()
