# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which size of packets reaches another host without being cut on the way [D6].

Asked by ICMP echoes over IPv4 that must not be cut.
"""

import contextlib
import errno
import itertools
import os
import socket
import struct
import time
from typing import Any

from beowire.doctor import answers

_ECHO_REQUEST = 8
_ECHO_REPLY = 0
_IP_MTU_DISCOVER = 10
_IP_PMTUDISC_PROBE = 3
"""Do not cut, and do not believe what was learned of the path."""
_IP_HEADER_BYTES = 20
_ICMP_HEADER_BYTES = 8

_SMALL_BYTES = 64
_SIZES = (576, 1006, 1280, 1400, 1450, 1476, 1492, 1500, 2000, 3498, 4000, 4352, 4470, 8000, 9000)
"""MTUs that networks have: RFC 1191's table, tunnels, jumbo frames."""

_sequence = itertools.count(1)


def echo(host: str, packet_bytes: int, timeout_s: float = 0.5, tries: int = 3) -> bool:
    """Whether an IPv4 packet of this length gets an answer from the host, in one of some tries.

    Raises OSError where the host's name is not known, sockets for it are refused, or the packet
    does not fit the interface (EMSGSIZE).
    """
    address = socket.getaddrinfo(host, None, socket.AF_INET)[0][4]
    payload = os.urandom(max(packet_bytes - _IP_HEADER_BYTES - _ICMP_HEADER_BYTES, 8))
    with _open() as (asker, raw):
        asker.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_PROBE)
        for _ in range(tries):
            number = next(_sequence) & 0xFFFF
            message = _request(number, payload)
            with contextlib.suppress(ConnectionError):
                asker.sendto(message, address)
            if _answered(asker, raw, number, payload, timeout_s):
                return True
    return False


def path_to(host: str, round_trip_s: float) -> dict[str, Any]:
    """The path to a host: the interface that leads to it, that one's MTU, and the largest of the
    usual sizes up to it that passes (0: the host does not answer). Raises OSError as echo() does.
    """
    timeout_s = 0.2 + 3 * round_trip_s
    link = _outgoing(host)
    mtu = link["mtu"]
    passes = 0
    if echo(host, _SMALL_BYTES, timeout_s):
        sizes = [each for each in _SIZES if each < mtu] + [mtu]
        passes = mtu if echo(host, mtu, timeout_s) else _largest(host, sizes, timeout_s)
    return {"interface": link["name"], "mtu": mtu, "passes": passes}


def _largest(host: str, sizes: list[int], timeout_s: float) -> int:
    """The largest of the sizes, but the last, that passes; by bisection."""
    passes, low, high = _SMALL_BYTES, 0, len(sizes) - 1
    while low < high:
        middle = (low + high) // 2
        if echo(host, sizes[middle], timeout_s, tries=2):
            passes, low = sizes[middle], middle + 1
        else:
            high = middle
    return passes


def _outgoing(host: str) -> dict[str, Any]:
    """The interface by which the kernel would send to the host."""
    address = socket.getaddrinfo(host, 9, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.connect(address)
        mine = asker.getsockname()[0]
    for link in answers.links():
        if any(each.partition("/")[0] == mine for each in link["addresses"]):
            return link
    raise OSError(errno.ENODEV, f"{mine}, from where it is reached, is on no Ethernet interface")


@contextlib.contextmanager
def _open():  # type: ignore[no-untyped-def]
    """A socket for echoes: the unprivileged kind where net.ipv4.ping_group_range allows it."""
    for kind, raw in ((socket.SOCK_DGRAM, False), (socket.SOCK_RAW, True)):
        try:
            made = socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP)
        except PermissionError:
            if raw:
                raise
            continue
        with made:
            yield made, raw
        return


def _request(number: int, payload: bytes) -> bytes:
    """An echo request; its checksum is that of RFC 1071."""
    head = struct.pack("!BBHHH", _ECHO_REQUEST, 0, 0, os.getpid() & 0xFFFF, number)
    data = head + payload + (b"\0" if len(payload) % 2 else b"")
    total = sum(word for (word,) in struct.iter_unpack("!H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = struct.pack("!H", ~total & 0xFFFF)
    return head[:2] + checksum + head[4:] + payload


def _answered(
    asker: socket.socket, raw: bool, number: int, payload: bytes, timeout_s: float
) -> bool:
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        asker.settimeout(left)
        try:
            answer = asker.recv(65536)
        except TimeoutError:
            return False
        except ConnectionError:
            continue
        except OSError:  # an error message of a router about an earlier packet
            continue
        if raw:
            answer = answer[4 * (answer[0] & 0xF) :]
        kind, _, _, _, found = struct.unpack_from("!BBHHH", answer)
        if kind == _ECHO_REPLY and found == number and answer[_ICMP_HEADER_BYTES:] == payload:
            return True
    return False
