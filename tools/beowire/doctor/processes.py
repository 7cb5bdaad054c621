# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What runs on the node: services by name, and the jobs that a fix must not disturb."""

import errno
from dataclasses import dataclass

from beowire.doctor.node import Node
from beowire.doctor.privacy import ENDPOINT, MPI_LIBRARY, RANK_VARIABLES


@dataclass(frozen=True)
class Job:
    """A process that communicates."""

    pid: int
    """0 for an endpoint whose process is not known."""
    name: str
    nice: int
    rank: bool
    """A launcher started it as part of a job; else it has merely loaded MPI or libbeowire, as a
    program that looks at results does."""


def pids(node: Node) -> list[int]:
    return [int(name) for name in node.listed("/proc") if name.isdigit()]


def named(node: Node, name: str) -> list[int]:
    """The processes of that name."""
    every = pids(node)
    if 1 not in every:
        raise PermissionError(errno.EPERM, "processes of others are hidden", "/proc")
    return [pid for pid in every if _text(node, f"/proc/{pid}/comm").strip() == name]


def jobs(node: Node) -> list[Job]:
    """MPI programs, programs that use libbeowire, and Beowire's endpoints of this network
    namespace. A node of a lab, which is a namespace, has only those in its own; on a machine those
    in others count too, since they communicate through it. Without root only the caller's own
    programs show what they are."""
    found = [
        Job(pid, _text(node, f"/proc/{pid}/comm").strip(), _nice(node, pid), rank)
        for pid in pids(node)
        if (node.in_first_network or _is_here(node, pid))
        and (rank := _communicates(node, pid)) is not None
    ]
    if not found:
        for line in _text(node, "/proc/net/unix").splitlines():
            if endpoint := ENDPOINT.search(line):
                found.append(Job(0, f"Beowire's endpoint {endpoint[1]}", 0, rank=False))
    return found


def _communicates(node: Node, pid: int) -> bool | None:
    """Whether the process is a rank; None where it does not communicate."""
    environment = _text(node, f"/proc/{pid}/environ")
    if not environment:
        return None  # a thread of the kernel's, or another user's
    if any(each.partition("=")[0] in RANK_VARIABLES for each in environment.split("\0")):
        return True
    return False if MPI_LIBRARY.search(_text(node, f"/proc/{pid}/maps")) else None


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
