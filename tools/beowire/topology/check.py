# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether a topology is possible as a whole: connected, without loops that flood, every address
once. Each complaint names the line of the topology's file, where there is one.
"""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass

from beowire.errors import BeowireError
from beowire.topology.topology import NODES_MAX, ROUTERS_MAX, End, Link, Topology


@dataclass(frozen=True)
class Problem:
    """A complaint about a line; 0: the topology has no file."""

    line: int
    text: str


def failure(source: str, problems: Iterable[Problem]) -> BeowireError:
    """The error that tells these problems, in the order of their lines."""
    told = []
    for problem in sorted(problems, key=lambda each: each.line):
        place = f"{source}:{problem.line}: " if source and problem.line else ""
        told.append(f"{place}{problem.text}")
    fix = "The format is described in docs/lab.md."
    return BeowireError("\n".join(dict.fromkeys(told)), fix)


def check(topology: Topology) -> None:
    """Raises an error that tells everything that makes this topology impossible."""
    problems = [*_sizes(topology), *_devices(topology)]
    if not problems:
        problems = [*_loops(topology), *_addresses(topology), *_emulators(topology)]
    if not problems:
        problems = [*_connection(topology)]
    if problems:
        raise failure(topology.source, problems)


def _sizes(topology: Topology) -> Iterable[Problem]:
    if not topology.nodes:
        yield Problem(1, "there are no nodes.")
    if len(topology.nodes) > NODES_MAX:
        yield Problem(
            topology.nodes[-1].line,
            f"{len(topology.nodes)} nodes; at most {NODES_MAX} are possible.",
        )
    if len(topology.routers) > ROUTERS_MAX:
        yield Problem(
            topology.routers[-1].line,
            f"{len(topology.routers)} routers; at most {ROUTERS_MAX} are possible.",
        )


def _devices(topology: Topology) -> Iterable[Problem]:
    for node in topology.nodes:
        if not node.interfaces:
            yield Problem(node.line, f"node {node.name} has no link.")
    for router in topology.routers:
        if len(router.interfaces) < 2:
            yield Problem(
                router.line, f"router {router.name} joins nothing: it needs links to two networks."
            )
    for switch in topology.switches:
        if not topology.links_of(switch.name):
            yield Problem(switch.line, f"switch {switch.name} has no link.")


def _loops(topology: Topology) -> Iterable[Problem]:
    """Switches know no spanning tree, and nodes forward nothing: neither may form a ring."""
    switches = set(topology.switch_names())
    nodes = set(topology.node_names())
    yield from _rings(
        [link for link in topology.links if {link.a.device, link.b.device} <= switches],
        "closes a loop of switches, in which frames would circle for ever",
    )
    yield from _rings(
        [link for link in topology.links if {link.a.device, link.b.device} <= nodes],
        "closes a loop without a switch: nodes forward nothing, join them by a switch",
    )


def _rings(links: list[Link], words: str) -> Iterable[Problem]:
    leader: dict[str, str] = {}

    def find(name: str) -> str:
        while leader.setdefault(name, name) != name:
            name = leader[name]
        return name

    for link in links:
        one, other = find(link.a.device), find(link.b.device)
        if one == other:
            yield Problem(link.line, f"the link of {link.a} and {link.b} {words}.")
        leader[one] = other


def _addresses(topology: Topology) -> Iterable[Problem]:
    seen: dict[str, End] = {}
    for ends in topology.networks():
        known = {}
        for end in ends:
            host = topology.host(end.device)
            text = host.interface(end.interface).address
            if not text:
                continue
            try:
                known[end] = ipaddress.IPv4Interface(text)
            except ValueError as error:
                yield Problem(host.line, f"{end}: {text!r} is no address: {error}.")
                continue
            if "/" not in text or not 1 <= known[end].network.prefixlen <= 30:
                yield Problem(host.line, f"{end}: {text!r} names no network: write {text}/24.")
            network = known[end].network
            if known[end].ip in (network.network_address, network.broadcast_address):
                yield Problem(host.line, f"{end}: {text!r} is no host's address in its network.")
            address = str(known[end].ip)
            if address in seen:
                yield Problem(host.line, f"{end} and {seen[address]} have one address, {address}.")
            seen[address] = end
        yield from _network(topology, ends, known)


def _network(
    topology: Topology, ends: list[End], known: dict[End, ipaddress.IPv4Interface]
) -> Iterable[Problem]:
    """One network: either all its addresses are given, in one subnet, or none; no host twice."""
    devices: dict[str, End] = {}
    for end in ends:
        if end.device in devices:
            yield Problem(
                topology.host(end.device).line,
                f"{end} and {devices[end.device]} are in one network: give each its own switch.",
            )
        devices[end.device] = end
        if known and not topology.host(end.device).interface(end.interface).address:
            yield Problem(
                topology.host(end.device).line,
                f"{end} has no address, others of its network have: give it one too.",
            )
    if len({each.network for each in known.values()}) > 1:
        line = topology.host(ends[-1].device).line
        subnets = ", ".join(sorted({str(each.network) for each in known.values()}))
        yield Problem(line, f"one network with several subnets: {subnets}. Join them by a router.")


def _emulators(topology: Topology) -> Iterable[Problem]:
    for link in topology.links:
        for model in (link.ab, link.ba):
            if link.emulator == "kernel" and model.beyond_kernel:
                yield Problem(
                    link.line,
                    f"link {link.name} asks for more than the kernel's classifier and token bucket "
                    "do (rate, queue, random loss, corrupt, mtu, drop-raw): leave out "
                    'emulator = "kernel".',
                )
            if model.drop_raw and (
                model.beyond_kernel or link.emulator in ("beowire-link", "netem")
            ):
                yield Problem(
                    link.line, f"link {link.name}: drop-raw does not go together with an emulator."
                )
            if model.jitter_ns > model.delay_ns:
                yield Problem(
                    link.line,
                    f"link {link.name}: a jitter above the delay would be before its time.",
                )
            if model.burst_frames > 1 and not model.loss:
                yield Problem(link.line, f"link {link.name}: burst without loss.")


def _connection(topology: Topology) -> Iterable[Problem]:
    """Any two nodes have a way to one another, through switches and routers."""
    networks = topology.networks()
    leader = list(range(len(networks)))
    where = {end: number for number, ends in enumerate(networks) for end in ends}
    for router in topology.routers:
        joined = [where[End(router.name, each.name)] for each in router.interfaces]
        target = leader[joined[0]]
        absorbed = {leader[number] for number in joined}
        leader = [target if number in absorbed else number for number in leader]
    reached = {
        node.name: {leader[where[End(node.name, each.name)]] for each in node.interfaces}
        for node in topology.nodes
    }
    first = topology.nodes[0]
    for node in topology.nodes[1:]:
        if not reached[node.name] & reached[first.name]:
            yield Problem(
                node.line,
                f"nothing joins {node.name} to {first.name}: link their switches, or put a router "
                "between the sites.",
            )
