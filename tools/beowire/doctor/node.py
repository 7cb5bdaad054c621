# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The node under examination, as checks see it: what they read is read once and kept."""

import enum
import errno
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from beowire.doctor.source import Source

_SPEED_UNKNOWN = 0xFFFF_FFFF
_SUPPOSED_RATE_BITS = 1_000_000_000
_MEGABIT = 1_000_000


_NEEDED = frozenset(
    {"name", "index", "up", "addresses", "mtu", "max_mtu", "txqlen", "master", "below", "carrier"}
    | {"kind", "counters"}
)
"""What is known of each interface."""
_STACKED = {"vlan", "macvlan", "ipvlan"}
"""Kinds of interfaces that lie on another one."""


class Goal(enum.StrEnum):
    """What the node is for."""

    LATENCY = "latency"
    """Short messages between nodes of a cluster."""
    THROUGHPUT = "throughput"
    """Long ones."""
    WAN = "wan"
    """Bulk to distant sites."""


SUPPOSED_ROUND_TRIP_S = {Goal.LATENCY: 0.001, Goal.THROUGHPUT: 0.001, Goal.WAN: 0.1}
"""Where the caller measured none: a loaded cluster network, and a continent."""


class Malformed(Exception):  # noqa: N818
    """A file of the kernel's reads otherwise than it should."""


@dataclass(frozen=True)
class Interface:
    """An Ethernet interface; `link` is what answers.links() tells of it."""

    name: str
    link: dict[str, Any]
    physical: bool
    """There is a device behind it: it has a driver."""
    speed_bits: int | None
    """Bit/s as the driver tells; None where it does not know."""
    driver: str

    @property
    def kind(self) -> str:
        """veth, bridge, vxlan ...; empty for NICs."""
        return self.link.get("kind") or ""

    def __hash__(self) -> int:
        return hash(self.name)


class Node:
    """One examination's view. The methods raise OSError where nothing can be read."""

    def __init__(
        self, source: Source, goal: Goal, *, round_trip_s: float | None = None, peer: str = ""
    ) -> None:
        self.source = source
        self.goal = goal
        self.round_trip_s = round_trip_s or SUPPOSED_ROUND_TRIP_S[goal]
        self.peer = peer
        """An address or name to probe the path to; empty: none."""
        self.interfaces: tuple[Interface, ...] = ()
        """Those under examination."""
        self.text = cache(source.text)
        self.names = cache(source.names)
        self.target = cache(source.target)
        self.answer = cache(source.answer)
        self.ethtool = cache(source.ethtool)
        self.path_to = cache(source.path_to)

    def number(self, path: str) -> int:
        """A file that holds one whole number."""
        return self.numbers(path)[0]

    def numbers(self, path: str) -> list[int]:
        """A file of whole numbers, at least one."""
        text = self.text(path)
        try:
            found = [int(word) for word in text.split()]
        except ValueError:
            found = []
        if not found:
            raise Malformed(f"{path} reads {text[:60]!r}, which is no number")
        return found

    def exists(self, path: str) -> bool:
        """Whether it can be read; a damaged file (EIO) is there, and no reason to go without."""
        try:
            self.text(path)
        except OSError as error:
            if error.errno == errno.EIO:
                raise
            return False
        return True

    def listed(self, path: str) -> list[str]:
        """The entries of a directory; none where it is missing."""
        try:
            return self.names(path)
        except (FileNotFoundError, NotADirectoryError):
            return []

    @property
    def kernel(self) -> tuple[int, int]:
        """Version of the running kernel."""
        release = self.release
        found = re.match(r"(\d+)\.(\d+)", release)
        if found is None:
            raise Malformed(f"the kernel's release reads {release!r}")
        return int(found[1]), int(found[2])

    @property
    def release(self) -> str:
        return self.text("/proc/sys/kernel/osrelease").strip()

    @property
    def host(self) -> str:
        return self.text("/proc/sys/kernel/hostname").strip()

    @property
    def command_line(self) -> list[str]:
        """The kernel's parameters."""
        return self.text("/proc/cmdline").split()

    def parameter(self, name: str) -> str | None:
        """The last value of a kernel parameter; None where it is not given."""
        found = [
            word.partition("=")[2] for word in self.command_line if word.partition("=")[0] == name
        ]
        return found[-1] if found else None

    @property
    def in_first_network(self) -> bool:
        """The network namespace is the machine's first, which has settings that others lack."""
        return self.exists("/proc/sys/net/core/netdev_budget")

    def cpus(self) -> list[int]:
        """Processors that are online."""
        return parse_cpus(self.text("/sys/devices/system/cpu/online"))

    def numa_nodes(self) -> list[int]:
        try:
            return parse_cpus(self.text("/sys/devices/system/node/online"))
        except FileNotFoundError:
            return [0]

    def rate_bits(self) -> int:
        """The fastest examined interface's rate in bit/s; 1 Gbit/s where none is known."""
        known = [each.speed_bits for each in self.interfaces if each.speed_bits]
        return max(known, default=_SUPPOSED_RATE_BITS)

    def bandwidth_delay_bytes(self) -> int:
        """What is under way on a path that is full."""
        return int(self.rate_bits() / 8 * self.round_trip_s)

    def all_interfaces(self) -> list[Interface]:
        """All Ethernet interfaces of the network namespace."""
        if not all(set(link) >= _NEEDED for link in self.answer("links")):
            raise Malformed(f"an interface is told without one of {', '.join(sorted(_NEEDED))}")
        return [self._interface(link) for link in self.answer("links")]

    def _interface(self, link: dict[str, Any]) -> Interface:
        name = link["name"]
        driver = ""
        try:
            driver = self.target(f"/sys/class/net/{name}/device/driver").rpartition("/")[2]
        except OSError as error:
            # No device: a virtual interface. Elsewhere in /sys than here: another namespace's.
            if error.errno not in (errno.ENOENT, errno.EINVAL):
                raise
        try:
            speed = self.ethtool(name, "linkmodes").get("speed", _SPEED_UNKNOWN)
        except OSError:
            speed = _SPEED_UNKNOWN
        speed_bits = None if speed in (0, _SPEED_UNKNOWN) else speed * _MEGABIT
        return Interface(name, link, bool(driver), speed_bits, driver)


def has_address(node: Node, interface: Interface) -> bool:
    """It has an address of a network (not of the link alone), or one that frames reach through it
    has: its bond or bridge, a VLAN on it."""
    link = interface.link
    above = [
        each
        for each in node.answer("links")
        if (link["master"] and each["index"] == link["master"])
        or (each["kind"] in _STACKED and each["below"] == link["index"])
    ]
    return any(
        not address.startswith("fe80:") for each in (link, *above) for address in each["addresses"]
    )


def parse_cpus(text: str) -> list[int]:
    """The kernel's lists of processors: 0-3,8."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if not first:
            continue
        try:
            found += range(int(first), int(last or first) + 1)
        except ValueError:
            raise Malformed(f"{text[:60]!r} is no list of processors") from None
    return found


def parse_mask(text: str) -> int:
    """The kernel's masks of processors: words of 32 bits in hexadecimal, with commas."""
    try:
        return int(text.strip().replace(",", "") or "0", 16)
    except ValueError:
        raise Malformed(f"{text[:60]!r} is no mask of processors") from None
