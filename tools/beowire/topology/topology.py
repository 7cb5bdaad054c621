# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A topology: which nodes, switches and routers a lab has and what their links do to frames.

It is a description without addresses, namespaces or processes: the same topology can be several
labs. A link has an end `a` and an end `b`, and a model for each of its two directions. Lengths are
in bytes, times in nanoseconds, rates in bits per second, shares between 0 and 1.
"""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Literal

MTU_MIN_BYTES = 68
"""The least that IPv4 takes (RFC 791)."""
MTU_MAX_BYTES = 65535
"""The most that a veth device takes."""
MTU_DEFAULT_BYTES = 9000
NODES_MAX = 250
ROUTERS_MAX = 4
"""Nodes and routers together are the hosts 1 to 254 of a /24 network."""

Emulator = Literal["auto", "kernel", "beowire-link", "netem"]
Direction = Literal["ab", "ba"]
DIRECTIONS: tuple[Direction, Direction] = ("ab", "ba")


@dataclass(frozen=True)
class Model:
    """What one direction of a link does to frames; nothing by default."""

    rate_bits: int = 0
    """Bits per second; 0: unlimited."""
    delay_ns: int = 0
    jitter_ns: int = 0
    """Each frame is late by up to this more or less; frames do not overtake by it."""
    loss: float = 0.0
    """Share of frames lost."""
    burst_frames: float = 0.0
    """Mean length of a burst of losses (Gilbert and Elliott); 0 or 1: losses are independent."""
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    """Share of frames in which one random bit behind the Ethernet header is flipped."""
    queue_bytes: int = 0
    """Room of the drop-tail queue before the rate; 0: the default for the rate."""
    mark_bytes: int = 0
    """Occupancy of the queue above which ECN-capable IP packets are marked; 0: never."""
    mtu_bytes: int = 0
    """Longer packets are dropped, as by a switch without jumbo frames; 0: none."""
    coalesce_ns: int = 0
    """Interrupt mitigation: frames are handed on in groups that often; 0: one by one [D5]."""
    drop_raw: bool = False
    """Drop what is neither IP nor ARP, as some clouds do."""

    @property
    def faults(self) -> bool:
        """It drops or changes frames in a way that a classifier can do on its own."""
        return bool(self.loss or self.corrupt or self.mtu_bytes or self.drop_raw)

    @property
    def beyond_kernel(self) -> bool:
        """It needs an emulator: a token bucket and a classifier cannot do it."""
        return bool(
            self.delay_ns
            or self.jitter_ns
            or self.burst_frames > 1
            or self.duplicate
            or self.reorder
            or self.mark_bytes
            or self.coalesce_ns
        )


CLEAR = Model()


@dataclass(frozen=True)
class Interface:
    """An interface of a node or router."""

    name: str
    mtu_bytes: int
    address: str = ""
    """a.b.c.d/n where the topology gives it; empty: the lab gives one."""


@dataclass(frozen=True)
class Host:
    """A node, or a router between networks."""

    name: str
    interfaces: tuple[Interface, ...] = ()
    cpus: float = 0.0
    """Processor time that its processes may use together, in processors; 0: no limit."""
    line: int = field(default=0, compare=False)
    """Where the topology's file declares it; 0: no file."""

    def interface(self, name: str) -> Interface:
        return next(each for each in self.interfaces if each.name == name)


@dataclass(frozen=True)
class Switch:
    """Forwards frames between its links by their addresses; speaks no spanning tree."""

    name: str
    line: int = field(default=0, compare=False)


@dataclass(frozen=True)
class End:
    """Where a link is plugged in. A switch's interface has no name of its own: it is empty."""

    device: str
    interface: str = ""

    def __str__(self) -> str:
        return f"{self.device}.{self.interface}" if self.interface else self.device


@dataclass(frozen=True)
class Link:
    """A cable and what it does to frames."""

    name: str
    a: End
    b: End
    ab: Model = CLEAR
    """From a to b."""
    ba: Model = CLEAR
    offloads: bool = True
    """Segmentation is left to the devices, so that frames of up to 64 KiB cross the link."""
    emulator: Emulator = "auto"
    line: int = field(default=0, compare=False)

    @property
    def ends(self) -> tuple[End, End]:
        return self.a, self.b

    def model(self, direction: Direction) -> Model:
        return self.ab if direction == "ab" else self.ba

    def with_models(self, models: dict[Direction, Model]) -> "Link":
        return replace(self, ab=models.get("ab", self.ab), ba=models.get("ba", self.ba))

    def leaving(self, device: str) -> Direction:
        """The direction of what this device sends."""
        return "ab" if self.a.device == device else "ba"


@dataclass(frozen=True)
class Topology:
    """Everything a lab is made of."""

    name: str
    description: str = ""
    nodes: tuple[Host, ...] = ()
    routers: tuple[Host, ...] = ()
    switches: tuple[Switch, ...] = ()
    links: tuple[Link, ...] = ()
    seed: int = 1
    """Of all that emulators leave to chance; each link draws a seed of its own from it."""
    realtime: bool = False
    """Emulators run before all other threads (SCHED_FIFO), so that programs do not delay them;
    nodes with a limit of processor time run before the rest of the machine."""
    emulator_cpus: str = ""
    """The processors that emulators run on, as 2 or 2,3 or 4-7; empty: any."""
    source: str = ""
    """The file it was read from; empty: none."""

    def node_names(self) -> list[str]:
        return [node.name for node in self.nodes]

    def switch_names(self) -> list[str]:
        return [switch.name for switch in self.switches]

    def hosts(self) -> list[Host]:
        """What has addresses: the nodes, then the routers."""
        return [*self.nodes, *self.routers]

    def host(self, name: str) -> Host:
        return next(host for host in self.hosts() if host.name == name)

    def links_of(self, device: str) -> list[Link]:
        return [link for link in self.links if device in (link.a.device, link.b.device)]

    def link(self, name: str) -> Link | None:
        return next((link for link in self.links if link.name == name), None)

    def with_links(self, changed: dict[str, Link]) -> "Topology":
        return replace(self, links=tuple(changed.get(link.name, link) for link in self.links))

    def mtu_bytes(self) -> int:
        """The largest MTU of any interface."""
        return max(each.mtu_bytes for host in self.hosts() for each in host.interfaces)

    def networks(self) -> list[list[End]]:
        """The interfaces of hosts, grouped by network: within one, frames pass without a router.
        The first group holds the first node's first interface."""
        group: dict[End | str, int] = {}
        members: dict[int, list[End | str]] = defaultdict(list)

        def place(member: End | str) -> int:
            if member not in group:
                group[member] = len(group)
                members[group[member]] = [member]
            return group[member]

        switches = set(self.switch_names())
        for host in self.hosts():
            for interface in host.interfaces:
                place(End(host.name, interface.name))
        for link in self.links:
            one, other = (place(e.device if e.device in switches else e) for e in link.ends)
            if one != other:
                for member in members[other]:
                    group[member] = one
                members[one] += members.pop(other)
        kept = [[each for each in ends if isinstance(each, End)] for ends in members.values()]
        order = [End(host.name, each.name) for host in self.hosts() for each in host.interfaces]
        place_of = {end: number for number, end in enumerate(order)}
        groups = [sorted(ends, key=place_of.__getitem__) for ends in kept if ends]
        return sorted(groups, key=lambda ends: place_of[ends[0]])


def plain(
    nodes: int, mtu_bytes: int, *, offloads: bool = True, out: Model = CLEAR, back: Model = CLEAR
) -> Topology:
    """Nodes node1 to nodeN at one switch; `out` is what befalls frames that a node sends, `back`
    those it receives."""
    names = [f"node{number}" for number in range(1, nodes + 1)]
    return Topology(
        name=f"{nodes} nodes",
        description=f"{nodes} nodes at one switch",
        nodes=tuple(Host(name, (Interface("eth0", mtu_bytes),)) for name in names),
        switches=(Switch("switch"),),
        links=tuple(
            Link(name, End(name, "eth0"), End("switch"), out, back, offloads) for name in names
        ),
    )


def decode(told: dict[str, Any]) -> Topology:
    """The topology whose `dataclasses.asdict` this is. Raises KeyError or TypeError when it is
    none."""
    return Topology(
        **{
            **told,
            "nodes": tuple(map(_decode_host, told["nodes"])),
            "routers": tuple(map(_decode_host, told["routers"])),
            "switches": tuple(Switch(**each) for each in told["switches"]),
            "links": tuple(map(_decode_link, told["links"])),
        }
    )


def _decode_host(told: dict[str, Any]) -> Host:
    interfaces = tuple(Interface(**each) for each in told["interfaces"])
    return Host(**{**told, "interfaces": interfaces})


def _decode_link(told: dict[str, Any]) -> Link:
    ends = {key: End(**told[key]) for key in ("a", "b")}
    models = {str(key): Model(**told[key]) for key in DIRECTIONS}
    return Link(**{**told, **ends, **models})
