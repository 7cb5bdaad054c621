# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A lab: a virtual cluster on this machine, as it is written down.

Each node and router of lab NAME is the network namespace `bw-NAME-DEVICE` with a host name of its
own; each switch is a bridge in a namespace of its own, where neither the machine's packet filters
nor its network manager see it. Every name derives from the lab's name and its topology, so that a
lab can be removed whatever happened to the process that made it. Where the kernel forbids
namespaces, the nodes are loopback addresses.
"""

import contextlib
import fcntl
import ipaddress
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from beowire import installed, namespaces, places
from beowire.errors import BeowireError
from beowire.lab import shape
from beowire.lab.shape import Shape
from beowire.topology import topology
from beowire.topology.topology import (
    MTU_DEFAULT_BYTES,
    MTU_MAX_BYTES,
    MTU_MIN_BYTES,
    NODES_MAX,
    Link,
    Topology,
)

__all__ = [
    "MTU_DEFAULT_BYTES",
    "MTU_MAX_BYTES",
    "MTU_MIN_BYTES",
    "NODES_MAX",
    "Lab",
    "Mode",
    "Shape",
    "Wire",
    "WireKind",
]

Mode = Literal["namespace", "loopback"]
WireKind = Literal["plain", "kernel", "netem", "beowire-link"]
WIRES = "wires"
"""The namespace in which links lie that touch no switch."""

PUBLIC = Path("/run/beowire-lab")
"""What every user can reach of labs; their state is for who made them."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?")


@dataclass
class Wire:
    """How a link is made."""

    kind: WireKind
    """plain: a cable to the switch, with what its port can do; kernel: token buckets and
    classifiers in both directions; else the emulator between the cable's halves."""
    pid: int = 0
    """The process that emulates the link; 0: none."""


@dataclass
class Lab:
    """A lab's description, kept as JSON in its state directory."""

    name: str
    topology: Topology
    mode: Mode
    subnets: list[str]
    """The first three numbers of the addresses of each network; a node is the same host in all."""
    addresses: dict[str, dict[str, str]]
    """a.b.c.d/n by interface, by node or router."""
    ready: bool = False
    """False while the lab is being made (or was left half made by a killed command)."""
    reason: str = ""
    """Why the lab is on loopback addresses; empty for namespaces."""
    wires: dict[str, Wire] = field(default_factory=dict)
    """By link."""
    quotas: dict[str, str] = field(default_factory=dict)
    """The control group that limits a node's processor time, by node; without one: no limit."""
    services: dict[str, int] = field(default_factory=dict)
    """The process of beowired, by node; empty: the lab has none."""
    slurm: dict[str, dict[str, int]] = field(default_factory=dict)
    """The processes of Slurm and munge, by node and program; empty: the lab has no Slurm."""

    @property
    def directory(self) -> Path:
        return labs_dir() / self.name

    @property
    def nodes(self) -> int:
        """How many nodes."""
        return len(self.topology.nodes)

    @property
    def subnet(self) -> str:
        """The first three numbers of the first network's addresses."""
        return self.subnets[0]

    def node_names(self) -> list[str]:
        return self.topology.node_names()

    def host_names(self) -> list[str]:
        """What can be entered: nodes and routers."""
        return [host.name for host in self.topology.hosts()]

    def check_node(self, node: str) -> None:
        if node not in self.host_names():
            names = self.host_names()
            told = f"{names[0]} to {names[-1]}" if len(names) > 1 else names[0]
            raise BeowireError(f"Lab {self.name} has no node {node}.", f"Its nodes are {told}.")

    def address(self, node: str) -> str:
        """The node's address on its first interface."""
        return next(iter(self.addresses[node].values())).partition("/")[0]

    def network(self) -> str:
        """The smallest network, as a.b.c.d/n, that holds all addresses."""
        interfaces = [
            ipaddress.IPv4Interface(text)
            for by_interface in self.addresses.values()
            for text in by_interface.values()
        ]
        whole = interfaces[0].network
        while not all(each.network.subnet_of(whole) for each in interfaces):
            whole = whole.supernet()
        return str(whole)

    def namespace(self, device: str) -> str:
        """The name of the network namespace of a node, router or switch."""
        return f"bw-{self.name}-{device}"

    def namespace_path(self, device: str) -> Path:
        return namespaces.NETNS_DIR / self.namespace(device)

    def switch_names(self) -> list[str]:
        """The namespaces that are no hosts."""
        return [*self.topology.switch_names(), WIRES]

    def settings_path(self, node: str) -> Path:
        """The directory of files that `ip netns exec` lays over /etc in that namespace."""
        return Path("/etc/netns") / self.namespace(node)

    def host_name_path(self, node: str) -> Path:
        return self.directory / f"{node}.uts"

    def enter_path(self, node: str) -> Path:
        """The script that executes its arguments on the node."""
        return self.directory / f"{node}.enter"

    @property
    def public_directory(self) -> Path:
        """What every user can reach of the lab."""
        return PUBLIC / self.name

    def make_public(self, directory: Path) -> None:
        """Makes a directory in there, and those above it, for all to read."""
        above = [each for each in directory.parents if each.is_relative_to(PUBLIC)]
        for each in (*reversed(above), directory):
            each.mkdir(mode=0o755, exist_ok=True)
            each.chmod(0o755)

    def temporary_path(self, node: str) -> Path:
        """The directory for temporary files of a node without a host name of its own."""
        return self.directory / f"{node}.tmp"

    def link(self, name: str) -> Link:
        """The link of that name, or the only one of the node of that name."""
        link = self.topology.link(name)
        if link is None:
            raise BeowireError(
                f"Lab {self.name} has no link {name}.",
                f"Its links are {', '.join(each.name for each in self.topology.links)}.",
            )
        return link

    def shape(self, node: str) -> Shape:
        """What the port of the node's first link does, as far as a shape can say it."""
        return shape.of_link(self.topology.links_of(node)[0], node)

    def processes(self) -> list[int]:
        """The processes that live on the lab's nodes."""
        if self.mode == "namespace":
            return namespaces.processes(map(self.namespace_path, self.host_names()))
        # Others may have labs of the same name, in other directories.
        return marked_processes(f"BEOWIRE_LAB={self.name}", f"BEOWIRE_LAB_DIR={self.directory}")

    def wire_processes(self) -> list[int]:
        """The processes that live at the lab's switches: emulators of links."""
        if self.mode == "namespace":
            return namespaces.processes(map(self.namespace_path, self.switch_names()))
        return []

    def dead_wires(self) -> list[str]:
        """The links whose emulator does not run, though the lab needs it."""
        place = self.namespace_path
        switches = {namespaces.inode(place(name)) for name in self.switch_names()} - {None}
        return [
            name
            for name, wire in self.wires.items()
            if wire.pid and namespaces.network_of(wire.pid) not in switches
        ]

    def save(self) -> None:
        """Writes the description in one step: a reader sees the old one or the new one, or no lab
        at all, whenever the writer is killed."""
        if self.directory.is_dir():
            self._write(self.directory)
            return
        unfinished = labs_dir() / f".{self.name}"
        unfinished.mkdir(parents=True)
        try:
            self._write(unfinished)
            unfinished.rename(self.directory)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise

    def _write(self, directory: Path) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=directory, prefix=".lab")
        try:
            with os.fdopen(descriptor, "w") as stream:
                json.dump(asdict(self), stream, indent=1)
            Path(temporary).replace(directory / "lab.json")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def labs_dir() -> Path:
    return places.state_dir() / "labs"


def marked_processes(*marks: str) -> list[int]:
    """The processes that carry all these marks in their environment, this one excepted."""
    wanted = {mark.encode() for mark in marks}
    found = []
    for pid in namespaces.other_processes():
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if wanted.issubset(environment.split(b"\0")):
                found.append(pid)
    return found


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BeowireError(
            f"{name!r} is no name for a lab.",
            "Use 1 to 24 small letters, digits and hyphens, with no hyphen at either end.",
        )
    return name


def exists(name: str) -> bool:
    return (labs_dir() / check_name(name) / "lab.json").exists()


def load(name: str) -> Lab:
    """The lab of that name, ready or not."""
    path = labs_dir() / check_name(name) / "lab.json"
    try:
        fields = json.loads(path.read_text())
    except FileNotFoundError:
        raise missing(name, f"make it: {installed.COMMAND} lab up {name} --nodes 2") from None
    except (OSError, ValueError) as error:
        raise _damaged(name, error) from error
    try:
        fields["topology"] = topology.decode(fields["topology"])
        fields["wires"] = {link: Wire(**wire) for link, wire in fields["wires"].items()}
        return Lab(**fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise _damaged(name, error) from error


def missing(name: str, fix: str) -> BeowireError:
    """That there is no such lab; the fix beside naming one of those that are there."""
    there = names()
    known = (
        f"There {'are' if len(there) > 1 else 'is'} {', '.join(there)}"
        if there
        else "There is none"
    )
    return BeowireError(f"There is no lab {name}.", f"{known}{f'; {fix}' if fix else '.'}")


def _damaged(name: str, error: Exception) -> BeowireError:
    directory = labs_dir() / name
    return BeowireError(
        f"The description of lab {name} in {directory}/lab.json cannot be read: {error!r}.",
        f"Remove what is left of the lab: its namespaces (ip netns list | grep bw-{name}-; ip "
        f"netns del ...), then rm -r {directory}",
    )


def load_ready(name: str) -> Lab:
    """The lab of that name, which must be complete."""
    lab = load(name)
    if not lab.ready:
        raise BeowireError(
            f"Lab {name} is not complete: it is being made, or the command that made it died.",
            f"Remove it: {installed.COMMAND} lab down {name}",
        )
    if lab.mode == "namespace" and (dead := lab.dead_wires()):
        raise BeowireError(
            f"In lab {name} the emulator of link {', '.join(dead)} is dead: nothing passes there.",
            f"Remove the lab ({installed.COMMAND} lab down {name}) and make it again.",
        )
    return lab


def names() -> list[str]:
    """The names of all labs of this machine."""
    try:
        entries = [each for each in labs_dir().iterdir() if not each.name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BeowireError(
            f"{labs_dir()} cannot be read: {error.strerror}.", "Look at it, or at BEOWIRE_STATE."
        ) from error
    return sorted(each.name for each in entries if (each / "lab.json").exists())


def remove_unfinished() -> None:
    """Removes what killed commands left that had not yet given a lab its name. The caller holds
    the lock of labs."""
    for entry in labs_dir().glob(".*"):
        shutil.rmtree(entry, ignore_errors=True)


def choose_subnets(name: str, mode: Mode, count: int) -> list[str]:
    """For each of `count` networks the first three numbers of addresses that no other lab uses, in
    a row that one larger network covers; the same name gets the same ones unless they are taken."""
    taken: set[str] = set()
    for other in names():
        with contextlib.suppress(BeowireError):  # a damaged description takes no subnet
            taken.update(load(other).subnets)
    first = 10 if mode == "namespace" else 127
    start = zlib.crc32(name.encode())
    step = 1 << (count - 1).bit_length()
    for offset in range(0, 128 * 256, step):
        number = (start + offset) % (128 * 256) // step * step
        subnets = [
            f"{first}.{64 + each // 256}.{each % 256}" for each in range(number, number + count)
        ]
        if taken.isdisjoint(subnets):
            return subnets
    raise BeowireError(
        "All lab subnets are taken.", f"Remove labs: {installed.COMMAND} lab down NAME"
    )


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Only one process at a time makes, changes or removes labs."""
    directory = places.make_state_dir()
    try:
        stream = open(directory / "lock", "w")  # noqa: SIM115
    except OSError as error:
        raise places.state_unwritable(error) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
