# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs for experiments, gone when these are."""

import contextlib
import itertools
import os
from collections.abc import Iterator
from dataclasses import replace

from beowire.lab import up
from beowire.lab.lab import Lab
from beowire.run.cluster import Cluster, of_lab
from beowire.topology.topology import CLEAR, Model, Topology, plain

_numbers = itertools.count(1)


@contextlib.contextmanager
def of(topology: Topology) -> Iterator[Lab]:
    """A lab of this topology."""
    name = f"evidence-{os.getpid()}-{next(_numbers)}"
    with up.termination_raises():
        lab = up.up_topology(name, topology)
        try:
            yield lab
        finally:
            up.down(name)


def nodes(
    count: int, mtu_bytes: int = 1500, *, offloads: bool = True, out: Model = CLEAR, cpus: float = 0
) -> Topology:
    """Nodes at one switch; `out` befalls what a node sends, `cpus` is each node's limit, with which
    they run before the rest of the machine."""
    made = plain(count, mtu_bytes, offloads=offloads, out=out)
    limited = tuple(replace(each, cpus=cpus) for each in made.nodes)
    return replace(made, nodes=limited, realtime=cpus > 0)


def first(lab: Lab, count: int) -> Cluster:
    """The first nodes of a lab as a cluster."""
    whole = of_lab(lab.name)
    return replace(whole, hosts=whole.hosts[:count])
