# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which processors ranks get on a machine, by what their program needs [A9, E1].

Near the interface, a message is handled where its frames arrive. Work that waits for single answers
wants that, and a core of its own; work that moves much data wants the memory of all nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from beowire.placement.machine import Machine

_Item = TypeVar("_Item")
Way = Literal["none", "near", "spread", "bandwidth", "latency"]


@dataclass(frozen=True)
class Choice:
    """The processors of each rank of one machine, in order, and why these."""

    processors: list[tuple[int, ...]]
    why: str
    shared: bool
    """Some ranks have the same."""


def home(machine: Machine, named: str) -> tuple[int | None, str]:
    """The node where the interface is that carries the most, as far as it is known, and which one:
    `named`, else the only one that is up, else that of the default route."""
    up = {name: each for name, each in machine.interfaces.items() if each.up}
    name = named
    if not name and len({each.node for each in up.values()}) == 1:
        name = next(iter(up))
    if not name:
        name = next((each for each, facts in up.items() if facts.default), "")
    found = machine.interfaces.get(name)
    return (found.node if found else None), name


def choose(machine: Machine, way: Way, ranks: int, named: str = "") -> Choice:
    """Processors for so many ranks on this machine; `named` is their interface, if one was told."""
    node, interface = home(machine, named)
    if way in ("near", "latency"):
        nodes = _nearest(machine, node)
        where = f"from node {nodes[0]} on"
        if node is None:
            where += f", as no node is known of {interface or 'an interface'}"
        elif node in machine.nodes:
            where += f", where {interface} is"
        else:
            where += f", the nearest to node {node} of {interface} with processors to use"
    else:
        nodes = list(machine.nodes)
        where = f"over nodes {', '.join(map(str, nodes))} in turn"
    slots = _slots(machine, way, nodes, ranks)
    taken = [slots[rank % len(slots)] for rank in range(ranks)]
    return Choice(taken, where, shared=ranks > len(slots))


def _nearest(machine: Machine, node: int | None) -> list[int]:
    """Nodes with processors, by how far they are from that one."""
    nodes = sorted(machine.nodes)
    if node is None:
        return nodes
    return sorted(nodes, key=lambda each: (machine.far(node, each), each))


def _slots(machine: Machine, way: Way, nodes: list[int], ranks: int) -> list[tuple[int, ...]]:
    """Cores in order, or where these are too few, or `near` would leave the node for want of them,
    their processors one by one."""
    cores = {node: _cores(machine, machine.nodes[node]) for node in nodes}
    if way == "near":
        slots: list[tuple[int, ...]] = []
        for node in nodes:
            left = ranks - len(slots)
            whole = left <= len(cores[node])
            slots += cores[node] if whole else _singly(cores[node])
        return slots
    if way == "latency":
        in_order = [core for node in nodes for core in cores[node]]
    else:
        in_order = _in_turn([cores[node] for node in nodes])
    return in_order if ranks <= len(in_order) else _singly(in_order)


def _cores(machine: Machine, cpus: tuple[int, ...]) -> list[tuple[int, ...]]:
    return list(dict.fromkeys(machine.core(cpu) for cpu in cpus))


def _singly(cores: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """First one processor of each core, then the second ones, and so on."""
    return [(cpu,) for cpu in _in_turn(cores)]


def _in_turn(rows: Sequence[Sequence[_Item]]) -> list[_Item]:
    """The first of each row, then the second of each, and so on."""
    longest = max(len(row) for row in rows)
    return [row[i] for i in range(longest) for row in rows if i < len(row)]
