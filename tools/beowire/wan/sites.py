# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The lab of `beowire bench wan`: two sites joined by a router, equal limits of processor time.

It is the ready topology `two-sites` [C1]. Delay and rate are all set on one of the two links of
the router, so that a single emulator has to keep time; without both it is a plain cable.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from beowire.errors import BeowireError
from beowire.lab import emulator, status, up
from beowire.lab.lab import Lab
from beowire.run.cluster import Cluster, of_lab
from beowire.topology import catalogue
from beowire.topology.topology import CLEAR as CLEAR_MODEL
from beowire.topology.topology import DIRECTIONS, Model, Topology
from beowire.wan.grid import Line
from beowire.wan.results import Verdict

TOPOLOGY = "two-sites"
EMULATED = "wan-b"
CABLE = "wan-a"
SITES = ("site-a", "site-b")

PROGRAMS_SHARE = 0.8
"""Of the machine's processors; the rest is the emulator's and the kernel's."""


def default_cpus(nodes: int, processors: int) -> float:
    """Equal shares of what programs may use, in hundredths of a processor, at most one."""
    return min(int(100 * PROGRAMS_SHARE * processors / nodes) / 100, 1.0)


def topology(cpus: float) -> Topology:
    """The ready topology with limits of processor time; emulators run before programs."""
    found = catalogue.find(TOPOLOGY)
    nodes = tuple(replace(node, cpus=cpus) for node in found.nodes)
    clear = {
        name: link.with_models({"ab": CLEAR_MODEL, "ba": CLEAR_MODEL})
        for name in (CABLE, EMULATED)
        if (link := found.link(name)) is not None
    }
    return replace(found, nodes=nodes, realtime=True).with_links(clear)


def chosen(found: Topology, nodes: int) -> list[str]:
    """Equally many nodes of both sites, the first site's first."""
    names = []
    for site in SITES:
        here = [
            end.device
            for link in found.links_of(site)
            for end in link.ends
            if end.device in found.node_names()
        ]
        if nodes % 2 or nodes < 2 or nodes // 2 > len(here):
            raise BeowireError(
                f"--nodes {nodes}?", f"Give an even number from 2 to {2 * len(here)}."
            )
        names += here[: nodes // 2]
    return names


@contextlib.contextmanager
def made(nodes: int, cpus: float) -> Iterator["WanLab"]:
    """The lab, gone afterwards."""
    found = topology(cpus)
    hosts = chosen(found, nodes)
    name = f"wan-{os.getpid()}"
    lab = up.up_topology(name, found)
    try:
        yield WanLab(lab, replace(of_lab(name), hosts=hosts))
    finally:
        up.down(name)


class WanLab:
    """The lab and its line."""

    def __init__(self, lab: Lab, cluster: Cluster) -> None:
        self.lab = lab
        self.cluster = cluster
        self.line = Line(0, 0)

    def set_line(self, line: Line) -> None:
        """Joins the sites by this line; nothing may be under way."""
        if line != self.line:
            model = Model(
                delay_ns=round(line.delay_ms * 1e6),
                rate_bits=round(line.rate_mbit * 1e6),
                loss=line.loss,
            )
            self.lab = up.set_links(self.lab.name, {EMULATED: {"ab": model, "ba": model}})
            self.line = line

    def site(self) -> Cluster:
        """The nodes of the first site alone."""
        return replace(self.cluster, hosts=self.cluster.hosts[: len(self.cluster.hosts) // 2])

    def crossed_bytes(self) -> int:
        """What has crossed between the sites so far, in both directions, headers included."""
        flows = status.flows(self.lab)
        return sum(flows[CABLE, direction].bytes for direction in DIRECTIONS)

    def begin(self) -> None:
        """What the emulator tells at `verdict` begins here."""
        if self.lab.wires[EMULATED].pid:
            emulator.ask(self.lab, EMULATED, "reset")

    def verdict(self) -> Verdict:
        """Whether the emulator kept to its settings since `begin`."""
        wire = self.lab.wires[EMULATED]
        if not wire.pid:
            return Verdict(wire.kind, None)
        told = emulator.stats(self.lab, EMULATED)
        return Verdict(wire.kind, bool(told["valid"]), [str(each) for each in told["reasons"]])
