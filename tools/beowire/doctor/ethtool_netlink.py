# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A NIC's settings by ethtool's generic netlink family, as plain dictionaries.

pyroute2 brings the transport and some of the messages; the layouts of the others follow
Documentation/networking/ethtool-netlink.rst and linux/ethtool_netlink.h of the kernel.
"""

from dataclasses import dataclass
from typing import Any

from pyroute2.netlink import NLM_F_ACK, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.generic import GenericNetlinkSocket
from pyroute2.netlink.generic.ethtool import ethtoolbitset, ethtoolheader

Answer = dict[str, Any]

_VERSION = 1


@dataclass(frozen=True)
class _Kind:
    """One pair of requests and its attributes, from number 2 on; number 1 is the header."""

    get: int
    set: int
    attributes: tuple[tuple[str, str], ...]


_U8, _U32, _BITS, _SKIP = "uint8", "uint32", "ethtoolbitset", "none"

_KINDS = {
    "linkmodes": _Kind(
        4,
        5,
        (
            ("autoneg", _U8),
            ("ours", _BITS),
            ("peer", _BITS),
            ("speed", _U32),
            ("duplex", _U8),
        ),
    ),
    "features": _Kind(
        11, 12, (("hw", _BITS), ("wanted", _BITS), ("active", _BITS), ("nochange", _BITS))
    ),
    "rings": _Kind(
        15,
        16,
        (
            ("rx-max", _U32),
            ("rx-mini-max", _U32),
            ("rx-jumbo-max", _U32),
            ("tx-max", _U32),
            ("rx", _U32),
            ("rx-mini", _U32),
            ("rx-jumbo", _U32),
            ("tx", _U32),
            ("rx-buf-len", _U32),
            ("tcp-data-split", _U8),
        ),
    ),
    "channels": _Kind(
        17,
        18,
        (
            ("rx-max", _U32),
            ("tx-max", _U32),
            ("other-max", _U32),
            ("combined-max", _U32),
            ("rx", _U32),
            ("tx", _U32),
            ("other", _U32),
            ("combined", _U32),
        ),
    ),
    "coalesce": _Kind(
        19,
        20,
        (
            ("rx-usecs", _U32),
            ("rx-frames", _U32),
            ("rx-usecs-irq", _U32),
            ("rx-frames-irq", _U32),
            ("tx-usecs", _U32),
            ("tx-frames", _U32),
            ("tx-usecs-irq", _U32),
            ("tx-frames-irq", _U32),
            ("stats-block-usecs", _U32),
            ("adaptive-rx", _U8),
            ("adaptive-tx", _U8),
        ),
    ),
    "pause": _Kind(21, 22, (("autoneg", _U8), ("rx", _U8), ("tx", _U8))),
    "eee": _Kind(
        23,
        24,
        (
            ("modes-ours", _BITS),
            ("modes-peer", _BITS),
            ("active", _U8),
            ("enabled", _U8),
            ("tx-lpi-enabled", _U8),
            ("tx-lpi-timer", _U32),
        ),
    ),
    "rss": _Kind(38, 0, (("context", _U32), ("hfunc", _U32), ("indir", "cdata"))),
}

KINDS = frozenset(_KINDS)


def _message(kind: _Kind) -> type[genlmsg]:
    attributes = (("NONE", "none"), ("header", "ethtoolheader"), *kind.attributes)
    body = {
        "nla_map": attributes,
        "ethtoolheader": ethtoolheader,
        "ethtoolbitset": ethtoolbitset,
    }
    return type("ethtool_message", (genlmsg,), body)


_MESSAGES = {name: _message(kind) for name, kind in _KINDS.items()}


class Ethtool:
    """A socket to the ethtool family, of the network namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = GenericNetlinkSocket()
        self._socket.bind("ethtool", _MESSAGES["rings"])

    def close(self) -> None:
        self._socket.close()

    def get(self, interface: str, kind: str) -> Answer:
        """What the kernel tells of `kind` (a member of KINDS) for an interface.

        Numbers by name; a set of bits is the list of the names that are set. Raises NetlinkError
        with the kernel's code: EOPNOTSUPP where the driver has no such thing, ENODEV.
        """
        message = self._request(interface, kind, _KINDS[kind].get)
        answers = self._ask(kind, message, NLM_F_REQUEST)
        return _plain(answers[0], _KINDS[kind]) if answers else {}

    def set(self, interface: str, kind: str, name: str, value: int) -> None:
        """Changes one number of `kind`; for "features" `name` is the feature and 0 switches it
        off. Raises NetlinkError."""
        message = self._request(interface, kind, _KINDS[kind].set)
        if kind == "features":
            message["attrs"].append(("wanted", _one_bit(name, bool(value))))
        else:
            message["attrs"].append((name, value))
        self._ask(kind, message, NLM_F_REQUEST | NLM_F_ACK)

    def _request(self, interface: str, kind: str, command: int) -> genlmsg:
        message = _MESSAGES[kind]()
        message["cmd"] = command
        message["version"] = _VERSION
        header = {"attrs": [["ETHTOOL_A_HEADER_DEV_NAME", interface]]}
        message["attrs"].append(("header", header))
        return message

    def _ask(self, kind: str, message: genlmsg, flags: int) -> list[Any]:
        self._socket.bind("ethtool", _MESSAGES[kind])
        answers = self._socket.nlm_request(message, msg_type=self._socket.prid, msg_flags=flags)
        return list(answers)


def _one_bit(name: str, on: bool) -> Answer:
    bit: list[Any] = [("ETHTOOL_A_BITSET_BIT_NAME", name)]
    if on:
        bit.append(("ETHTOOL_A_BITSET_BIT_VALUE", True))
    bits = {"attrs": [("ETHTOOL_A_BITSET_BITS_BIT", {"attrs": bit})]}
    return {"attrs": [("ETHTOOL_A_BITSET_BITS", bits)]}


def _plain(message: Any, kind: _Kind) -> Answer:
    """The message's attributes that are there."""
    result: Answer = {}
    for name, form in kind.attributes:
        value = message.get_attr(name)
        if value is None:
            continue
        if form == _BITS:
            result[name], result[f"{name}-known"] = _bits(value)
        elif form == "cdata":
            words = memoryview(value).cast("I")
            result[name] = list(words)
        else:
            result[name] = value
    return result


def _bits(bitset: Any) -> tuple[list[str], list[str]]:
    """The names of the bits that are set, and of all that the kernel lists. A list without a mask
    names the set ones only."""
    known, found = [], []
    without_mask = bitset.get_attr("ETHTOOL_A_BITSET_NOMASK") is not None
    bits = bitset.get_attr("ETHTOOL_A_BITSET_BITS")
    for bit in bits.get_attrs("ETHTOOL_A_BITSET_BITS_BIT") if bits is not None else ():
        name = bit.get_attr("ETHTOOL_A_BITSET_BIT_NAME")
        known.append(name)
        if without_mask or bit.get_attr("ETHTOOL_A_BITSET_BIT_VALUE") is not None:
            found.append(name)
    return found, known
