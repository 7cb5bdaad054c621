# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine as placement sees it: processors, cores, NUMA nodes and their distances, interfaces.

It is read from lines of facts (run/facts.sh), which another host may have written.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from beowire.errors import BeowireError

_MOST = 65536
"""Of the processors or nodes of one machine."""
_CORE_MOST = 64
"""Of the processors of one core."""
_BYTES = 4 << 20
_CAP_SYS_NICE = 1 << 23  # linux/capability.h
_LOCAL = 10
_FAR = 255


@dataclass(frozen=True)
class Interface:
    """A network interface that is a device; `node` is None where none is known of it."""

    node: int | None
    up: bool
    default: bool
    """The default route leads through it."""


@dataclass(frozen=True)
class Machine:
    """Facts of one machine. `nodes` are those with processors that may be used."""

    nodes: dict[int, tuple[int, ...]]
    cores: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By processor: all that share its core."""
    distances: dict[int, dict[int, int]] = field(default_factory=dict)
    memory: tuple[int, ...] = (0,)
    """Nodes whose memory may be used."""
    interfaces: dict[str, Interface] = field(default_factory=dict)
    nice_now: int = 0
    nice_least: int = 0
    """The lowest niceness that may be asked for."""
    rt_most: int = 0
    """The highest real-time priority, 0: none."""
    numactl: bool = False

    def processors(self) -> list[int]:
        return [cpu for cpus in self.nodes.values() for cpu in cpus]

    def node_of(self, cpu: int) -> int:
        return next(node for node, cpus in self.nodes.items() if cpu in cpus)

    def far(self, one: int, other: int) -> int:
        if one == other:
            return _LOCAL
        return self.distances.get(one, {}).get(other, _FAR)

    def core(self, cpu: int) -> tuple[int, ...]:
        """The processors of its core that may be used."""
        allowed = set(self.processors())
        return tuple(each for each in self.cores.get(cpu, (cpu,)) if each in allowed) or (cpu,)


def numbers(text: str, most: int = _MOST) -> tuple[int, ...]:
    """A list as the kernel writes it: 0-3,8; of so many numbers at most."""
    found: list[int] = []
    for part in text.strip().split(",") if text.strip() else []:
        if not (match := re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)):
            raise ValueError(text)
        first, last = int(match[1]), int(match[2] or match[1])
        if last >= _MOST or last < first or len(found) + last - first >= most:
            raise ValueError(text)
        found += range(first, last + 1)
    return tuple(sorted(set(found)))


def listed(values: Iterable[int]) -> str:
    """Such a list of numbers."""
    parts: list[str] = []
    left = sorted(set(values))
    while left:
        length = 1
        while length < len(left) and left[length] == left[0] + length:
            length += 1
        parts.append(str(left[0]) if length == 1 else f"{left[0]}-{left[length - 1]}")
        left = left[length:]
    return ",".join(parts)


def read(host: str, said: bytes) -> Machine:
    """The machine that told these facts; an error that names the host if they are none."""
    try:
        if len(said) > _BYTES:
            raise ValueError("too long")
        return _machine(_facts(said.decode(errors="replace")))
    except (ValueError, KeyError, IndexError) as error:
        raise BeowireError(
            f"What {host} tells of its processors cannot be read ({str(error)[:80]!r}).",
            "Leave --place and --priority out; see /sys/devices/system/node there.",
        ) from error


def _facts(text: str) -> dict[str, str]:
    pairs = (line.partition(": ") for line in text.splitlines())
    return {key.strip().rstrip(":"): value.strip() for key, _, value in pairs if key}


def _machine(facts: dict[str, str]) -> Machine:
    allowed = numbers(facts["cpus_allowed_list"])
    memory = numbers(facts["mems_allowed_list"])
    of_node = {number: numbers(value) for number, value in _numbered(facts, "node")}
    nodes = {
        node: tuple(cpu for cpu in cpus if cpu in allowed) for node, cpus in sorted(of_node.items())
    }
    nodes = {node: cpus for node, cpus in nodes.items() if cpus} or {0: allowed}
    order = sorted(of_node)
    distances = {
        node: dict(zip(order, map(int, value.split()), strict=True))
        for node, value in _numbered(facts, "distance")
    }
    capable = bool(int(facts.get("capeff", "0"), 16) & _CAP_SYS_NICE)
    now = int(facts.get("nice", "0"))
    return Machine(
        nodes=nodes,
        cores={cpu: numbers(value, _CORE_MOST) for cpu, value in _numbered(facts, "core")},
        distances=distances,
        memory=memory,
        interfaces=dict(_interfaces(facts)),
        nice_now=now,
        nice_least=-20 if capable else min(now, 20 - _limit(facts, "limit nice", 40)),
        rt_most=99 if capable else _limit(facts, "limit rt", 99),
        numactl="numactl" in facts,
    )


def _numbered(facts: dict[str, str], word: str) -> Iterator[tuple[int, str]]:
    for key, value in facts.items():
        if match := re.fullmatch(rf"{word} (\d{{1,6}})", key):
            yield int(match[1]), value


def _interfaces(facts: dict[str, str]) -> Iterator[tuple[str, Interface]]:
    for key, value in facts.items():
        if key.startswith("interface "):
            node, *rest = value.split()
            known = int(node) if int(node) >= 0 else None
            up = bool(rest) and rest[0] in ("up", "unknown")
            yield key.removeprefix("interface "), Interface(known, up, "default" in rest)


def _limit(facts: dict[str, str], name: str, most: int) -> int:
    """A limit of setrlimit(2); those of nice count from 20 down."""
    value = facts.get(name, "0")
    return most if value == "unlimited" else min(int(value), most)
