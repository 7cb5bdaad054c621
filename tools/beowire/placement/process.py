# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A running process: on which processors its threads run, and on which NUMA nodes its pages lie.

It may end, and another one get its number, at any time: who it is is told by when it started.
"""

import os
import pwd
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from beowire.errors import BeowireError
from beowire.placement.machine import numbers
from beowire.placement.pages import gone

_MAPS_BYTES = 64 << 20
"""Of a process's list of mappings; longer ones are not read."""
_THREADS = 100_000
_KERNEL_THREAD = 0x00200000  # PF_KTHREAD of linux/sched.h
_SYS = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Mapping:
    """One of its mappings: pages of one size, by node. `decided`: it has a policy of its own."""

    start: int
    end: int
    page_bytes: int
    decided: bool
    file: bool
    pages: dict[int, int] = field(default_factory=dict)

    def bytes_on(self, node: int) -> int:
        return self.pages.get(node, 0) * self.page_bytes


@dataclass(frozen=True)
class Thread:
    """Where a thread ran last, and how long it has run at all, in ticks."""

    processor: int
    ticks: int


@dataclass(frozen=True)
class Process:
    """What the kernel tells of it at one time."""

    pid: int
    start: int
    name: str
    threads: dict[int, Thread]
    mappings: list[Mapping]

    def bytes_by_node(self) -> dict[int, int]:
        sums: Counter[int] = Counter()
        for mapping in self.mappings:
            for node in mapping.pages:
                sums[node] += mapping.bytes_on(node)
        return dict(sorted(sums.items()))


def nodes_here() -> dict[int, tuple[int, ...]]:
    """The processors of each NUMA node of this machine."""
    found = {}
    for place in _SYS.glob("node[0-9]*"):
        found[int(place.name[4:])] = numbers((place / "cpulist").read_text())
    return dict(sorted(found.items())) or {0: tuple(sorted(os.sched_getaffinity(0)))}


def look(pid: int) -> Process:
    """What the process is now; an error names what forbids the look."""
    place = Path(f"/proc/{pid}")
    try:
        start, name = _who(place)
        _check_has_memory(pid, place)
        mappings = _mappings(place)
        threads = _threads(place)
        if _who(place)[0] != start:
            raise ProcessLookupError
    except (FileNotFoundError, ProcessLookupError) as error:
        if not Path("/proc/self/numa_maps").exists():
            raise BeowireError(
                "This kernel does not tell where pages lie: it has no NUMA (/proc/PID/numa_maps)."
            ) from error
        raise gone(pid) from error
    except PermissionError as error:
        raise BeowireError(
            f"Process {pid} is one of {_owner(place)}, and only that user and root may look at it.",
            "Run this as that user, or as root.",
        ) from error
    return Process(pid, start, name, threads, mappings)


def has_memory(pid: int) -> bool:
    """Whether there is one of this number that has not ended, nor is just ending."""
    try:
        return "\nVmSize:" in Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return False


def started(pid: int) -> int:
    """When the process of this number started, in ticks after the boot; 0: there is none."""
    try:
        return _who(Path(f"/proc/{pid}"))[0]
    except OSError:
        return 0


def _who(place: Path) -> tuple[int, str]:
    # The name may hold blanks and parentheses; the last one ends it (proc_pid_stat(5)).
    head, _, rest = (place / "stat").read_text(errors="replace").rpartition(")")
    return int(rest.split()[19]), head.partition("(")[2]


def _owner(place: Path) -> str:
    try:
        owner = place.stat().st_uid
        return pwd.getpwuid(owner).pw_name
    except KeyError:
        return f"user {owner}"
    except OSError:
        return "another user"


def _check_has_memory(pid: int, place: Path) -> None:
    if "\nVmSize:" in (place / "status").read_text(errors="replace"):
        return
    fields = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()
    if int(fields[6]) & _KERNEL_THREAD:
        raise BeowireError(f"Process {pid} is a thread of the kernel, which has no pages to move.")
    raise BeowireError(f"Process {pid} has ended; its parent has not taken note of it yet.")


def _threads(place: Path) -> dict[int, Thread]:
    found = {}
    for task in list((place / "task").iterdir())[:_THREADS]:
        try:
            fields = (task / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended meanwhile
        found[int(task.name)] = Thread(int(fields[36]), int(fields[11]) + int(fields[12]))
    return found


def _mappings(place: Path) -> list[Mapping]:
    bounds = {}
    for line in _text(place / "maps").splitlines():
        start, _, end = line.split()[0].partition("-")
        bounds[int(start, 16)] = int(end, 16)
    found = []
    for line in _text(place / "numa_maps").splitlines():
        if mapping := _mapping(line, bounds):
            found.append(mapping)
    return found


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        said = stream.read(_MAPS_BYTES + 1)
    if len(said) > _MAPS_BYTES:
        raise BeowireError(f"{path} has more than {_MAPS_BYTES >> 20} MiB, which is not read.")
    return said.decode(errors="replace")


def _mapping(line: str, bounds: dict[int, int]) -> Mapping | None:
    """One line of numa_maps (numa(7)); None if it has no pages, or is of a later mapping."""
    words = line.split()
    start = int(words[0], 16)
    pages = {
        int(match[1]): int(match[2])
        for word in words[2:]
        if (match := re.fullmatch(r"N(\d+)=(\d+)", word))
    }
    if not pages or start not in bounds:
        return None
    size = re.search(r" kernelpagesize_kB=(\d+)", line)
    return Mapping(
        start,
        bounds[start],
        int(size[1]) << 10 if size else os.sysconf("SC_PAGESIZE"),
        decided=words[1] not in ("default", "local"),
        file=any(word.startswith("file=") for word in words),
        pages=pages,
    )
