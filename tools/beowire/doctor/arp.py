# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Who holds an address of the network: asked by ARP, which all that hold it answer.

The question is RFC 5227's probe: it comes from no address, so nobody learns a false one from it.
"""

import ipaddress
import select
import socket
import struct
import time
from collections.abc import Iterable
from typing import Any

_ETHER = 1
_ETH_P_ARP = 0x0806
_IPV4 = 0x0800
_REQUEST, _REPLY = 1, 2
_TRIES = 3
_HEAD = struct.Struct("!HHBBH")
_BODY = struct.Struct("!6s4s6s4s")
_NOBODY = bytes(4)


def holders(
    link: dict[str, Any], addresses: Iterable[str], answer_s: float
) -> dict[str, list[str]]:
    """The hardware addresses that each address is held by, sorted, as seen through this interface,
    whose own does not count. Each question waits so long for answers. Raises OSError, with EPERM
    where packet sockets are refused."""
    mine = bytes.fromhex(link["address"].replace(":", ""))
    wanted = {ipaddress.IPv4Address(each).packed: each for each in addresses}
    found: dict[str, set[str]] = {each: set() for each in wanted.values()}
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0) as asker:
        asker.bind((link["name"], _ETH_P_ARP))
        for _ in range(_TRIES):
            for each in wanted:
                question = _HEAD.pack(_ETHER, _IPV4, 6, 4, _REQUEST)
                question += _BODY.pack(mine, _NOBODY, bytes(6), each)
                asker.sendto(question, (link["name"], _ETH_P_ARP, 0, 0, b"\xff" * 6))
            for sender, address in _answers(asker, time.monotonic() + answer_s):
                if address in wanted and sender != mine:
                    found[wanted[address]].add(sender.hex(":"))
    return {address: sorted(those) for address, those in found.items()}


def _answers(asker: socket.socket, until_s: float) -> Iterable[tuple[bytes, bytes]]:
    """Hardware address and address of all that answer until then."""
    while (left := until_s - time.monotonic()) > 0:
        if not select.select([asker], [], [], left)[0]:
            return
        frame = asker.recv(2048)
        if len(frame) < _HEAD.size + _BODY.size:
            continue
        if _HEAD.unpack_from(frame) == (_ETHER, _IPV4, 6, 4, _REPLY):
            sender, address, _, _ = _BODY.unpack_from(frame, _HEAD.size)
            yield sender, address
