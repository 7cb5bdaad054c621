# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of a NIC's rings and of what they lost [A8]."""

from functools import partial

from beowire.doctor.check import (
    THROUGHPUT,
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
from beowire.doctor.setting import EthtoolSetting

_LOST = ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors")
_LOST_SHARE = 1e-6
_LOST_FEW = 10
_SPLIT_OFF = 1
_ROUNDED = 15 / 16
"""Drivers round what is asked for: vmxnet3 takes 4032 for the 4096 that it allows at MTU 9000."""


def _ring(side: str, node: Node, interface: Interface) -> Verdict:
    rings = node.ethtool(interface.name, "rings")
    now, most = rings.get(side, 0), rings.get(f"{side}-max", 0)
    if not most:
        raise NotApplicable("the driver has no ring of a size to choose")
    read = f"{side} ring {now} of {most}"
    if now >= _ROUNDED * most:
        return Good(read)
    change = Change(EthtoolSetting(interface.name, "rings", side), str(now), str(most))
    return Bad(read, str(most), (change,))


def _lost(_: Node, interface: Interface) -> Verdict:
    counters = interface.link["counters"]
    lost = max(counters.get(name, 0) for name in _LOST)
    frames = counters.get("rx_packets", 0)
    read = f"{lost} of {frames} frames found no room"
    if lost < _LOST_FEW or lost <= frames * _LOST_SHARE:
        return Good(read)
    return Bad(
        read,
        "less than one in a million",
        advice="Enlarge the rings (rings.receive), spread the load over queues (queues.channels).",
    )


def _header_split(node: Node, interface: Interface) -> Verdict:
    split = node.ethtool(interface.name, "rings").get("tcp-data-split", 0)
    if not split:
        raise NotApplicable("the driver cannot split headers from data")
    if split != _SPLIT_OFF:
        return Good("headers are split from data")
    change = Change(EthtoolSetting(interface.name, "rings", "tcp-data-split"), str(split), "2")
    return Bad("headers and data lie together", "split", (change,))


CHECKS = (
    *(
        Check(
            name=f"rings.{name}",
            title=f"The {name} ring is as large as the NIC allows",
            why=why,
            sources=("[A8]", "kernel: networking/ethtool-netlink.rst"),
            reads=("ethtool netlink RINGS_GET",),
            sure=Sure.RULE,
            weight=weight,
            fix=Fix.INTERRUPTS,
            look_at=partial(_ring, side),
        )
        for name, side, why, weight in (
            (
                "receive",
                "rx",
                "Bursts of many senders that come while the processor is busy are lost.",
                Weight.COSTLY,
            ),
            ("send", "tx", "Senders stop and start again with each full ring.", Weight.SLIGHT),
        )
    ),
    Check(
        name="rings.lost",
        title="The NIC had room for all frames",
        why="A frame that finds no room costs its sender a repair, TCP often 200 ms.",
        sources=("kernel: networking/statistics.rst",),
        reads=("rtnetlink RTM_GETLINK",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_lost,
    ),
    Check(
        name="rings.header_split",
        title="The NIC puts headers and data apart",
        why="Data that begins a page of its own can reach a program without a copy.",
        sources=("[A7]", "kernel: networking/ethtool-netlink.rst"),
        reads=("ethtool netlink RINGS_GET",),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.INTERRUPTS,
        goals=THROUGHPUT,
        look_at=_header_split,
    ),
)
