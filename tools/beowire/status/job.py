# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The processes of one job, found on all its nodes.

They are those below the launcher, those that a launcher gave the same job's name, and whoever
speaks with one of these by Beowire.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire.errors import BeowireError
from beowire.status import processes
from beowire.status.launcher import is_launcher, named_hosts
from beowire.status.slurm import Known
from beowire.status.words import age

CALLED_S = 2.0
"""A program that waits in a call was seen to do so at most so long ago."""


@dataclass
class Member:
    """A process of the job."""

    node: str
    pid: int
    process: dict[str, Any] | None
    endpoints: list[dict[str, Any]] = field(default_factory=list)

    @property
    def rank(self) -> int | None:
        return None if self.process is None else self.process["rank"]

    @property
    def host(self) -> str:
        """The name of its node, as it says itself."""
        return str(self.endpoints[0]["host"]) if self.endpoints else self.node

    @property
    def name(self) -> str:
        who = f"process {self.pid}" if self.rank is None else f"rank {self.rank}"
        return f"{who} ({self.host})" if self.rank is None else who

    @property
    def state(self) -> str:
        """What the kernel says that it does."""
        words = {"R": "runs", "S": "sleeps", "D": "waits in the kernel", "Z": "has ended"}
        letter = self.process["state"] if self.process else "?"
        return words.get(letter, f"state {letter}")

    @property
    def stopped(self) -> bool:
        return bool(self.process and (self.process["state"] in "Tt" or self.process["frozen"]))

    @property
    def calls(self) -> bool:
        """Whether the program is in a call of MPI, or makes some."""
        ages = [each["called_s"] for each in self.endpoints if each["called_s"] is not None]
        asleep = any(each["asleep"] for each in self.endpoints)
        return asleep or (bool(ages) and min(ages) < CALLED_S)

    @property
    def away_s(self) -> float:
        """Seconds since it was in a call."""
        ages = [each["called_s"] for each in self.endpoints if each["called_s"] is not None]
        return min(ages, default=0.0)

    @property
    def moves(self) -> bool:
        """Whether messages come and go."""
        names = ("tx_messages", "rx_messages", "tx_payload", "rx_payload")
        return any(each["rates"][name] > 0 for each in self.endpoints for name in names)

    def doing(self) -> str:
        """What it does, in a few words."""
        if self.process is None:
            return "unknown"
        if self.process["frozen"]:
            return "frozen"
        words = {"T": "stopped", "t": "held by a debugger", "Z": "dead", "D": "in the kernel"}
        if self.process["state"] in words:
            return words[self.process["state"]]
        if not self.endpoints:
            return "without an endpoint"
        if not self.calls:
            return f"outside MPI for {age(self.away_s)}"
        return "exchanges messages" if self.moves else "waits in MPI"


def hosts_of(pid: int) -> list[str]:
    """The hosts that a launcher, or the one below it, was told to use; none if it was not."""
    allocated = None
    for each in sorted(processes.below(pid)):
        variables = processes.environment(each)
        if "BEOWIRE_LAB" in variables:
            return []  # one machine
        if hosts := _told(each):
            return hosts
        allocated = allocated or variables.get("SLURM_JOB_NODELIST")
    return [allocated] if allocated else []


def _told(pid: int) -> list[str]:
    """The hosts in the words of a process. It may become another user's meanwhile: whose words
    these are is known only if it was the same one's before and after."""
    owner = processes.owner(pid)
    words = processes.words(pid)
    if owner is None or owner != processes.owner(pid):
        return []
    return named_hosts(words, processes.PROC / str(pid) / "cwd", owner)


def hosts_of_slurm(job: str) -> str | None:
    """The list of nodes of a Slurm job, as one of the asker's own processes here has it: what
    another user's says would let that user choose whom the asker reaches."""
    for pid in processes.ranks():
        variables = processes.environment(pid)
        if variables.get("SLURM_JOB_ID") == job and processes.owner(pid) == os.getuid():
            return variables.get("SLURM_JOB_NODELIST")
    return None


def is_of_launcher(number: int) -> bool:
    """Whether a process of that number is a launcher: then it is meant."""
    return is_launcher(processes.words(number))


def names_process(number: int, known: Known | None) -> bool:
    """Whether a number is that of a process here. One that Slurm knows too is the job's, unless the
    process is a launcher: small numbers are also those of the kernel's threads."""
    return Path(f"/proc/{number}").exists() and (known is None or is_of_launcher(number))


def _of_user(state: dict[str, Any], uid: int) -> dict[str, Any]:
    """A state without other users' processes, whatever these call themselves."""
    own = {key: each for key, each in state["processes"].items() if each.get("uid", uid) == uid}
    return {**state, "processes": own}


def _seeds(state: dict[str, Any], number: int, here: str | None, known: Known | None) -> set[str]:
    """The processes that the number names: those below a process of this node, or a Slurm job's."""
    found = set()
    if names_process(number, known):
        pids = processes.below(number)
        found = {
            key
            for key, each in state["processes"].items()
            if each["pid"] in pids and here in (None, each["node"])
        }
    if not found:
        slurm = str(number)
        found = {key for key, each in state["processes"].items() if each["slurm"] == slurm}
    return found


def _spread(state: dict[str, Any], found: set[str]) -> set[str]:
    """With all that have the same job's name, and all that these speak with."""
    jobs = {each["job"] for key, each in state["processes"].items() if key in found} - {None}
    found = found | {key for key, each in state["processes"].items() if each["job"] in jobs}
    place = {
        each["identity"]: f"{each['node']}:{each['pid']}"
        for each in state["endpoints"]
        if each["pid"]
    }
    while True:
        met = {
            place[peer["identity"]]
            for each in state["endpoints"]
            if f"{each['node']}:{each['pid']}" in found
            for peer in each["peers"]
            if peer["identity"] in place
        }
        if met <= found:
            return found
        found |= met


def members(
    state: dict[str, Any], number: int, here: str | None = None, known: Known | None = None
) -> list[Member]:
    """The members of a job, by rank. `here`: the name of the node that the number is of, if pids of
    other nodes could be meant as well. `known`: what Slurm says of the job of that number."""
    if known is not None and not names_process(number, known):
        state = _of_user(state, known.uid)
    keys = _spread(state, _seeds(state, number, here, known))
    own: dict[str, list[dict[str, Any]]] = {}
    for each in state["endpoints"]:
        if each["pid"]:  # else its process is not known here
            own.setdefault(f"{each['node']}:{each['pid']}", []).append(each)
    found = []
    for key in keys:
        process = state["processes"].get(key)
        node, _, pid = key.rpartition(":")
        found.append(Member(node, int(pid), process, own.get(key, [])))
    started = {
        f"{each.node}:{each.process['parent']}"
        for each in found
        if each.endpoints and each.process and "parent" in each.process
    }
    with_endpoint = {(each.rank, _job(each)) for each in found if each.endpoints}
    chosen = [
        each
        for each in found
        if each.endpoints
        or (
            each.rank is not None
            and (each.rank, _job(each)) not in with_endpoint
            and f"{each.node}:{each.pid}" not in started
        )
    ]
    if not chosen:
        raise BeowireError(
            f"No process of a job {number} is found.",
            "Give the number of the launcher's process (pgrep mpirun), or of a Slurm job, and "
            "--hosts if it runs elsewhere.",
        )
    return sorted(chosen, key=lambda each: (each.rank is None, each.rank or 0, each.pid))


def _job(member: Member) -> str | None:
    return member.process["job"] if member.process else None
