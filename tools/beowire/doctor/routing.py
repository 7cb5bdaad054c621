# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of what stands between the stack and the wire: bridges, tunnels, routes, taps, and the
table of neighbours."""

import ipaddress
import socket

from beowire.doctor.check import (
    Bad,
    Change,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Interface, Node
from beowire.doctor.rules import at_least, exactly, sysctl
from beowire.doctor.setting import FileSetting
from beowire.doctor.words import counted

_IP_SYSCTL = "kernel: networking/ip-sysctl.rst"
_LINKS = "rtnetlink RTM_GETLINK"
_TUNNELS = {"vxlan", "geneve", "gretap", "ip6gretap", "erspan", "gre", "ipip", "sit", "wireguard"}
_PACKET_SOCKETS = "/proc/net/packet"
_ALL_PROTOCOLS = "0003"
_STRICT = 1
_CONF = "/proc/sys/net/ipv4/conf"


def _bridge(node: Node, interface: Interface) -> Verdict:
    above = interface.link["master"]
    masters = [each for each in node.answer("links") if each["index"] == above]
    if interface.kind == "bridge":
        return Bad("it is a bridge", "a plain interface", advice="Put the address on the NIC.")
    if masters and masters[0]["kind"] == "bridge":
        advice = "Take the NIC out of the bridge, or give guests macvlan or SR-IOV instead."
        return Bad(f"it is a port of the bridge {masters[0]['name']}", "no bridge", advice=advice)
    return Good("no bridge")


def _tunnel(_: Node, interface: Interface) -> Verdict:
    if interface.kind not in _TUNNELS:
        return Good("no tunnel")
    advice = "Use the network beneath it for the cluster's messages."
    return Bad(f"it is a tunnel ({interface.kind})", "no tunnel", advice=advice)


def _taps(node: Node, interface: Interface) -> Verdict:
    count = 0
    for line in node.text(_PACKET_SOCKETS).splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ALL_PROTOCOLS and int(fields[4]) in (0, interface.link["index"]):
            count += 1
    if not count:
        return Good("no packet socket takes all frames")
    advice = "End the captures: tcpdump, LLDP and DHCP services, monitoring (ss -0 -p lists them)."
    return Bad(f"{counted(count, 'packet socket')} of all frames", "none", advice=advice)


def _in_one_network(node: Node) -> list[str]:
    """Interfaces whose addresses share a network with another interface's."""
    networks: dict[ipaddress.IPv4Network, set[str]] = {}
    for link in node.answer("links"):
        for address in link["addresses"]:
            parsed = ipaddress.ip_interface(address)
            if isinstance(parsed, ipaddress.IPv4Interface):
                networks.setdefault(parsed.network, set()).add(link["name"])
    return sorted({name for names in networks.values() if len(names) > 1 for name in names})


def _effective(node: Node, name: str, interface: str) -> int:
    return max(node.number(f"{_CONF}/{which}/{name}") for which in ("all", interface))


def _answers_for_others(node: Node) -> Verdict:
    several = _in_one_network(node)
    if not several:
        raise NotApplicable("no two interfaces share a network")
    wrong = [each for each in several if _effective(node, "arp_ignore", each) < 1]
    read = f"{', '.join(several)} share a network"
    if not wrong:
        return Good(f"{read}; each answers for itself")
    changes = []
    for name, value in (("arp_ignore", "1"), ("arp_announce", "2")):
        setting = FileSetting(f"{_CONF}/all/{name}")
        changes.append(Change(setting, setting.read(node), value))
    return Bad(f"{read} and answer for one another", "arp_ignore = 1", tuple(changes))


def _return_path(node: Node) -> Verdict:
    several = _in_one_network(node)
    if not several:
        raise NotApplicable("no two interfaces share a network")
    strict = [each for each in several if _effective(node, "rp_filter", each) == _STRICT]
    if not strict:
        return Good(f"{', '.join(several)} take answers on either")
    advice = "sysctl -w net.ipv4.conf.all.rp_filter=2, if your security rules allow it"
    return Bad(f"{', '.join(strict)} drop what came by the other", "rp_filter = 2", advice=advice)


def _path_mtu(node: Node) -> Verdict:
    if not node.peer:
        raise NotApplicable("no other node was named (--peer)")
    try:
        path = node.path_to(node.peer, node.round_trip_s)
    except socket.gaierror:
        return Bad(f"{node.peer} is not known", "a node that answers", advice="Name another one.")
    if why := path.get("unreached"):
        advice = f"See what the routes say: ip route get {node.peer}; ip route; ip rule"
        return Bad(f"no way to {node.peer}: {why}", "a route by an interface", advice=advice)
    name, mtu, passes = path["interface"], path["mtu"], path["passes"]
    if not passes:
        advice = "Look at its link and its packet filter (ICMP echo)."
        return Bad(f"{node.peer} does not answer", "a node that answers", advice=advice)
    if passes >= mtu:
        return Good(f"{mtu} bytes reach {node.peer} by {name}")
    advice = (
        f"Raise the MTU of all switches and of {node.peer}, or: ip link set {name} mtu {passes}"
    )
    return Bad(f"{passes} bytes reach {node.peer} by {name}", f"its mtu, {mtu}", advice=advice)


CHECKS = (
    Check(
        name="path.mtu",
        title="Frames of the full MTU reach another node",
        why="One device on the way that does not take jumbo frames drops them silently: short "
        "messages pass, long ones hang.",
        sources=("[D6]", "RFC 1191", "RFC 4821"),
        reads=("ICMP echo that must not be cut",),
        sure=Sure.MEASURED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        of_peer=True,
        look=_path_mtu,
    ),
    Check(
        name="path.bridge",
        title="No bridge lies on the path",
        why="A bridge looks each frame up once more, and takes segmentation and LRO off its ports.",
        sources=("[A5]", "kernel: networking/bridge.rst"),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_bridge,
    ),
    Check(
        name="path.tunnel",
        title="No tunnel lies on the path",
        why="Each frame goes through the stack twice and gets smaller by the outer headers.",
        sources=("[A5]", "RFC 7348"),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_tunnel,
    ),
    Check(
        name="path.taps",
        title="No program sees all frames",
        why="Each frame is copied for each such socket, when sent and when received.",
        sources=("[A6]", "[A11]", "kernel: networking/packet_mmap.rst"),
        reads=(_PACKET_SOCKETS,),
        sure=Sure.MEASURED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_taps,
    ),
    sysctl(
        "path.forwarding",
        "net.ipv4.ip_forward",
        exactly(0),
        title="The node does not route",
        why="A node that routes switches LRO off and looks up routes for frames of others.",
        sources=("[A5]", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
    ),
    Check(
        name="path.answers",
        title="Interfaces of one network answer for themselves only",
        why="Otherwise all traffic of several channels ends up on one of them.",
        sources=("[D4]", _IP_SYSCTL),
        reads=(_LINKS, f"{_CONF}/*/arp_ignore"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look=_answers_for_others,
    ),
    Check(
        name="path.return",
        title="Interfaces of one network take frames that came by the other",
        why="Strict reverse-path filtering drops them silently.",
        sources=("RFC 3704", "[D4]", _IP_SYSCTL),
        reads=(_LINKS, f"{_CONF}/*/rp_filter"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_return_path,
    ),
    sysctl(
        "path.neighbours",
        "net.ipv4.neigh.default.gc_thresh3",
        at_least(1024),
        title="The table of neighbours holds all nodes",
        why="Beyond it entries are thrown out and addresses are asked for again, or sends fail.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
)
