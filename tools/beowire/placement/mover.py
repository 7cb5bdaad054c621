# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Brings pages of a process to the NUMA node where its threads run, a bounded piece at a time."""

import errno
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from beowire.placement import pages
from beowire.placement.journal import Journal
from beowire.placement.pages import gone
from beowire.placement.process import Mapping, Process, started

_LOOKED_MOST = 1 << 22
"""Addresses asked for in one pass: a mapping may be much larger than what it has pages for."""


@dataclass(frozen=True)
class Target:
    """The node to which pages are to come; None: there is none, and `why`."""

    node: int | None
    why: str
    shares: dict[int, float] = field(default_factory=dict)
    """Of the threads' time by node."""


@dataclass
class Outcome:
    """What a pass did, in bytes."""

    moved: int = 0
    kept: int = 0
    """Pages that the kernel did not move: others map them, or they are in use by a device."""
    cursor: int = 0
    """Where the next pass goes on; 0: all was looked at."""


def target(
    process: Process, nodes: dict[int, tuple[int, ...]], before: Process | None = None
) -> Target:
    """Where the threads run: the node that had more than half of their time, since `before` or, if
    they have not run since, ever."""
    node_of = {cpu: node for node, cpus in nodes.items() for cpu in cpus}
    old = before.threads if before else {}
    ticks: Counter[int] = Counter()
    ever: Counter[int] = Counter()
    for number, thread in process.threads.items():
        node = node_of.get(thread.processor)
        if node is not None:
            ticks[node] += thread.ticks - (old[number].ticks if number in old else 0)
            ever[node] += thread.ticks + 1  # a tick for one that has not run a whole one
    counted = ticks if sum(ticks.values()) > 0 else ever
    total = sum(counted.values())
    if not total:
        return Target(None, "no thread of it runs on a processor that is known")
    shares = {node: count / total for node, count in sorted(counted.items()) if count}
    node, share = max(shares.items(), key=lambda each: each[1])
    if share <= 0.5:
        return Target(None, "its threads run on several nodes, none of them for the most", shares)
    return Target(node, f"its threads run there {share:.0%} of their time", shares)


def remote(process: Process, node: int) -> list[Mapping]:
    """Mappings with pages elsewhere, of which nobody has decided where they lie."""
    return [
        mapping
        for mapping in process.mappings
        if not mapping.decided and any(each != node for each in mapping.pages)
    ]


def move(
    process: Process, node: int, most_bytes: int, journal: Journal, cursor: int = 0
) -> Outcome:
    """Moves pages of `remote` mappings from that address on, so many bytes at most; where they lay
    is kept before."""
    outcome = Outcome()
    looked = 0
    for mapping in remote(process, node):
        for addresses in _batches(mapping, cursor):
            looked += len(addresses)
            room = (most_bytes - outcome.moved) // mapping.page_bytes
            if room <= 0 or looked > _LOOKED_MOST:
                outcome.cursor = addresses[0]
                return outcome
            outcome.cursor = _move_some(process, mapping, addresses, node, room, journal, outcome)
            if outcome.cursor:
                return outcome
    return outcome


def _move_some(
    process: Process,
    mapping: Mapping,
    addresses: list[int],
    node: int,
    room: int,
    journal: Journal,
    outcome: Outcome,
) -> int:
    """Moves so many of these pages; the address of the next one that would have to move, or 0."""
    found = pages.where(process.pid, addresses)
    away = [
        (address, there)
        for address, there in zip(addresses, found, strict=True)
        if there >= 0 and there != node
    ]
    rest, away = away[room:], away[:room]
    if not away:
        return 0
    _check_same(process)
    journal.add([address for address, _ in away], [each for _, each in away], mapping.page_bytes)
    became = pages.move(process.pid, [address for address, _ in away], node)
    moved = sum(1 for each in became if each == node)
    outcome.moved += moved * mapping.page_bytes
    left = sum(1 for each in became if each not in (node, -errno.ENOENT))
    outcome.kept += left * mapping.page_bytes
    return rest[0][0] if rest else 0


def undo(process: Process, journal: Journal) -> Outcome:
    """Moves all that was moved back to where it lay first, and forgets it."""
    outcome = Outcome()
    for address, count, page_bytes, node in reversed(list(journal.read())):
        for first in range(0, count, pages.BATCH):
            _check_same(process)
            some = range(first, min(first + pages.BATCH, count))
            became = pages.move(process.pid, [address + each * page_bytes for each in some], node)
            outcome.moved += sum(1 for each in became if each == node) * page_bytes
    journal.end()
    return outcome


def _check_same(process: Process) -> None:
    if started(process.pid) != process.start:
        raise gone(process.pid)


def _batches(mapping: Mapping, cursor: int) -> Iterator[list[int]]:
    step = mapping.page_bytes
    begin = max(mapping.start, cursor - (cursor - mapping.start) % step)
    for first in range(begin, mapping.end, step * pages.BATCH):
        yield list(range(first, min(first + step * pages.BATCH, mapping.end), step))
