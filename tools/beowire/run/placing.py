# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks at their places: pinned by the NUMA node of the interface and the program's need, with a
priority [A9]. Each node is asked what it has; what comes of it are words of the command line that
start each rank, so that the command that is printed does the same without these tools.
"""

import re
import subprocess
from dataclasses import dataclass, replace

from beowire import places
from beowire.errors import BeowireError
from beowire.placement.choice import Way, choose
from beowire.placement.machine import Machine, listed, read
from beowire.run import launch, remote
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire.terminal import note

_LIMIT_S = 60.0
_TABLE_BYTES = 100_000
"""Linux takes no argument of 128 KiB (MAX_ARG_STRLEN)."""
# By the global rank, as it decides on which host a rank is, on all launchers alike.
_PIN = (
    'rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}; cpus=$(echo "$1" | cut -d: -f$((rank + 1))); '
    'shift; exec taskset -c "$cpus" "$@"'
)
_MEMORY: dict[Way, str] = {"latency": "preferred", "bandwidth": "interleave"}
"""BEOWIRE_MEMORY for what the program needs."""


@dataclass(frozen=True)
class Priority:
    """A niceness, or a priority of SCHED_FIFO."""

    real_time: bool
    value: int

    def words(self, machine: Machine) -> list[str]:
        if self.real_time:
            return ["chrt", "--fifo", str(self.value)]
        return ["nice", "-n", str(self.value - machine.nice_now)]


@dataclass(frozen=True)
class Asked:
    """What --place and --priority say."""

    way: Way = "none"
    priority: Priority | None = None


def priority(text: str) -> Priority | None:
    """What --priority names; None: nothing."""
    if not text:
        return None
    match = re.fullmatch(r"(nice|rt):(-?\d{1,3})", text)
    value = int(match[2]) if match else 0
    real_time = bool(match) and match is not None and match[1] == "rt"
    low, high = (1, 99) if real_time else (-20, 19)
    if not match or not low <= value <= high:
        raise BeowireError(
            f"--priority {text} is none.", "Write nice:N, -20 to 19, or rt:N, 1 to 99."
        )
    return Priority(real_time, value)


def placed(job: Job, cluster: Cluster, asked: Asked) -> Job:
    """The job with each rank at its place; says what it does."""
    if asked.way == "none" and asked.priority is None:
        return job
    slots = launch.place(job, cluster)
    machines = _look(replace(cluster, hosts=list(slots)))
    before = _prioritized(asked.priority, machines) if asked.priority else []
    if asked.way == "none":
        return replace(job, before=before)
    before += _memory_words(asked.way, machines)
    before += _pins(asked.way, cluster, slots, machines, _interface())
    return replace(job, before=before, environment=_variables(job, asked.way, machines))


def _look(cluster: Cluster) -> dict[str, Machine]:
    """The machines of these hosts; the nodes of a lab are one machine, seen from the first."""
    script = places.package_file("run/facts.sh").read_text()
    if cluster.lab is None:
        said = remote.execute_everywhere(cluster, script)
        return {host: read(host, text) for host, text in said.items()}
    first = cluster.hosts[0]
    command = ["sh", str(cluster.lab.enter_path(first)), "sh", "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False, timeout=_LIMIT_S)
    return dict.fromkeys(cluster.hosts, read(first, done.stdout))


def _interface() -> str:
    """The first one that the environment names by its name."""
    for variable in ("BEOWIRE_INTERFACE", "BEOWIRE_INTERFACES"):
        name = launch.carried_variables().get(variable, "").partition(",")[0]
        if re.fullmatch(r"[\w.-]{1,15}", name):
            return name
    return ""


def _prioritized(wanted: Priority, machines: dict[str, Machine]) -> list[str]:
    """The words that give each rank the priority; an error names the host that does not allow
    it."""
    words = {tuple(wanted.words(machine)) for machine in machines.values()}
    for host, machine in machines.items():
        allowed = (
            wanted.value <= machine.rt_most
            if wanted.real_time
            else wanted.value >= min(machine.nice_least, machine.nice_now)
        )
        if not allowed:
            told = (
                f"real-time priorities up to {machine.rt_most}"
                if wanted.real_time
                else f"a niceness of {machine.nice_least} or more"
            )
            item = f"rtprio {wanted.value}" if wanted.real_time else f"nice {wanted.value}"
            raise BeowireError(
                f"{host} allows this user {told}, and not {wanted.value}.",
                f"Raise the limit: USER - {item} in /etc/security/limits.conf there.",
            )
    if len(words) > 1:
        raise BeowireError(
            "Processes begin with another niceness on one host than on the other.",
            "Leave --priority out, or make that alike.",
        )
    if wanted.real_time:
        note(
            f"ranks run under SCHED_FIFO, priority {wanted.value}: one that spins leaves others "
            "of its processor only what kernel.sched_rt_runtime_us keeps for them"
        )
    else:
        note(f"ranks run with a niceness of {wanted.value}")
    return list(words.pop())


def _memory_words(way: Way, machines: dict[str, Machine]) -> list[str]:
    """What lets the program's own memory lie on all nodes, for bandwidth. Elsewhere it lies where
    it is touched first, which is near its rank, since that is pinned."""
    if way != "bandwidth" or all(len(each.memory) == 1 for each in machines.values()):
        return []
    lacking = [host for host, machine in machines.items() if not machine.numactl]
    if lacking:
        note(
            f"{lacking[0]} has no numactl: the program's own memory lies where it is touched first "
            "(apt-get install numactl)"
        )
        return []
    return ["numactl", "--interleave=all"]


def _variables(job: Job, way: Way, machines: dict[str, Machine]) -> dict[str, str]:
    """BEOWIRE_MEMORY by the need, unless it is set or there is nothing to choose."""
    several = any(len(machine.memory) > 1 for machine in machines.values())
    if way not in _MEMORY or not several or job.transport != "beowire":
        return job.environment
    if "BEOWIRE_MEMORY" in launch.carried_variables():
        return job.environment
    return {"BEOWIRE_MEMORY": _MEMORY[way], **job.environment}


def _pins(
    way: Way,
    cluster: Cluster,
    slots: dict[str, int],
    machines: dict[str, Machine],
    interface: str,
) -> list[str]:
    """The words that pin each rank, by a table of processors in the order of ranks."""
    counts = slots
    if cluster.shares_cores:  # one machine for all of them
        counts = {next(iter(slots)): sum(slots.values())}
    table = []
    first = 0
    for host, count in counts.items():
        made = choose(machines[host], way, count, interface)
        own = [listed(each) for each in made.processors]
        who = "this machine" if cluster.shares_cores else host
        ranks = listed(range(first, first + count))
        note(f"place {way}: ranks {ranks} on processors {' '.join(own)} of {who}, {made.why}")
        if made.shared:
            note(f"  {count} ranks are more than {who} has processors to use: some share one")
        table += own
        first += count
    text = ":".join(table)
    if len(text) > _TABLE_BYTES:
        raise BeowireError(
            f"{first} ranks are too many for a table of places.", "Leave --place out."
        )
    return ["sh", "-c", _PIN, "place", text]
