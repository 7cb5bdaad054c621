# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a link of a lab lies, how it has to be made, and what its interfaces are called."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from beowire.errors import BeowireError
from beowire.lab import ebpf, netem
from beowire.lab.lab import WIRES, WireKind
from beowire.topology.topology import Direction, End, Link, Topology


@dataclass(frozen=True)
class Place:
    """Where a link lies."""

    namespace: str
    """The switch in whose namespace it is made, or WIRES."""
    outer: End
    """The end whose cable comes in there under the link's name."""
    inner: End
    """The other: that switch itself, or a host."""
    inward: Direction
    """The direction from outer to inner."""

    @property
    def outward(self) -> Direction:
        return "ba" if self.inward == "ab" else "ab"


def place(topology: Topology, link: Link) -> Place:
    switches = topology.switch_names()
    if link.b.device in switches and link.a.device not in switches:
        return Place(link.b.device, link.a, link.b, "ab")
    if link.a.device in switches:
        return Place(link.a.device, link.b, link.a, "ba")
    return Place(WIRES, link.a, link.b, "ab")


def choose_kind(link: Link, where: Place) -> WireKind:
    """The least that does what the link's models ask for."""
    if link.emulator == "netem":
        netem.check(link)
        return "netem"
    if link.emulator == "beowire-link" or link.ab.beyond_kernel or link.ba.beyond_kernel:
        if link.emulator == "kernel":
            raise BeowireError(
                f"Link {link.name} is made by the kernel alone, which has rate, queue, loss, "
                "corrupt, mtu and drop-raw only.",
                'Give the link emulator = "auto" in the topology.',
            )
        check_emulated(link)
        return "beowire-link"
    inward, outward = link.model(where.inward), link.model(where.outward)
    plain = where.namespace != WIRES and not inward.rate_bits and not outward.faults
    if (inward.faults or not plain) and link.emulator == "auto" and not ebpf.permitted():
        check_emulated(link)
        return "beowire-link"
    return "plain" if plain else "kernel"


def check_emulated(link: Link) -> None:
    if link.ab.drop_raw or link.ba.drop_raw:
        raise BeowireError(
            f"Link {link.name}: drop-raw does not go together with an emulator.",
            "Leave out drop-raw, or what needs the emulator.",
        )


def near(link: Link) -> str:
    """The inner cable's end that the outer cable is joined to."""
    return f"{link.name}~i"


def far(link: Link) -> str:
    """The inner cable's end that is the switch's port."""
    return f"{link.name}~o"


def by_namespace(topology: Topology, links: Iterable[Link]) -> dict[str, list[tuple[Link, Place]]]:
    grouped = defaultdict(list)
    for link in links:
        where = place(topology, link)
        grouped[where.namespace].append((link, where))
    return grouped
