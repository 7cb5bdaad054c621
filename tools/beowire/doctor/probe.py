# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which size of packets reaches another host without being cut on the way [D6].

Asked by ICMP echoes that must not be cut: over IPv4, or over IPv6 for a host that has only such an
address.
"""

import contextlib
import errno
import ipaddress
import itertools
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from beowire.doctor import answers, arp


@dataclass(frozen=True)
class _Protocol:
    """An echo's protocol: RFC 792 and RFC 4443; options as in linux/in.h and linux/in6.h."""

    family: socket.AddressFamily
    protocol: int
    request: int
    reply: int
    header_bytes: int
    """Of IP."""
    header_received: bool
    """With what a raw socket receives."""
    level: int
    discover: int
    """The socket option IP_MTU_DISCOVER or IPV6_MTU_DISCOVER."""


_ECHOES = (
    _Protocol(socket.AF_INET, socket.IPPROTO_ICMP, 8, 0, 20, True, socket.IPPROTO_IP, 10),
    _Protocol(socket.AF_INET6, socket.IPPROTO_ICMPV6, 128, 129, 40, False, socket.IPPROTO_IPV6, 23),
)
_PMTUDISC_PROBE = 3
"""Do not cut, and do not believe what was learned of the path."""
_ICMP_HEADER_BYTES = 8

_SMALL_BYTES = 64
_SIZES = (576, 1006, 1280, 1400, 1450, 1476, 1492, 1500, 2000, 3498, 4000, 4352, 4470, 8000, 9000)
"""MTUs that networks have: RFC 1191's table, tunnels, jumbo frames."""

_FIRST_TRIES = 7
"""With 0.2 s for each, longer than the second after which a kernel asks again for the address of a
neighbour that it could not ask (RFC 4861, RETRANS_TIMER, which Linux takes for ARP too)."""

_ANSWER_S = 0.04
"""A kernel answers ARP at once."""

_ECHOED = 1000
_UNDER_WAY = 32
_LOST_ENOUGH = 20

_sequence = itertools.count(1)


def echo(host: str, packet_bytes: int, timeout_s: float = 0.5, tries: int = 3) -> bool:
    """Whether a packet of this length gets an answer from the host, in one of some tries.

    Raises OSError where the host's name is not known, sockets for it are refused, or the packet
    does not fit the interface (EMSGSIZE).
    """
    how, address = _address(host)
    payload = os.urandom(max(packet_bytes - how.header_bytes - _ICMP_HEADER_BYTES, 8))
    with _open(how) as (asker, raw):
        asker.setsockopt(how.level, how.discover, _PMTUDISC_PROBE)
        for _ in range(tries):
            number = next(_sequence) & 0xFFFF
            message = _request(how, number, payload)
            try:
                asker.sendto(message, address)
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise
                # No route, a packet filter, a full queue: not answered either, as when an error
                # message about an earlier packet is what this call ends with.
            if _answered(asker, how, raw, number, payload, timeout_s):
                return True
    return False


def losses(host: str, timeout_s: float) -> tuple[int, int]:
    """How many of how many echoes, some under way at a time, got no answer. It ends early when a
    few were lost. Raises OSError as echo() does."""
    how, address = _address(host)
    waiting: dict[int, float] = {}
    sent = lost = 0
    with _open(how) as (asker, raw):
        while lost < _LOST_ENOUGH and (sent < _ECHOED or waiting):
            now = time.monotonic()
            if sent < _ECHOED and len(waiting) < _UNDER_WAY:
                number = next(_sequence) & 0xFFFF
                sent += 1
                waiting[number] = now + timeout_s
                with contextlib.suppress(OSError):  # not sent is lost, too
                    asker.sendto(_request(how, number, b"beowire "), address)
                continue
            first = min(waiting.values())
            if first <= now and not _readable(asker):
                for number in [each for each, end in waiting.items() if end <= now]:
                    del waiting[number]
                    lost += 1
                continue
            answer = _received(asker, how, raw, max(first - now, 0.001))
            if answer is not None:
                waiting.pop(answer[0], None)
    return lost, sent


def _readable(asker: socket.socket) -> bool:
    return bool(select.select([asker], [], [], 0)[0])


def _address(host: str) -> tuple[_Protocol, Any]:
    """The host's first address of IPv4, or else of IPv6, as sockets take it."""
    unknown: OSError | None = None
    for how in _ECHOES:
        try:
            return how, socket.getaddrinfo(host, None, how.family, socket.SOCK_DGRAM)[0][4]
        except socket.gaierror as error:
            unknown = unknown or error
    assert unknown is not None
    raise unknown


def path_to(host: str, round_trip_s: float) -> dict[str, Any]:
    """The path to a host: the interface that leads to it, that one's MTU, and the largest of the
    usual sizes up to it that passes (0: the host does not answer), how many of how many echoes were
    lost, and which hardware addresses hold the host's address, if it is in the interface's network,
    and this node's own (None: it may not be asked). Where no interface leads to it, `unreached`
    says why. Raises OSError as echo() does.
    """
    timeout_s = 0.2 + 3 * round_trip_s
    how, address = _address(host)
    try:
        link, mine = _outgoing(how, address)
    except OSError as error:
        why = error.strerror or str(error)
        return {"interface": "", "mtu": 0, "passes": 0, "unreached": why}
    mtu = link["mtu"]
    passes = 0
    if echo(host, _SMALL_BYTES, timeout_s, _FIRST_TRIES):
        sizes = [each for each in _SIZES if each < mtu] + [mtu]
        passes = mtu if echo(host, mtu, timeout_s) else _largest(host, sizes, timeout_s)
    lost, sent = losses(host, timeout_s) if passes else (0, 0)
    found = {"interface": link["name"], "mtu": mtu, "passes": passes, "lost": lost, "sent": sent}
    if how.family == socket.AF_INET and link.get("arp", True):
        found["holders"] = _holders(link, mine, address[0], _ANSWER_S + round_trip_s)
    return found


def _holders(
    link: dict[str, Any], mine: str, host: str, answer_s: float
) -> dict[str, list[str]] | None:
    """Of this node's own address, and of the host's where they are neighbours."""
    networks = [ipaddress.ip_interface(each).network for each in link["addresses"]]
    near = any(ipaddress.ip_address(host) in each for each in networks)
    try:
        return arp.holders(link, [mine, host] if near else [mine], answer_s)
    except PermissionError:
        return None
    except OSError:  # the interface is down, or went meanwhile: nobody answers
        return {}


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


def _outgoing(how: _Protocol, address: Any) -> tuple[dict[str, Any], str]:
    """The interface by which the kernel would send to a host, and from which address. Raises
    OSError where there is no route, or one that refuses: EINVAL for a blackhole, EACCES,
    EHOSTUNREACH, ENETUNREACH."""
    with socket.socket(how.family, socket.SOCK_DGRAM) as asker:
        asker.connect(address)
        mine = asker.getsockname()[0].partition("%")[0]
    for link in answers.links():
        if any(each.partition("/")[0] == mine for each in link["addresses"]):
            return link, mine
    raise OSError(errno.ENODEV, f"it is reached from {mine}, on no Ethernet interface")


@contextlib.contextmanager
def _open(how: _Protocol) -> Iterator[tuple[socket.socket, bool]]:
    """A socket for echoes, and whether it is a raw one: it is the unprivileged kind where
    net.ipv4.ping_group_range allows it."""
    for kind, raw in ((socket.SOCK_DGRAM, False), (socket.SOCK_RAW, True)):
        try:
            made = socket.socket(how.family, kind, how.protocol)
        except PermissionError:
            if raw:
                raise
            continue
        with made:
            yield made, raw
        return


def _request(how: _Protocol, number: int, payload: bytes) -> bytes:
    """An echo request; its checksum is that of RFC 1071. Of IPv6 the kernel writes it."""
    head = struct.pack("!BBHHH", how.request, 0, 0, os.getpid() & 0xFFFF, number)
    data = head + payload + (b"\0" if len(payload) % 2 else b"")
    total = sum(word for (word,) in struct.iter_unpack("!H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    checksum = struct.pack("!H", ~total & 0xFFFF)
    return head[:2] + checksum + head[4:] + payload


def _answered(
    asker: socket.socket,
    how: _Protocol,
    raw: bool,
    number: int,
    payload: bytes,
    timeout_s: float,
) -> bool:
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        if _received(asker, how, raw, left) == (number, payload):
            return True
    return False


def _received(
    asker: socket.socket, how: _Protocol, raw: bool, timeout_s: float
) -> tuple[int, bytes] | None:
    """Number and payload of the next answer; None where none came, or something else."""
    asker.settimeout(timeout_s)
    try:
        answer = asker.recv(65536)
    except OSError:  # too late, or an error message of a router about an earlier packet
        return None
    if raw and how.header_received:
        answer = answer[4 * (answer[0] & 0xF) :]
    if len(answer) < _ICMP_HEADER_BYTES:
        return None
    kind, _, _, identity, number = struct.unpack_from("!BBHHH", answer)
    if kind != how.reply or (raw and identity != os.getpid() & 0xFFFF):
        return None
    return number, answer[_ICMP_HEADER_BYTES:]
