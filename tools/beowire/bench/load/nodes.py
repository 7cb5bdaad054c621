# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where to measure, and how fast the line is: a lab made for it, a lab, or real hosts."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from beowire import installed
from beowire.bench import pingpong
from beowire.bench.load.plan import NODES, Pattern, nap_us
from beowire.errors import BeowireError
from beowire.lab import port, rates, up
from beowire.lab.shape import Shape
from beowire.run import options
from beowire.run.cluster import Cluster, of_lab
from beowire.run.job import check_settings
from beowire.topology.keys import format_rate, parse_rate

RATE_BITS = 1_000_000_000


@dataclass(frozen=True)
class Nodes:
    """The nodes of a measurement."""

    count: int
    rate_bits: int
    """Towards each node, per second."""
    mtu_bytes: int = 0
    """Of the lab made for it."""
    given: Cluster | None = None
    """None: a lab is made."""

    @property
    def shares_clock(self) -> bool:
        """All nodes are one machine."""
        return self.given is None or self.given.shares_cores

    @property
    def burst_bytes(self) -> int:
        """What the line lets through at once after a pause; nothing is known of real ones."""
        if self.given is None:
            return port.burst_bytes(self.rate_bits, self.mtu_bytes)
        lab = self.given.lab
        return 0 if lab is None else port.burst_bytes(self.rate_bits, lab.topology.mtu_bytes())

    @property
    def nap_us(self) -> int:
        """How long ranks sleep that have nothing to do: not at all if each has a core."""
        return nap_us(self.count, os.cpu_count() or 1) if self.shares_clock else 0

    @property
    def setting(self) -> dict[str, Any]:
        """What must be the same for rounds to belong together."""
        machine = pingpong.machine()
        if self.given is None:
            told = f"a lab of {self.count} nodes made for it, MTU {self.mtu_bytes}"
        elif self.given.lab is not None:
            told = f"lab {self.given.lab.name}, MTU {self.given.lab.topology.mtu_bytes()}"
        else:
            told = f"hosts {','.join(self.given.hosts)}"
        return {"nodes": told, "kernel": machine["kernel"], "cores": machine["cores"]}

    @contextlib.contextmanager
    def made(self) -> Iterator[Cluster]:
        """The nodes, while they are there."""
        if self.given is not None:
            yield self.given
            return
        name = f"load-{os.getpid()}"
        with up.termination_raises():
            up.up(name, self.count, self.mtu_bytes, shape=Shape(rate_bits=self.rate_bits))
            try:
                where = of_lab(name)
                check_settings(where)
                yield where
            finally:
                up.down(name)


def chosen(
    lab: str | None,
    hosts: str | None,
    hostfile: Path | None,
    ssh: str,
    network: str,
    *,
    pattern: Pattern,
    nodes: int,
    rate: str,
    mtu_bytes: int,
) -> Nodes:
    """The nodes that the options name; without any a lab made for it. `nodes` 0: as many as the
    pattern has, or all of those named."""
    rate_bits = parse_rate(rate) if rate else 0
    if rate and not rate_bits:
        raise BeowireError(f"--rate {rate}: loads are shares of a rate.", "Give one such as 1G.")
    if lab is None and hosts is None and hostfile is None:
        count = nodes or NODES[pattern]
        up.check_size(count, mtu_bytes)
        mode, reason = up.choose_mode()
        if mode == "loopback":
            raise BeowireError(
                f"No lab with rates can be made here: {reason}.",
                "Run as root where the kernel allows namespaces, or give --hosts A,B,...",
            )
        return Nodes(count, rate_bits or RATE_BITS, mtu_bytes)
    given = options.choose_cluster(lab, hosts, hostfile, ssh, network)
    count = nodes or (2 if pattern == "beside" else len(given.hosts))
    if count > len(given.hosts):
        raise BeowireError(
            f"--nodes {count}: there are {len(given.hosts)}.", "Give fewer, or leave it out."
        )
    check_settings(given)
    given = replace(given, hosts=given.hosts[:count])
    return Nodes(count, _line_bits(given, rate_bits), given=given)


def _line_bits(given: Cluster, asked_bits: int) -> int:
    """The rate of the line: that of the lab's links, or what was said."""
    if given.lab is None or len(given.hosts) < 2:
        return asked_bits or RATE_BITS
    models = rates.way(given.lab, given.hosts[1], given.hosts[0])
    found = min((model.rate_bits for model in models if model.rate_bits), default=0)
    if asked_bits and found and asked_bits != found:
        raise BeowireError(
            f"--rate {format_rate(asked_bits)}: lab {given.lab.name} has {format_rate(found)}.",
            "Leave --rate out, or leave --lab out: a lab of that rate is made then.",
        )
    if not asked_bits and not found:
        raise BeowireError(
            f"Lab {given.lab.name} has no rate, of which loads could be shares.",
            f"Give its links one ({installed.COMMAND} lab set NAME --rate 1G), or leave --lab out.",
        )
    return found or asked_bits
