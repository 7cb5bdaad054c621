# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Many nodes' examinations side by side: what all have, and the node that differs."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from ClusterShell.NodeSet import NodeSet

Told = dict[str, Any]
"""What report.as_json() tells of a node."""

WEIGHTS = ("severe", "costly", "slight")
"""Of findings, the worst first."""


@dataclass(frozen=True)
class Difference:
    """Something that should be alike and is not: the nodes by value, the most common first."""

    what: str
    nodes: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Duplicate:
    """An address that more than one node has."""

    address: str
    nodes: str


@dataclass(frozen=True)
class Finding:
    """A finding on some of the nodes."""

    check: str
    interface: str
    weight: str
    nodes: str
    count: int
    """How many they are."""
    of: int
    """On how many it was judged."""
    read: tuple[str, ...]
    """What was read, the most common first."""
    good: str
    why: str
    fix: str

    @property
    def differs(self) -> bool:
        """Most nodes do not have it: a matter of these nodes, not of the cluster."""
        return 2 * self.count < self.of


def folded(names: list[str]) -> str:
    """Names of nodes as a set: node[01-03]."""
    return str(NodeSet.fromlist(names))


def differences(told: dict[str, Told]) -> list[Difference]:
    """Facts that are not alike on all nodes, or that only some tell; and settings, of which each
    node tells those that are good, that are not alike on the nodes that tell them."""
    names = {name: None for each in told.values() for name in each.get("facts", {})}
    found = []
    for name in names:
        values = {node: each.get("facts", {}).get(name, "nothing") for node, each in told.items()}
        if len(set(values.values())) > 1:
            found.append(Difference(name, _by_value(values)))
    for name in {name: None for each in told.values() for name in each.get("settings", {})}:
        every = {node: each.get("settings", {}).get(name) for node, each in told.items()}
        known = {node: value for node, value in every.items() if value is not None}
        if len(set(known.values())) > 1:
            found.append(Difference(name, _by_value(known)))
    return found


def duplicates(told: dict[str, Told]) -> list[Duplicate]:
    """Hardware and IP addresses that more than one node has; but those of a link alone."""
    owners: dict[str, dict[str, None]] = defaultdict(dict)
    for node, each in told.items():
        for interface in each.get("interfaces", ()):
            hardware = interface.get("hardware", "")
            addresses = (text.partition("/")[0] for text in interface.get("addresses", ()))
            for address in (hardware, *addresses):
                if address and not address.startswith("fe80:"):
                    owners[address][node] = None
    return [
        Duplicate(address, folded(list(nodes)))
        for address, nodes in owners.items()
        if len(nodes) > 1
    ]


def _by_value(values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    nodes: dict[str, list[str]] = defaultdict(list)
    for node, value in values.items():
        nodes[value].append(node)
    ordered = sorted(nodes.items(), key=lambda each: (-len(each[1]), each[0]))
    return tuple((value, folded(those)) for value, those in ordered)


def findings(told: dict[str, Told]) -> list[Finding]:
    """The findings of all nodes, the worst first; of equal ones those of few nodes first."""
    bad: dict[tuple[str, str], dict[str, Told]] = defaultdict(dict)
    judged: Counter[tuple[str, str]] = Counter()
    for node, each in told.items():
        for outcome in each["outcomes"]:
            key = outcome["check"], outcome["interface"]
            if outcome["state"] in ("good", "bad"):
                judged[key] += 1
            if outcome["state"] == "bad":
                bad[key][node] = outcome
    found = [_finding(key, outcomes, judged[key]) for key, outcomes in bad.items()]
    return sorted(
        found,
        key=lambda each: (WEIGHTS.index(each.weight), each.count, each.check, each.interface),
    )


def _finding(key: tuple[str, str], outcomes: dict[str, Told], of: int) -> Finding:
    first = next(iter(outcomes.values()))
    read = Counter(str(each["read"]) for each in outcomes.values())
    commands = [change["command"] for change in first["changes"]]
    return Finding(
        check=key[0],
        interface=key[1],
        weight=min((str(each["weight"]) for each in outcomes.values()), key=WEIGHTS.index),
        nodes=folded(list(outcomes)),
        count=len(outcomes),
        of=of,
        read=tuple(text for text, _ in read.most_common()),
        good=first["good"],
        why=first["why"],
        fix=f"{first['fix']}: {commands[0] if commands else first['advice']}",
    )
