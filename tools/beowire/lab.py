# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A lab: a virtual cluster on this machine, as it is written down.

Node K of lab NAME is the network namespace `bw-NAME-nodeK` with a host name of its own; the
switch that joins the nodes is a bridge in the namespace `bw-NAME-switch`. Every name derives
from the lab's name and its number of nodes, so that a lab can be removed whatever happened to
the process that made it. Where the kernel forbids namespaces, the nodes are loopback addresses.
"""

import contextlib
import fcntl
import json
import os
import re
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from beowire import namespaces, places
from beowire.errors import BeowireError

NODES_MAX = 250
MTU_MIN_BYTES = 68
MTU_MAX_BYTES = 65535
MTU_DEFAULT_BYTES = 9000

Mode = Literal["namespace", "loopback"]

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?")


@dataclass(frozen=True)
class Shape:
    """What the switch does to the frames of one node's port; nothing by default.

    Losses, corruption and drops hit what the node sends, the rate limits what it receives.
    """

    loss: float = 0.0
    """Share of frames lost at random, 0 to 1."""
    corrupt: float = 0.0
    """Share of frames in which one random bit behind the Ethernet header is flipped, 0 to 1."""
    rate_bits: int = 0
    """Bits per second towards the node; 0: unlimited."""
    queue_bytes: int = 0
    """Room of the drop-tail queue before that rate; 0: the default for the rate."""
    longest_bytes: int = 0
    """Frames with more payload than this are dropped, as by a switch without jumbo frames;
    0: none."""
    drop_raw: bool = False
    """Drop what is neither IP nor ARP, as some clouds do."""


@dataclass
class Lab:
    """A lab's description, kept as JSON in its state directory."""

    name: str
    nodes: int
    mtu_bytes: int
    subnet: str
    """The first three numbers of the nodes' addresses; node K has K as the fourth."""
    mode: Mode
    offloads: bool = True
    ready: bool = False
    """False while the lab is being made (or was left half made by a killed command)."""
    reason: str = ""
    """Why the lab is on loopback addresses; empty for namespaces."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    """Shapes of the ports by node name; a node without one is unshaped."""

    @property
    def directory(self) -> Path:
        return labs_dir() / self.name

    def node_names(self) -> list[str]:
        return [f"node{number}" for number in range(1, self.nodes + 1)]

    def check_node(self, node: str) -> None:
        if node not in self.node_names():
            raise BeowireError(
                f"Lab {self.name} has no node {node}.", f"Its nodes are node1 to node{self.nodes}."
            )

    def address(self, node: str) -> str:
        return f"{self.subnet}.{int(node.removeprefix('node'))}"

    def network(self) -> str:
        """The subnet as a.b.c.0/24."""
        return f"{self.subnet}.0/24"

    def namespace(self, node: str) -> str:
        """The name of the network namespace of a node, or of the switch."""
        return f"bw-{self.name}-{node}"

    def namespace_path(self, node: str) -> Path:
        return namespaces.NETNS_DIR / self.namespace(node)

    def namespace_paths(self) -> list[Path]:
        return [self.namespace_path(node) for node in ["switch", *self.node_names()]]

    def settings_path(self, node: str) -> Path:
        """The directory of files that `ip netns exec` lays over /etc in that namespace."""
        return Path("/etc/netns") / self.namespace(node)

    def host_name_path(self, node: str) -> Path:
        return self.directory / f"{node}.uts"

    def enter_path(self, node: str) -> Path:
        """The script that executes its arguments on the node."""
        return self.directory / f"{node}.enter"

    def temporary_path(self, node: str) -> Path:
        """The directory for temporary files of a node without a host name of its own."""
        return self.directory / f"{node}.tmp"

    def shape(self, node: str) -> Shape:
        return self.shapes.get(node, Shape())

    def processes(self) -> list[int]:
        """The processes that live on the lab's nodes."""
        if self.mode == "namespace":
            return namespaces.processes(self.namespace_paths())
        return marked_processes(f"BEOWIRE_LAB={self.name}")

    def save(self) -> None:
        """Writes the description in one step: a reader sees the old one or the new one."""
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self.directory, prefix=".lab")
        try:
            with os.fdopen(descriptor, "w") as stream:
                json.dump(asdict(self), stream, indent=1)
            Path(temporary).replace(self.directory / "lab.json")
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def labs_dir() -> Path:
    return places.state_dir() / "labs"


def marked_processes(mark: str) -> list[int]:
    """The processes that carry `mark` in their environment, this one excepted."""
    found = []
    for pid in namespaces.other_processes():
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes()
            if mark.encode() in environment.split(b"\0"):
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
        raise BeowireError(
            f"There is no lab {name}.", f"Make it: ./beowire lab up {name} --nodes 2"
        ) from None
    except (OSError, ValueError) as error:
        raise _damaged(name, error) from error
    try:
        fields["shapes"] = {node: Shape(**shape) for node, shape in fields["shapes"].items()}
        return Lab(**fields)
    except (AttributeError, KeyError, TypeError) as error:
        raise _damaged(name, error) from error


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
            f"Remove it: ./beowire lab down {name}",
        )
    return lab


def names() -> list[str]:
    """The names of all labs of this machine."""
    directory = labs_dir()
    if not directory.is_dir():
        return []
    return sorted(entry.name for entry in directory.iterdir() if (entry / "lab.json").exists())


def choose_subnet(name: str, mode: Mode) -> str:
    """Three numbers of an address that no other lab uses; the same name gets the same ones
    again unless they are taken."""
    taken = set()
    for other in names():
        with contextlib.suppress(BeowireError):  # a damaged description takes no subnet
            taken.add(load(other).subnet)
    first = 10 if mode == "namespace" else 127
    start = zlib.crc32(name.encode())
    for offset in range(128 * 256):
        number = (start + offset) % (128 * 256)
        subnet = f"{first}.{64 + number // 256}.{number % 256}"
        if subnet not in taken:
            return subnet
    raise BeowireError("All lab subnets are taken.", "Remove labs: ./beowire lab down NAME")


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Only one process at a time makes, changes or removes labs."""
    directory = places.state_dir()
    try:
        directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        stream = open(directory / "lock", "w")  # noqa: SIM115
    except OSError as error:
        raise BeowireError(
            f"The state of labs cannot be kept in {directory}: {error.strerror}.",
            "Name a directory that can be written to in BEOWIRE_STATE.",
        ) from error
    with stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
