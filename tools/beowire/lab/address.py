# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Addresses of a lab's interfaces, and the routes between its networks.

Host K of the topology is number K in every network of its own; routers count down from 254. What
the topology's file gives stays as it is.
"""

import ipaddress
from collections import deque
from dataclasses import dataclass
from itertools import combinations

from beowire.errors import BeowireError
from beowire.topology.topology import End, Topology

_ROUTER_LAST = 254


@dataclass(frozen=True)
class Route:
    """A network that a host reaches through a router."""

    network: str
    """a.b.c.d/n"""
    gateway: str


def assign(topology: Topology, subnets: list[str]) -> dict[str, dict[str, str]]:
    """a.b.c.d/n by interface, by host; `subnets` are the first three numbers for each network."""
    numbers = {node.name: number for number, node in enumerate(topology.nodes, start=1)}
    numbers |= {each.name: _ROUTER_LAST - rank for rank, each in enumerate(topology.routers)}
    addresses: dict[str, dict[str, str]] = {host.name: {} for host in topology.hosts()}
    for subnet, ends in zip(subnets, topology.networks(), strict=True):
        for end in ends:
            given = topology.host(end.device).interface(end.interface).address
            address = given or f"{subnet}.{numbers[end.device]}/24"
            addresses[end.device][end.interface] = address
    for host in topology.hosts():  # in the order of the interfaces, whatever the networks'
        told = addresses[host.name]
        addresses[host.name] = {each.name: told[each.name] for each in host.interfaces}
    _check_distinct([_network(addresses, ends[0]) for ends in topology.networks()])
    return addresses


def _check_distinct(networks: list[str]) -> None:
    for one, other in combinations(map(ipaddress.IPv4Network, networks), 2):
        if one.overlaps(other):
            raise BeowireError(
                f"Two networks of the topology have overlapping addresses: {one} and {other}.",
                "Give other addresses in the topology.",
            )


def routes(topology: Topology, addresses: dict[str, dict[str, str]], device: str) -> list[Route]:
    """The ways of a host to all networks that it has no interface in, by the fewest routers."""
    networks = topology.networks()
    where = {end: number for number, ends in enumerate(networks) for end in ends}

    def joined(name: str) -> list[int]:
        return [where[End(name, each.name)] for each in topology.host(name).interfaces]

    own = joined(device)
    gateways: dict[int, str] = dict.fromkeys(own, "")
    queue = deque(own)
    while queue:
        here = queue.popleft()
        for router in topology.routers:
            if router.name == device or here not in joined(router.name):
                continue
            near = next(end for end in networks[here] if end.device == router.name)
            step = gateways[here] or _address(addresses, near)
            for there in joined(router.name):
                if there not in gateways:
                    gateways[there] = step
                    queue.append(there)
    return [
        Route(_network(addresses, networks[number][0]), gateway)
        for number, gateway in sorted(gateways.items())
        if gateway
    ]


def _address(addresses: dict[str, dict[str, str]], end: End) -> str:
    return addresses[end.device][end.interface].partition("/")[0]


def _network(addresses: dict[str, dict[str, str]], end: End) -> str:
    return str(ipaddress.IPv4Interface(addresses[end.device][end.interface]).network)
