# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of how a link is used: whose frames it takes, whom it asks, what it drops."""

from beowire.doctor.check import Bad, Check, Fix, Good, Sure, Verdict, Weight
from beowire.doctor.node import Interface, Node

_LINKS = "rtnetlink RTM_GETLINK"
_DROPPED_SHARE = 1e-3
_DROPPED_FEW = 100


def _arp(_: Node, interface: Interface) -> Verdict:
    if interface.link.get("arp", True) or interface.kind == "ipvlan":
        return Good("neighbours are asked for")
    advice = f"ip link set {interface.name} arp on"
    return Bad("ARP is switched off", "on", advice=advice)


def _promiscuous(_: Node, interface: Interface) -> Verdict:
    if not interface.link.get("promiscuity") or interface.link["master"]:
        return Good("it takes its own frames only")
    advice = (
        f"Find out who wants it (captures, macvlan): ip -d link show {interface.name}; "
        f"by hand: ip link set {interface.name} promisc off"
    )
    return Bad("it takes all frames", "its own frames only", advice=advice)


def _unique(node: Node, interface: Interface) -> Verdict:
    twins = [each for each in node.answer("twins") if each["index"] == interface.link["index"]]
    if not twins:
        return Good("no neighbour has its hardware address")
    names = ", ".join(each["address"] for each in twins)
    advice = "Give one of them another: copies of virtual machines have what the first had."
    return Bad(f"{names} has its hardware address", "one of its own", advice=advice)


def _dropped(_: Node, interface: Interface) -> Verdict:
    counters = interface.link["counters"]
    dropped, frames = counters.get("rx_dropped", 0), counters.get("rx_packets", 0)
    read = f"{dropped} of {frames} received frames dropped"
    if dropped < _DROPPED_FEW or dropped <= frames * _DROPPED_SHARE:
        return Good(read)
    advice = (
        "Look at softnet.backlog and rings.receive; frames of protocols and VLANs that nobody "
        "here takes count too."
    )
    return Bad(read, "less than one in a thousand", advice=advice)


CHECKS = (
    Check(
        name="link.arp",
        title="The interface asks for its neighbours",
        why="Without ARP a node reaches only those that somebody has told it by hand.",
        sources=("RFC 826", "man: ip-link(8)"),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_arp,
    ),
    Check(
        name="link.promiscuous",
        title="The NIC takes its own frames only",
        why="Frames for others go up to the kernel, which throws them away.",
        sources=("man: packet(7)",),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look_at=_promiscuous,
    ),
    Check(
        name="link.unique",
        title="No neighbour has the interface's hardware address",
        why="The switch sends frames for both to whoever sent last.",
        sources=("IEEE 802.1Q, 8.7",),
        reads=("rtnetlink RTM_GETNEIGH", _LINKS),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_unique,
    ),
    Check(
        name="link.dropped",
        title="The node does not drop what it receives",
        why="Each drop costs its sender a repair, although the network carried the frame.",
        sources=("kernel: ABI/testing/sysfs-class-net-statistics",),
        reads=(_LINKS,),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_dropped,
    ),
)
