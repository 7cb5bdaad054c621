# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What runs on the node: services by name, and the jobs that a mend must not disturb."""

import re
from dataclasses import dataclass

from beowire.doctor.node import Node

_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK=", "PMI_RANK=", "PMIX_RANK=")
_MPI_LIBRARY = re.compile(r"/(?:libmpi|libmpich|libbeowire)[\w.-]*\.so")
_ENDPOINT = re.compile(r"@beowire\.(\d+)$")


@dataclass(frozen=True)
class Job:
    """A process that communicates."""

    pid: int
    """0 for an endpoint whose process is not known."""
    name: str
    nice: int


def pids(node: Node) -> list[int]:
    return [int(name) for name in node.listed("/proc") if name.isdigit()]


def named(node: Node, name: str) -> list[int]:
    """The processes of that name."""
    return [pid for pid in pids(node) if _text(node, f"/proc/{pid}/comm").strip() == name]


def jobs(node: Node) -> list[Job]:
    """MPI programs, programs that use libbeowire, and Beowire's endpoints of this network
    namespace. A node of a lab, which is a namespace, has only those in its own; on a machine those
    in others count too, since they communicate through it. Without root only the caller's own
    programs show what they are."""
    found = [
        Job(pid, _text(node, f"/proc/{pid}/comm").strip(), _nice(node, pid))
        for pid in pids(node)
        if (node.in_first_network or _is_here(node, pid)) and _communicates(node, pid)
    ]
    if not found:
        for line in _text(node, "/proc/net/unix").splitlines():
            if endpoint := _ENDPOINT.search(line):
                found.append(Job(0, f"Beowire's endpoint {endpoint[1]}", 0))
    return found


def _communicates(node: Node, pid: int) -> bool:
    environment = _text(node, f"/proc/{pid}/environ")
    if not environment:
        return False  # a thread of the kernel's, or another user's
    if any(each.startswith(_RANK_VARIABLES) for each in environment.split("\0")):
        return True
    return bool(_MPI_LIBRARY.search(_text(node, f"/proc/{pid}/maps")))


def _is_here(node: Node, pid: int) -> bool:
    try:
        return node.target(f"/proc/{pid}/ns/net") == node.target("/proc/thread-self/ns/net")
    except OSError:
        return False


def _nice(node: Node, pid: int) -> int:
    fields = _text(node, f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[16]) if len(fields) > 16 else 0


def _text(node: Node, path: str) -> str:
    """The file; empty where the process is gone or another user's."""
    try:
        return node.text(path)
    except OSError:
        return ""
