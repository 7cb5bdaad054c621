# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of netfilter [A8]. It guards the node: what is found is reported and never fixed."""

from beowire.doctor.check import Bad, Check, Fix, Good, NotApplicable, Sure, Verdict, Weight
from beowire.doctor.node import Node

_CONNTRACK = "kernel: networking/nf_conntrack-sysctl.rst"
_COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
_MOST = "/proc/sys/net/netfilter/nf_conntrack_max"
_BRIDGE = "/proc/sys/net/bridge/bridge-nf-call-iptables"
_LEGACY = "/proc/net/ip_tables_names"
_FULL = 0.8
_CLOSED = "In a closed cluster: leave the cluster's network out of the rules (notrack, flowtable)."


def _rules(node: Node) -> Verdict:
    found = [f"{each['name']} ({each['rules']})" for each in node.answer("tables") if each["rules"]]
    if node.exists(_LEGACY):
        found += node.text(_LEGACY).split()
    if not found:
        return Good("no rules")
    return Bad(f"tables with rules: {', '.join(found)}", "none", advice=_CLOSED)


def _tracking(node: Node) -> Verdict:
    count = node.number(_COUNT)
    if not count:
        return Good("no connection is tracked")
    return Bad(f"{count} connections are tracked", "none", advice=_CLOSED)


def _room(node: Node) -> Verdict:
    count, most = node.number(_COUNT), node.number(_MOST)
    read = f"{count} of {most} entries in use"
    if count <= most * _FULL:
        return Good(read)
    advice = f"sysctl -w net.netfilter.nf_conntrack_max={2 * most}, or track less"
    return Bad(read, f"at most {_FULL:.0%}", advice=advice)


def _bridged(node: Node) -> Verdict:
    if not any(each["kind"] == "bridge" for each in node.answer("links")):
        raise NotApplicable("there is no bridge")
    if not node.number(_BRIDGE):
        return Good("bridged frames do not pass iptables")
    advice = "sysctl -w net.bridge.bridge-nf-call-iptables=0, if no rules rely on it"
    return Bad("bridged frames pass iptables", "not", advice=advice)


CHECKS = (
    Check(
        name="netfilter.rules",
        title="Frames pass no packet filter",
        why="Each rule is evaluated for each packet until one decides.",
        sources=("[A8]",),
        reads=("netfilter netlink NFT_MSG_GETTABLE, NFT_MSG_GETRULE", _LEGACY),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_rules,
    ),
    Check(
        name="netfilter.tracking",
        title="Connections are not tracked",
        why="Each packet looks its connection up in a table that all processors share.",
        sources=("[A8]", _CONNTRACK),
        reads=(_COUNT,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_tracking,
    ),
    Check(
        name="netfilter.table_full",
        title="The table of tracked connections has room",
        why="When it is full packets of new connections are dropped.",
        sources=(_CONNTRACK,),
        reads=(_COUNT, _MOST),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_room,
    ),
    Check(
        name="netfilter.bridged",
        title="Bridged frames do not pass the packet filter",
        why="Each frame of each guest is judged by the node's own rules.",
        sources=("kernel: networking/bridge.rst",),
        reads=(_BRIDGE,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_bridged,
    ),
)
