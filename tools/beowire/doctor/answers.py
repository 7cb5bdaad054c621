# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What rtnetlink, netfilter's netlink and system calls tell, as plain values for JSON.

Everything acts in the calling thread's network namespace.
"""

import contextlib
import ctypes
import os
import socket
from collections.abc import Callable
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink import NLM_F_DUMP, NLM_F_REQUEST, genlmsg
from pyroute2.netlink.generic import GenericNetlinkSocket
from pyroute2.nftables.main import NFTables

from beowire import ethtool

Link = dict[str, Any]

_ATTRIBUTES = {
    "mtu": "IFLA_MTU",
    "min_mtu": "IFLA_MIN_MTU",
    "max_mtu": "IFLA_MAX_MTU",
    "txqlen": "IFLA_TXQLEN",
    "gso_max_size": "IFLA_GSO_MAX_SIZE",
    "gro_max_size": "IFLA_GRO_MAX_SIZE",
    "gso_max_segs": "IFLA_GSO_MAX_SEGS",
    "tso_max_segs": "IFLA_TSO_MAX_SEGS",
    "tso_max_size": "IFLA_TSO_MAX_SIZE",
    "tx_queues": "IFLA_NUM_TX_QUEUES",
    "rx_queues": "IFLA_NUM_RX_QUEUES",
    "state": "IFLA_OPERSTATE",
    "master": "IFLA_MASTER",
    "below": "IFLA_LINK",
    "carrier": "IFLA_CARRIER",
    "address": "IFLA_ADDRESS",
    "permanent_address": "IFLA_PERM_ADDRESS",
    "promiscuity": "IFLA_PROMISCUITY",
}
SETTABLE = {"mtu", "txqlen", "gso_max_size", "gro_max_size", "gso_max_segs"}
_ARPHRD_ETHER = 1
_IFF_UP = 1
_IFF_NOARP = 0x80
_METRICS = {
    "mtu": "RTAX_MTU",
    "window": "RTAX_WINDOW",
    "advmss": "RTAX_ADVMSS",
    "cwnd": "RTAX_CWND",
    "initcwnd": "RTAX_INITCWND",
    "rto_min": "RTAX_RTO_MIN",
}
_UNICAST = 1


def links() -> list[Link]:
    """All Ethernet interfaces: attributes, addresses with prefix length, counters."""
    with IPRoute() as route:
        addresses: dict[int, list[str]] = {}
        for message in route.get_addr():
            text = f"{message.get_attr('IFA_ADDRESS')}/{message['prefixlen']}"
            addresses.setdefault(message["index"], []).append(text)
        found = []
        for message in route.get_links():
            if message["ifi_type"] != _ARPHRD_ETHER:
                continue
            link: Link = {
                "name": message.get_attr("IFLA_IFNAME"),
                "index": message["index"],
                "up": bool(message["flags"] & _IFF_UP),
                "arp": not message["flags"] & _IFF_NOARP,
                "addresses": addresses.get(message["index"], []),
            }
            for name, attribute in _ATTRIBUTES.items():
                link[name] = message.get_attr(attribute)
            information = message.get_attr("IFLA_LINKINFO")
            link["kind"] = information and information.get_attr("IFLA_INFO_KIND")
            program = message.get_attr("IFLA_XDP")
            link["xdp"] = (program and program.get_attr("IFLA_XDP_ATTACHED")) or None
            counters = message.get_attr("IFLA_STATS64") or {}
            link["counters"] = {k: v for k, v in counters.items() if isinstance(v, int)}
            found.append(link)
        return found


def set_link(interface: str, name: str, value: int) -> None:
    """Changes an attribute of an interface. Raises NetlinkError."""
    if name not in SETTABLE:
        raise ValueError(f"{name} is no attribute to set")
    with IPRoute() as route:
        index = route.link_lookup(ifname=interface)
        if not index:
            raise OSError(19, os.strerror(19))
        route.link("set", index=index[0], **{name: value})


def qdiscs() -> list[Link]:
    """All queueing disciplines: interface's index, kind, parent, packets, drops, overlimits, and
    the limit of their queue, if they have one."""
    with IPRoute() as route:
        found = []
        for message in route.get_qdiscs():
            statistics = message.get_attr("TCA_STATS2")
            basic = statistics and statistics.get_attr("TCA_STATS_BASIC")
            queue = statistics and statistics.get_attr("TCA_STATS_QUEUE")
            found.append(
                {
                    "index": message["index"],
                    "kind": message.get_attr("TCA_KIND"),
                    "limit": _limit(message.get_attr("TCA_OPTIONS")),
                    "parent": message["parent"],
                    "packets": basic["packets"] if basic else 0,
                    "drops": queue["drops"] if queue else 0,
                    "overlimits": queue["overlimits"] if queue else 0,
                }
            )
        return found


def _limit(options: Any) -> int | None:
    """The limit among a discipline's options, a structure or attributes such as TCA_FQ_PLIMIT."""
    try:
        return int(options["limit"])
    except (KeyError, TypeError, ValueError):
        pass
    for name, value in getattr(options, "get", lambda *_: ())("attrs", ()) or ():
        if name.endswith(("_LIMIT", "_PLIMIT")) and isinstance(value, int):
            return value
    return None


def routes() -> list[Link]:
    """Routes to other hosts: the interface's index, IP's version, destination with prefix length,
    whether by a gateway, and metrics (rto_min in ms)."""
    with IPRoute() as route:
        found = []
        for message in route.get_routes():
            if message["type"] != _UNICAST or message.get_attr("RTA_OIF") is None:
                continue
            metrics = message.get_attr("RTA_METRICS")
            values = {
                name: metrics.get_attr(attribute) if metrics else None
                for name, attribute in _METRICS.items()
            }
            to = f"{message.get_attr('RTA_DST') or 'default'}/{message['dst_len']}"
            found.append(
                {
                    "index": message.get_attr("RTA_OIF"),
                    "version": 4 if message["family"] == socket.AF_INET else 6,
                    "to": to,
                    "gateway": message.get_attr("RTA_GATEWAY") is not None,
                    "metrics": {name: value for name, value in values.items() if value},
                }
            )
        return found


def twins() -> list[Link]:
    """Neighbours with the hardware address of the interface by which they are known: its index, and
    the neighbour's address."""
    mine = {link["index"]: (link["address"], link["addresses"]) for link in links()}
    with IPRoute() as route:
        found = []
        for message in route.get_neighbours():
            hardware, own = mine.get(message["ifindex"], (None, []))
            address = message.get_attr("NDA_DST")
            if hardware and message.get_attr("NDA_LLADDR") == hardware and address:
                here = any(each.partition("/")[0] == address for each in own)
                if not here and not message["state"] & _NUD_NOARP:
                    found.append({"index": message["ifindex"], "address": address})
        return found


_NUD_NOARP = 0x40


def tables() -> list[Link]:
    """Tables of nf_tables with the number of their rules."""
    with NFTables(nfgen_family=0) as netfilter:
        rules: dict[tuple[int, str], int] = {}
        for message in netfilter.get_rules():
            key = message["nfgen_family"], message.get_attr("NFTA_RULE_TABLE")
            rules[key] = rules.get(key, 0) + 1
        found = []
        for message in netfilter.get_tables():
            family, name = message["nfgen_family"], message.get_attr("NFTA_TABLE_NAME")
            found.append({"family": family, "name": name, "rules": rules.get((family, name), 0)})
        return found


class _NapiMessage(genlmsg):  # type: ignore[misc]
    """The first attributes of NETDEV_CMD_NAPI_GET (linux/netdev.h, since Linux 6.8)."""

    nla_map = (("NONE", "none"), ("ifindex", "uint32"), ("id", "uint32"), ("irq", "uint32"))


_NAPI_GET = 11


def napi() -> list[Link]:
    """NAPI instances that poll now: the interface's index and the instance's number."""
    with GenericNetlinkSocket() as netdev:
        netdev.bind("netdev", _NapiMessage)
        message = _NapiMessage()
        message["cmd"] = _NAPI_GET
        message["version"] = 1
        found = netdev.nlm_request(
            message, msg_type=netdev.prid, msg_flags=NLM_F_REQUEST | NLM_F_DUMP
        )
        return [{"index": each.get_attr("ifindex"), "id": each.get_attr("id")} for each in found]


class _Timex(ctypes.Structure):
    """struct timex of adjtimex(2); times in microseconds, or nanoseconds by status."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_long * 32),
    )


_TIME_ERROR = 5
_STA_UNSYNC = 0x40
_STA_NANO = 0x2000


def clock() -> Link:
    """The kernel's view of its clock: synchronized or not, offset and largest error in us."""
    timex = _Timex()
    state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    if state < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    nanoseconds = bool(timex.status & _STA_NANO)
    return {
        "synchronized": state != _TIME_ERROR and not timex.status & _STA_UNSYNC,
        "offset_us": timex.offset / 1000 if nanoseconds else float(timex.offset),
        "largest_error_us": timex.maxerror,
    }


def firmware() -> dict[str, str]:
    """The versions of NICs' firmware, by interface; those that tell one."""
    found = {}
    for link in links():
        with contextlib.suppress(OSError):
            if version := ethtool.firmware(link["name"]):
                found[link["name"]] = version
    return found


ASKED: dict[str, Callable[[], Any]] = {
    "links": links,
    "qdiscs": qdiscs,
    "routes": routes,
    "twins": twins,
    "tables": tables,
    "napi": napi,
    "clock": clock,
    "firmware": firmware,
}
