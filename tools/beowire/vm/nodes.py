# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The NUMA nodes of a guest: its memory and processors divided, and how far they are apart.

Emulation makes nothing slower that is far. What the guest's kernel then knows is that of a machine
with so many nodes, and what it decides by that is real.
"""

from beowire.errors import BeowireError
from beowire.vm.guest import Guest, Seat

MOST = 8
_LEAST_MB = 64
"""Of a node's memory."""
_LOCAL, _STEP = 10, 10
"""Distances as firmware tells them (ACPI 6.5, section 5.2.17): 10 is the node itself. Nodes stand
in a ring, and each step adds as much."""
_FIRST_BUS = 64
"""Of the host bridge at a node. Bridges of the machine's own have the numbers from 0."""


def check(guest: Guest) -> None:
    """Fails if the guest's processors or memory are too few for its nodes."""
    nodes = guest.nodes
    if not 1 <= nodes <= MOST:
        raise BeowireError(f"A guest of {nodes} NUMA nodes?", f"Give --numa 1 to {MOST}.")
    if guest.seat and guest.seat.node is not None and not 0 <= guest.seat.node < nodes:
        raise BeowireError(
            f"The guest has no NUMA node {guest.seat.node} for its interface.",
            f"Its nodes are 0 to {nodes - 1}: change --nic-node or --numa.",
        )
    if nodes > 1 and guest.cpus < nodes:
        raise BeowireError(
            f"{nodes} NUMA nodes need a processor each, and the guest has {guest.cpus}.",
            f"Add --cpus {nodes}; instructions are counted on one node only.",
        )
    if nodes > 1 and guest.memory_mb < nodes * _LEAST_MB:
        raise BeowireError(
            f"{guest.memory_mb} MiB are too few for {nodes} NUMA nodes.",
            f"Give --memory {nodes * _LEAST_MB} or more.",
        )


def arguments(guest: Guest) -> list[str]:
    """QEMU's, for a guest of several nodes; none for one."""
    check(guest)
    nodes = guest.nodes
    if nodes == 1:
        return []
    words: list[str] = []
    for node in range(nodes):
        megabytes = _part(guest.memory_mb, nodes, node)
        first = sum(_part(guest.cpus, nodes, each) for each in range(node))
        last = first + _part(guest.cpus, nodes, node) - 1
        words += ["-object", f"memory-backend-ram,id=memory{node},size={megabytes}M"]
        words += ["-numa", f"node,nodeid={node},cpus={first}-{last},memdev=memory{node}"]
    for one in range(nodes):
        for other in range(nodes):
            far = distance(nodes, one, other)
            words += ["-numa", f"dist,src={one},dst={other},val={far}"]
    return words


def processors(guest: Guest) -> str:
    """The value of -smp. No socket is at two nodes, which the guest's kernel would complain of."""
    if guest.nodes == 1:
        return str(guest.cpus)
    even = guest.cpus % guest.nodes == 0
    sockets = guest.nodes if even else guest.cpus
    return f"{guest.cpus},sockets={sockets},cores={guest.cpus // sockets},threads=1"


def distance(nodes: int, one: int, other: int) -> int:
    """As the guest's kernel tells it."""
    steps = abs(one - other)
    return _LOCAL + _STEP * min(steps, nodes - steps)


def bridge(seat: Seat) -> tuple[list[str], str]:
    """QEMU's arguments for a host bridge at the node of the interface, and what the interface's own
    take to be behind it."""
    if seat.node is None:
        return [], ""
    where = f"bus=pcie.0,bus_nr={_FIRST_BUS},numa_node={seat.node}"
    words = ["-device", f"pxb-pcie,id=bridge,{where}"]
    return [*words, "-device", "pcie-root-port,id=behind,bus=bridge,chassis=1"], ",bus=behind"


def _part(whole: int, nodes: int, node: int) -> int:
    """What a node has of a whole: the first ones have one more where it does not divide."""
    return whole // nodes + (1 if node < whole % nodes else 0)
