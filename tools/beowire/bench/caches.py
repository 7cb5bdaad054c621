# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The data caches of this machine, as the kernel tells them in sysfs.

See the kernel's Documentation/ABI/testing/sysfs-devices-system-cpu, `cache/index*`.
"""

import re
from dataclasses import dataclass
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Cache:
    """One level, as one processor sees it."""

    level: int
    size_bytes: int
    cpus: frozenset[int]
    """The processors that share it."""

    @property
    def name(self) -> str:
        return f"L{self.level}"


def read(cpu: int = 0, root: Path = CPUS) -> list[Cache]:
    """The caches for data of a processor, the nearest first; none where the kernel knows none, as
    in some virtual machines."""
    found = []
    for index in sorted((root / f"cpu{cpu}" / "cache").glob("index*")):
        try:
            kind, level, size, cpus = (
                (index / name).read_text().strip()
                for name in ("type", "level", "size", "shared_cpu_list")
            )
        except OSError:
            continue
        if kind != "Instruction":
            found.append(Cache(int(level), _size_bytes(size), _cpu_list(cpus)))
    return sorted(found, key=lambda cache: cache.level)


def _size_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise ValueError(f"a cache of size {text!r}")
    return int(match[1]) * _UNITS[match[2]]


def _cpu_list(text: str) -> frozenset[int]:
    """Such as 0-3,8."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return frozenset(cpus)
