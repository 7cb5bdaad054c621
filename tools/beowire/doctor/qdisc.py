# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of queueing disciplines, which frames pass on their way out [A6, A8]."""

from typing import Any

from beowire.doctor.check import (
    CLUSTER,
    Bad,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Goal, Interface, Node

_SHAPERS = {"tbf", "htb", "hfsc", "netem", "cbs", "etf", "taprio", "cake"}
_FILTERS = {"clsact", "ingress"}
_PACED = {"fq", "cake"}
_LIMITED = {"pfifo", "pfifo_head_drop", "fq", "fq_codel", "codel", "sfq"}
"""Disciplines whose limit is a number of frames."""
_LEAST_FRAMES = 100
_CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
_DROPPED_SHARE = 1e-4
_DROPPED_FEW = 10
_QDISCS = "rtnetlink RTM_GETQDISC"


def _of(node: Node, interface: Interface) -> list[dict[str, Any]]:
    return [each for each in node.answer("qdiscs") if each["index"] == interface.link["index"]]


def _kinds(node: Node, interface: Interface) -> set[str]:
    return {each["kind"] for each in _of(node, interface)}


def _shaping(node: Node, interface: Interface) -> Verdict:
    found = sorted(_kinds(node, interface) & _SHAPERS)
    if not found:
        return Good("no limit of rate")
    advice = f"If it is not wanted: tc qdisc del dev {interface.name} root"
    return Bad(f"frames pass {', '.join(found)}", "no limit of rate", advice=advice)


def _filters(node: Node, interface: Interface) -> Verdict:
    found = sorted(_kinds(node, interface) & _FILTERS)
    if not found:
        return Good("no filters")
    advice = f"See what they do: tc filter show dev {interface.name} ingress"
    return Bad(f"frames pass filters ({', '.join(found)})", "none", advice=advice)


def _dropped(node: Node, interface: Interface) -> Verdict:
    drops = sum(each["drops"] for each in _of(node, interface))
    packets = sum(each["packets"] for each in _of(node, interface))
    read = f"{drops} dropped of {packets + drops}"
    if drops < _DROPPED_FEW or drops <= packets * _DROPPED_SHARE:
        return Good(read)
    advice = "Lengthen the queue (link.queue_length), or find out who sends faster than the link."
    return Bad(read, "less than one in ten thousand", advice=advice)


def _limit(node: Node, interface: Interface) -> Verdict:
    limits = [
        (each["kind"], each["limit"])
        for each in _of(node, interface)
        if each["kind"] in _LIMITED and each.get("limit") is not None
    ]
    if not limits:
        raise NotApplicable("no queue has a limit of its own")
    read = ", ".join(f"{kind} limit {limit}" for kind, limit in limits)
    if all(limit >= _LEAST_FRAMES for _, limit in limits):
        return Good(read)
    advice = f"tc qdisc del dev {interface.name} root, or a limit of 1000 and more"
    return Bad(read, f"at least {_LEAST_FRAMES}", advice=advice)


def _paced(node: Node, interface: Interface) -> Verdict:
    kinds = _kinds(node, interface) - _FILTERS
    if kinds <= {"noqueue"}:
        raise NotApplicable("it has no queue")
    if kinds & (_SHAPERS - _PACED):
        raise NotApplicable("its rate is limited, see qdisc.shaping")
    if node.text(_CONTROL).strip() != "bbr":
        raise NotApplicable("TCP does not use BBR")
    if kinds & _PACED:
        return Good(f"frames pass {', '.join(sorted(kinds))}")
    advice = f"tc qdisc replace dev {interface.name} root fq"
    return Bad(f"BBR over {', '.join(sorted(kinds))}", "fq", advice=advice)


CHECKS = (
    Check(
        name="qdisc.shaping",
        title="Nothing limits the rate of what is sent",
        why="The link is not used, and messages wait in the limiter's queue.",
        sources=("[A8]", "kernel: networking/"),
        reads=(_QDISCS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_shaping,
    ),
    Check(
        name="qdisc.filters",
        title="Frames pass no traffic-control filters",
        why="Each frame is judged once more, when sent and when received.",
        sources=("[A8]", "kernel: networking/tc-actions-env-rules.rst"),
        reads=(_QDISCS,),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        goals=CLUSTER,
        look_at=_filters,
    ),
    Check(
        name="qdisc.dropped",
        title="The node does not drop what it sends itself",
        why="Each drop costs a repair, although the network had room.",
        sources=("kernel: networking/gen_stats.rst",),
        reads=(_QDISCS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_dropped,
    ),
    Check(
        name="qdisc.pacing",
        title="BBR's sends are paced by the fq discipline",
        why="Without it each connection needs timers of its own, and competes in one queue.",
        sources=("kernel: networking/ip-sysctl.rst",),
        reads=(_QDISCS, _CONTROL),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        goals=frozenset({Goal.WAN}),
        look_at=_paced,
    ),
    Check(
        name="qdisc.limit",
        title="The queue has room for a burst",
        why="What finds no room is dropped before it has left the node.",
        sources=("man: tc-pfifo(8)", "man: tc-fq(8)"),
        reads=(_QDISCS,),
        sure=Sure.RULE,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_limit,
    ),
)
