# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Faults of a pair of nodes in a lab, whose fixes a probe has to foretell.

node1 ---- 200 Mbit/s, 5 ms one way ---- node2
"""

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import beowire_cli
from beowire import namespaces
from beowire.lab import lab, up
from beowire.topology.topology import End, Host, Interface, Link, Model, Topology
from pyroute2 import IPRoute

LINE = Model(rate_bits=200_000_000, delay_ns=5_000_000, queue_bytes=8 << 20)
MTU_BYTES = 1500
_SHAPED_BITS = 50_000_000
_ROOT = 0xFFFFFFFF
"""TC_H_ROOT of linux/pkt_sched.h."""


def topology() -> Topology:
    """Two nodes and the line between them."""
    ends = [End(name, "eth0") for name in ("node1", "node2")]
    return Topology(
        name="pair",
        description="two nodes and a line",
        nodes=tuple(Host(end.device, (Interface("eth0", MTU_BYTES),)) for end in ends),
        switches=(),
        links=(Link("line", ends[0], ends[1], LINE, LINE, True, emulator="beowire-link"),),
        realtime=True,
    )


@contextlib.contextmanager
def made(name: str) -> Iterator[lab.Lab]:
    """The lab, gone afterwards."""
    try:
        yield up.up_topology(name, topology())
    finally:
        beowire_cli.remove(name)


@dataclass(frozen=True)
class PairFault:
    """What is planted on which node, and what foretells its fix."""

    check: str
    node: str
    plant: Callable[[], None]
    fix: Callable[[], None]
    metric: str = "bulk"

    @property
    def where(self) -> str:
        """As the probe from node1 calls it."""
        return "here" if self.node == "node1" else "there"


def _sysctl(name: str, value: str) -> Callable[[], None]:
    path = Path("/proc/sys/net/ipv4") / name
    return lambda: (path.write_text(value), None)[1]


def _shape() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="eth0")[0]
        rate = _SHAPED_BITS // 8
        route.tc("add", "tbf", index=index, handle="1:", rate=rate, burst=20_000, limit=1 << 20)


def _unshape() -> None:
    with IPRoute() as route:
        route.tc("del", index=route.link_lookup(ifname="eth0")[0], handle=0, parent=_ROOT)


FAULTS = (
    PairFault(
        "buffers.tcp_receive",
        "node2",
        _sysctl("tcp_rmem", "4096 16384 65536"),
        _sysctl("tcp_rmem", "4096 131072 6291456"),
    ),
    PairFault(
        "buffers.tcp_send",
        "node1",
        _sysctl("tcp_wmem", "4096 16384 65536"),
        _sysctl("tcp_wmem", "4096 16384 4194304"),
    ),
    PairFault(
        "tcp.window_scaling",
        "node1",
        _sysctl("tcp_window_scaling", "0"),
        _sysctl("tcp_window_scaling", "1"),
    ),
    PairFault(
        "tcp.moderate_rcvbuf",
        "node2",
        _sysctl("tcp_moderate_rcvbuf", "0"),
        _sysctl("tcp_moderate_rcvbuf", "1"),
    ),
    PairFault("qdisc.shaping", "node1", _shape, _unshape),
)


def on(made_lab: lab.Lab, node: str, act: Callable[[], None]) -> None:
    """Acts in the node's network namespace."""
    namespaces.within(made_lab.namespace_path(node), act)


def probe(made_lab: lab.Lab, *options: str) -> dict[str, Any]:
    """A quick probe from node1 to node2."""
    words = ["doctor", "probe", "--lab", made_lab.name, "--quick", "--json", *options]
    answer = beowire_cli.beowire(*words)
    assert answer.status == 0, answer.errors
    return parsed(answer.output)


def parsed(output: str) -> dict[str, Any]:
    """What a probe told a machine."""
    told: dict[str, Any] = json.loads(output)
    return told


def bulk(told: dict[str, Any]) -> float:
    """TCP's bytes a second from node1."""
    (found,) = (
        each["value"]
        for each in told["figures"]
        if (each["transport"], each["mode"], each["back"]) == ("tcp", "bandwidth", False)
    )
    return float(found)


@dataclass(frozen=True)
class Foretold:
    """How many times faster the fix was to be, and was."""

    predicted: float
    low: float
    high: float
    brought: float

    @property
    def error(self) -> float:
        return self.predicted / self.brought - 1


def foretell(made_lab: lab.Lab, fault: PairFault, rounds: int) -> Foretold:
    """Plants the fault, probes, fixes, probes again."""
    options = ["--goal", "throughput", "--rounds", str(rounds), "--turn-ms", "100"]
    on(made_lab, fault.node, fault.plant)
    ill = probe(made_lab, *options, "--only", fault.check)
    on(made_lab, fault.node, fault.fix)
    well = probe(made_lab, *options, "--only", fault.check)
    (gain,) = (
        each
        for each in ill["headroom"]["gains"]
        if (each["check"], each["node"], each["metric"]) == (fault.check, fault.where, fault.metric)
    )
    assert not [each for each in well["headroom"]["gains"] if each["check"] == fault.check]
    factor = gain["factor"]
    return Foretold(factor["value"], factor["low"], factor["high"], bulk(well) / bulk(ill))
