# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of how received frames are polled: NAPI and the queues behind it [A7, A8]."""

from beowire.doctor.check import (
    LATENCY,
    Bad,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Interface, Node
from beowire.doctor.rules import at_least, exactly, judged, sysctl
from beowire.doctor.setting import FileSetting

_NAPI = "kernel: networking/napi.rst"
_NET_SYSCTL = "kernel: admin-guide/sysctl/net.rst"
_SOFTNET = "/proc/net/softnet_stat"
_BUDGET = 600
_BUDGET_US = 8000
_BACKLOG = 5000
_BUSY_US = 50
_SHARE = 1e-5
_FEW = 10
_PROCESSED, _DROPPED, _SQUEEZED = 0, 1, 2


def _file(interface: Interface, name: str) -> FileSetting:
    return FileSetting(f"/sys/class/net/{interface.name}/{name}")


def _threaded(node: Node, interface: Interface) -> Verdict:
    return judged(node, _file(interface, "threaded"), exactly(0))


def _deferred(node: Node, interface: Interface) -> Verdict:
    return judged(node, _file(interface, "gro_flush_timeout"), exactly(0))


def _interrupts_deferred(node: Node, interface: Interface) -> Verdict:
    return judged(node, _file(interface, "napi_defer_hard_irqs"), exactly(0))


def _napi(node: Node, interface: Interface) -> Verdict:
    if not interface.link["up"] or not interface.physical:
        raise NotApplicable("it is down, or has no driver")
    count = sum(each["index"] == interface.link["index"] for each in node.answer("napi"))
    if count:
        return Good(f"{count} NAPI instances")
    advice = "Use a NIC whose driver polls, or a newer driver."
    return Bad("the driver does not use NAPI", "polling by NAPI", advice=advice)


def _softnet(node: Node, column: int) -> tuple[int, int]:
    """The sum of a column over processors, and that of frames."""
    rows = [line.split() for line in node.text(_SOFTNET).splitlines()]
    sums = [sum(int(row[position], 16) for row in rows) for position in (column, _PROCESSED)]
    return sums[0], sums[1]


def _backlog_dropped(node: Node) -> Verdict:
    dropped, frames = _softnet(node, _DROPPED)
    read = f"{dropped} of {frames} frames found a full backlog"
    if dropped < _FEW or dropped <= frames * _SHARE:
        return Good(read)
    advice = "sysctl -w net.core.netdev_max_backlog=N with twice the present N"
    return Bad(read, "none", advice=advice)


def _squeezed(node: Node) -> Verdict:
    squeezed, frames = _softnet(node, _SQUEEZED)
    read = f"polling was cut short {squeezed} times in {frames} frames"
    if squeezed < _FEW or squeezed <= frames * _SHARE:
        return Good(read)
    advice = "sysctl -w net.core.netdev_budget=N net.core.netdev_budget_usecs=M with larger values"
    return Bad(read, "seldom", advice=advice)


CHECKS = (
    Check(
        name="napi.driver",
        title="The NIC's driver polls",
        why="With an interrupt for each frame a burst leaves no time for programs.",
        sources=("[A7]", _NAPI),
        reads=("netdev netlink NAPI_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_napi,
    ),
    Check(
        name="napi.threaded",
        title="Polling is done where the interrupt came, not in a thread",
        why="A thread has to be woken first, and competes with programs for the processor.",
        sources=(_NAPI,),
        reads=("/sys/class/net/IFACE/threaded",),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        goals=LATENCY,
        look_at=_threaded,
    ),
    Check(
        name="napi.flush",
        title="Joined frames are handed on at once",
        why="With a time to flush, the last frames of a message wait for others to join.",
        sources=(_NAPI,),
        reads=("/sys/class/net/IFACE/gro_flush_timeout",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        goals=LATENCY,
        look_at=_deferred,
    ),
    Check(
        name="napi.deferral",
        title="Interrupts are not put off",
        why="Put-off interrupts serve programs that poll by themselves; for all others a frame "
        "waits for a timer.",
        sources=(_NAPI,),
        reads=("/sys/class/net/IFACE/napi_defer_hard_irqs",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        goals=LATENCY,
        look_at=_interrupts_deferred,
    ),
    sysctl(
        "napi.budget",
        "net.core.netdev_budget",
        at_least(_BUDGET),
        title="A round of polling takes many frames",
        why="A round that ends early leaves frames in the ring until a thread gets its turn.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "napi.budget_time",
        "net.core.netdev_budget_usecs",
        at_least(_BUDGET_US),
        title="A round of polling may take some milliseconds",
        why="A round that ends early leaves frames in the ring until a thread gets its turn.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "napi.weight",
        "net.core.dev_weight",
        at_least(64),
        title="A poll of one queue takes many frames",
        why="Small polls spend their time in changing queues.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "napi.busy_read",
        "net.core.busy_read",
        at_least(_BUSY_US),
        title="A receive call looks at the NIC before it sleeps",
        why="Waking a sleeper takes longer than a short message's way through the wire.",
        sources=("[A6]", _NAPI),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        goals=LATENCY,
    ),
    sysctl(
        "napi.busy_poll",
        "net.core.busy_poll",
        at_least(_BUSY_US),
        title="poll() and select() look at the NIC before they sleep",
        why="Waking a sleeper takes longer than a short message's way through the wire.",
        sources=("[A6]", _NAPI),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        goals=LATENCY,
    ),
    sysctl(
        "softnet.backlog",
        "net.core.netdev_max_backlog",
        at_least(_BACKLOG),
        title="The backlog of a processor holds a burst",
        why="What finds it full is dropped: with RPS, on tunnels and virtual links.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
    ),
    Check(
        name="softnet.dropped",
        title="No frame found a full backlog",
        why="It was lost inside of the node, after it had come all the way.",
        sources=(_NET_SYSCTL, _NAPI),
        reads=(_SOFTNET,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_backlog_dropped,
    ),
    Check(
        name="softnet.squeezed",
        title="Polling is seldom cut short",
        why="Frames stay in the ring although they have come.",
        sources=(_NET_SYSCTL, _NAPI),
        reads=(_SOFTNET,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_squeezed,
    ),
)
