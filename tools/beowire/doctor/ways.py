# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of how a node is found and reached: routes, networks, its own name, lost echoes."""

import errno
import ipaddress
import socket
from typing import Any

from beowire.doctor.check import Bad, Check, Fix, Good, NotApplicable, Sure, Verdict, Weight
from beowire.doctor.node import Interface, Node
from beowire.doctor.rules import at_least, exactly, sysctl
from beowire.doctor.words import counted

_IP_SYSCTL = "kernel: networking/ip-sysctl.rst"
_ROUTES = "rtnetlink RTM_GETROUTE"
_HOSTS = "/etc/hosts"
_LEAST_WINDOW = 65536
_LEAST_CWND = 10
_MOST_RTO_MS = 200
_HEADERS_BYTES = 40
_LOST_FEW = 2


def _holding_back(metrics: dict[str, int], mtu: int) -> list[str]:
    """Those of a route's metrics that make connections slower than the interface's link lets."""
    size = min(mtu, metrics.get("mtu", mtu))
    wrong = {
        "mtu": size < mtu,
        "advmss": metrics.get("advmss", size) < size - _HEADERS_BYTES,
        "window": metrics.get("window", _LEAST_WINDOW) < _LEAST_WINDOW,
        "cwnd": "cwnd" in metrics,
        "initcwnd": metrics.get("initcwnd", _LEAST_CWND) < _LEAST_CWND,
        "rto_min": metrics.get("rto_min", _MOST_RTO_MS) > _MOST_RTO_MS,
    }
    return [f"{name} {metrics[name]}" for name, bad in wrong.items() if bad]


def _metrics(node: Node, interface: Interface) -> Verdict:
    routes = [each for each in node.answer("routes") if each["index"] == interface.link["index"]]
    found = [
        f"{each['to']}: {', '.join(held)}"
        for each in routes
        if (held := _holding_back(each["metrics"], interface.link["mtu"]))
    ]
    if not found:
        return Good(f"{counted(len(routes), 'route')}, none holds connections back")
    advice = "ip route change with the same route but for these; see who sets them (DHCP, scripts)."
    return Bad("; ".join(found), "no such metrics", advice=advice)


def _network(node: Node, interface: Interface) -> Verdict:
    own = [ipaddress.ip_interface(each) for each in interface.link["addresses"]]
    four = [each for each in own if each.version == 4]
    if not four:
        raise NotApplicable("it has no IPv4 address")
    read = ", ".join(map(str, four))
    near = [
        each
        for each in node.answer("routes")
        if (each["index"], each["version"]) == (interface.link["index"], 4) and not each["gateway"]
    ]
    if any(each.network.prefixlen < 32 for each in four) or near:
        return Good(read)
    advice = f"ip addr replace ADDRESS/24 dev {interface.name}, with your network's bits"
    return Bad(read, "a network with its neighbours in it", advice=advice)


def _name(node: Node) -> Verdict:
    name = node.host
    for line in node.text(_HOSTS).splitlines():
        address, *names = line.partition("#")[0].split() or [""]
        if name not in names:
            continue
        if not address.startswith("127.") and address != "::1":
            return Good(f"{name} has an address of a network")
        advice = f"In {_HOSTS} give {name} its address of the cluster's network, before that line."
        return Bad(f"{name} is {address}", "an address of a network", advice=advice)
    return Good(f"{name} is not in {_HOSTS}")


def _path(node: Node) -> dict[str, Any]:
    """To the other node; empty where that is not known, of which path.mtu tells."""
    if not node.peer:
        raise NotApplicable("no other node was named (--peer)")
    try:
        return node.path_to(node.peer, node.round_trip_s)
    except socket.gaierror:
        return {}


def _loss(node: Node) -> Verdict:
    path = _path(node)
    if not path.get("passes"):
        return Good("see path.mtu")
    lost, sent = path["lost"], path["sent"]
    read = f"{lost} of {sent} echoes of {node.peer} were lost"
    if lost < _LOST_FEW:
        return Good(read)
    advice = "Look at cables, at link.damage, rings.lost and qdisc.dropped of both, at the switch."
    return Bad(read, "none", advice=advice)


def _held(node: Node) -> Verdict:
    holders = _path(node).get("holders", {})
    if holders is None:
        raise PermissionError(errno.EPERM, "asking by ARP needs a packet socket")
    if not holders:
        raise NotApplicable("its holders cannot be asked by ARP")
    mine, *peers = holders.items()
    twice = [f"{mine[0]}, this node's, by {', '.join(mine[1])}"] if mine[1] else []
    twice += [f"{each} by {', '.join(those)}" for each, those in peers if len(those) > 1]
    if not twice:
        return Good(f"{', '.join(holders)}: one node each")
    advice = (
        "Give each node an address of its own; where both are interfaces of one node, see its "
        "path.answers."
    )
    return Bad(f"also held: {'; '.join(twice)}", "by one node", advice=advice)


CHECKS = (
    Check(
        name="path.holders",
        title="No address is held by two nodes",
        why="Whoever answered last gets the frames of both, until the other one answers.",
        sources=("RFC 5227",),
        reads=("ARP probes for the node's own address and the other node's",),
        sure=Sure.MEASURED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_held,
    ),
    Check(
        name="path.loss",
        title="No packet to another node is lost",
        why="One in a hundred takes most of TCP's throughput, and each costs a timeout or more.",
        sources=("RFC 3649, 2", "RFC 6298"),
        reads=("ICMP echo, a thousand times",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        of_peer=True,
        look=_loss,
    ),
    Check(
        name="path.metrics",
        title="Routes do not hold connections back",
        why="A route's metrics win over what the interface and TCP would do by themselves.",
        sources=("man: ip-route(8)",),
        reads=(_ROUTES,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_metrics,
    ),
    Check(
        name="path.network",
        title="The interface's network has its neighbours in it",
        why="With a netmask of 32 bits neighbours are reached by a router, or not at all.",
        sources=("RFC 950", "man: ip-address(8)"),
        reads=("rtnetlink RTM_GETADDR", _ROUTES),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_network,
    ),
    Check(
        name="path.name",
        title="The node's name is no loopback address",
        why="Programs that tell others their address by their name tell 127.0.1.1.",
        sources=("man: hosts(5)",),
        reads=(_HOSTS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_name,
    ),
    sysctl(
        "path.echo",
        "net.ipv4.icmp_echo_ignore_all",
        exactly(0),
        title="The node answers echoes",
        why="Other nodes cannot tell a path that fails from a node that is silent.",
        sources=("RFC 1122, 3.2.2.6", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
    ),
    sysctl(
        "path.neighbours_kept",
        "net.ipv4.neigh.default.gc_thresh2",
        at_least(512),
        title="Neighbours are kept for a while",
        why="Beyond it entries go after five seconds, and addresses are asked for again.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
)
