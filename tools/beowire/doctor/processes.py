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
    namespace. Without root only the caller's own programs show what they are."""
    found = [
        Job(pid, _text(node, f"/proc/{pid}/comm").strip(), _nice(node, pid))
        for pid in pids(node)
        if _communicates(node, pid)
    ]
    if not found:
        for line in _text(node, "/proc/net/unix").splitlines():
            if endpoint := _ENDPOINT.search(line):
                found.append(Job(0, f"Beowire's endpoint {endpoint[1]}", 0))
    return found


def _communicates(node: Node, pid: int) -> bool:
    environment = _text(node, f"/proc/{pid}/environ").split("\0")
    if any(each.startswith(_RANK_VARIABLES) for each in environment):
        return True
    return bool(_MPI_LIBRARY.search(_text(node, f"/proc/{pid}/maps")))


def _nice(node: Node, pid: int) -> int:
    fields = _text(node, f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(fields[16]) if len(fields) > 16 else 0


def _text(node: Node, path: str) -> str:
    """The file; empty where the process is gone or another user's."""
    try:
        return node.text(path)
    except OSError:
        return ""
