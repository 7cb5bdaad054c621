# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What makes the nodes of a measurement comparable: each must compute as fast at any N.

Where ranks outnumber cores they take processor time from one another, the more the larger N is, and
the times say nothing of speedup. Then equal limits of processor time for each node, or calibrated
waits in the place of computing, must stand for nodes of their own; else a measurement is not to be
fitted. The same rule holds for N = 1.
"""

import os
from dataclasses import dataclass

from beowire.errors import BeowireError
from beowire.lab import quota
from beowire.lab.lab import Lab, load_ready


@dataclass(frozen=True)
class Basis:
    """How the processors were shared."""

    text: str
    fits: bool
    """Times measured so may be fitted."""
    fix: str = ""
    """What would make them so."""


def find(nodes: int, per_node: int, lab: str | None, node_cores: int, waits: bool) -> Basis:
    """`nodes` is the largest N. `lab`: the nodes are a lab's; `node_cores`: they are machines with
    that many cores each; `waits`: the program waits instead of computing; none: all ranks are here.
    """
    if sum([lab is not None, node_cores > 0]) > 1:
        raise BeowireError(
            "--lab and --node-cores both say where nodes are.", "Give the one that is true."
        )
    ranks = nodes * per_node
    if lab is not None:
        found = load_ready(lab)
        _check_size(found, nodes)
        if (limited := _limited(found, nodes)) is not None:
            return limited
    if waits:
        return Basis("calibrated waits stand for computing (by --waits)", True)
    if node_cores:
        return Basis(
            f"{per_node} ranks on each machine of {node_cores} cores",
            per_node <= node_cores,
            f"Start at most {node_cores} ranks per node.",
        )
    cores = len(os.sched_getaffinity(0))
    return Basis(
        f"{ranks} ranks on the {cores} cores of one machine",
        ranks <= cores,
        f"Give each node an equal limit of processor time (cpus in a lab's topology, and --lab), "
        f"use calibrated waits (--waits), or measure no more than {cores // per_node} nodes. For "
        "nodes that are machines of their own give --node-cores.",
    )


def _check_size(lab: Lab, nodes: int) -> None:
    if nodes > lab.nodes:
        raise BeowireError(
            f"Lab {lab.name} has {lab.nodes} nodes, not {nodes}.", "Make a larger one, or --nodes."
        )


def _limited(lab: Lab, nodes: int) -> Basis | None:
    """The basis that a lab's limits are; None: it has none."""
    told = quota.told(lab)
    if not told:
        return None
    limits = [float(str(told[node]["cpus"])) if node in told else 0.0 for node in lab.node_names()]
    used, cores = limits[:nodes], os.cpu_count() or 1
    if len(set(used)) > 1:
        words = ", ".join(f"{each:g}" if each else "none" for each in used)
        return Basis(
            f"unequal limits of processor time: {words}", False, "Give all nodes the same cpus."
        )
    told_each = f"{used[0]:g} processors for each of {nodes} nodes (equal limits by control groups)"
    return Basis(
        f"{told_each} on {cores} cores",
        sum(used) <= cores,
        f"Together they exceed the machine: give each at most {cores / nodes:.2g}.",
    )
