# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of socket buffers against what is under way on a full path [A8, A11].

The product of bandwidth and delay is that of the fastest examined interface and the round trip of
the goal (or the one given); buffers hold it twice, since the kernel counts its own overhead too.
"""

from beowire.doctor.check import Sure, Weight
from beowire.doctor.node import Node
from beowire.doctor.rules import Rule, at_least, field_at_least, sysctl

_LEAST_BYTES = 4 * 1024 * 1024
_MOST_BYTES = 2**31 - 1
_FIRST_BYTES = 131072
_FIRST_SEND_BYTES = 16384
_PLAIN_BYTES = 212992
_CONTROL_BYTES = 20480

_IP_SYSCTL = "kernel: networking/ip-sysctl.rst"
_NET_SYSCTL = "kernel: admin-guide/sysctl/net.rst"


def needed_bytes(node: Node) -> int:
    """Twice the product of bandwidth and delay, within what a buffer can be."""
    return min(max(2 * node.bandwidth_delay_bytes(), _LEAST_BYTES), _MOST_BYTES)


def _largest(node: Node) -> Rule:
    return field_at_least(2, needed_bytes(node), "the last")


CHECKS = (
    sysctl(
        "buffers.tcp_receive",
        "net.ipv4.tcp_rmem",
        _largest,
        title="TCP's receive buffers can hold a full path",
        why="A window smaller than the path holds leaves it empty part of each round trip: 900 MB "
        "took 75 s with 10 kB, 16 s with 100 kB on Gigabit.",
        sources=("[A8]", "[A11]", _IP_SYSCTL),
        sure=Sure.MEASURED,
        weight=Weight.SEVERE,
    ),
    sysctl(
        "buffers.tcp_send",
        "net.ipv4.tcp_wmem",
        _largest,
        title="TCP's send buffers can hold a full path",
        why="What is not acknowledged stays in the buffer; a small one stops the sender.",
        sources=("[A8]", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
    ),
    sysctl(
        "buffers.tcp_receive_first",
        "net.ipv4.tcp_rmem",
        field_at_least(1, _FIRST_BYTES, "the second"),
        title="TCP's receive buffers begin large enough",
        why="A connection's first window comes from it; short transfers never get past it.",
        sources=("[A11]", _IP_SYSCTL),
        sure=Sure.MEASURED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "buffers.tcp_send_first",
        "net.ipv4.tcp_wmem",
        field_at_least(1, _FIRST_SEND_BYTES, "the second"),
        title="TCP's send buffers begin large enough",
        why="A message longer than the buffer blocks its sender until acknowledgements come.",
        sources=("[A8]", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "buffers.receive_most",
        "net.core.rmem_max",
        lambda node: at_least(needed_bytes(node)),
        title="Programs may ask for large receive buffers",
        why="Beowire over UDP and MPI libraries ask for their buffers; what they get is cut here, "
        "and bursts of many senders are dropped.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "buffers.send_most",
        "net.core.wmem_max",
        lambda node: at_least(needed_bytes(node)),
        title="Programs may ask for large send buffers",
        why="Beowire over UDP and MPI libraries ask for their buffers; what they get is cut here.",
        sources=("[A8]", _NET_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "buffers.receive_default",
        "net.core.rmem_default",
        at_least(_PLAIN_BYTES),
        title="Receive buffers of UDP and raw sockets are not below the kernel's own",
        why="A program that asks for nothing loses datagrams in bursts.",
        sources=(_NET_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "buffers.send_default",
        "net.core.wmem_default",
        at_least(_PLAIN_BYTES),
        title="Send buffers of UDP and raw sockets are not below the kernel's own",
        why="A program that asks for nothing blocks after a few frames.",
        sources=(_NET_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "buffers.control",
        "net.core.optmem_max",
        at_least(_CONTROL_BYTES),
        title="There is room for control messages",
        why="Sends without a copy (MSG_ZEROCOPY) and socket filters are charged to it and fail.",
        sources=(_NET_SYSCTL, "kernel: networking/msg_zerocopy.rst"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
)
