# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel tells of the processes of a job: are they running, stopped, swapping, starved,
and which rank of which job they are."""

import contextlib
import os
import re
from pathlib import Path
from typing import Any

PROC = Path("/proc")
_NAMED = {
    "rank": ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"),
    "size": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"),
}
_JOBS = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid", "PMI_JOBID")
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_JOB_NODELIST")
_KEPT = ("BEOWIRE_NODE", "BEOWIRE_LAB")
_TASK = re.compile(r"\d{1,9}")
"""The number of a step whose processes are ranks: that of a batch script has ten digits."""
_TICKS = os.sysconf("SC_CLK_TCK")
_ENVIRON_MAX = 1 << 20
_SHORT = 200
_LISTS = {"SLURM_JOB_NODELIST": 65536}
"""Variables that may be longer, and the bytes of them that are read."""
_PRINTABLE = re.compile(r"[^\x20-\x7e]")


def clean(text: str, most: int = _SHORT) -> str:
    """Text of others, printable and short."""
    return _PRINTABLE.sub("?", text[:most])


def _read(pid: int, name: str, most: int = 65536) -> bytes:
    try:
        with (PROC / str(pid) / name).open("rb") as file:
            return file.read(most)
    except OSError:
        return b""


def environment(pid: int) -> dict[str, str]:
    """The few variables of a process that tell which job it is of."""
    wanted = {*(each for names in _NAMED.values() for each in names), *_JOBS, *_SLURM, *_KEPT}
    found = {}
    for word in _read(pid, "environ", _ENVIRON_MAX).split(b"\0"):
        name, _, value = word.decode(errors="replace").partition("=")
        if name in wanted:
            found[name] = clean(value, _LISTS.get(name, _SHORT))
    return found


def rank_of(variables: dict[str, str]) -> dict[str, Any]:
    """Rank, number of ranks and name of the job, as its launcher says; None where it does not."""
    if "SLURM_PROCID" in variables and not _TASK.fullmatch(variables.get("SLURM_STEP_ID", "")):
        # A batch script, or what it has started itself.
        variables = {name: each for name, each in variables.items() if name != "SLURM_PROCID"}
    told: dict[str, Any] = {}
    for what, names in _NAMED.items():
        texts = [variables[name] for name in names if name in variables]
        told[what] = int(texts[0]) if texts and re.fullmatch(r"\d{1,9}", texts[0]) else None
    told["job"] = next((variables[name] for name in _JOBS if name in variables), None)
    told["slurm"] = variables.get("SLURM_JOB_ID")
    return told


def stat(pid: int) -> dict[str, Any] | None:
    """State, parent and times of a process; None if it is gone."""
    line = _read(pid, "stat").decode(errors="replace")
    name, _, rest = line.partition("(")[2].rpartition(")")
    fields = rest.split()
    try:
        return {
            "name": clean(name),
            "state": fields[0],
            "parent": int(fields[1]),
            "cpu_s": (int(fields[11]) + int(fields[12])) / _TICKS,
            "major_faults": int(fields[9]),
            "threads": int(fields[17]),
            "started": int(fields[19]),
        }
    except (IndexError, ValueError):
        return None


def _scheduled(pid: int) -> tuple[float, float]:
    """Seconds that the threads of a process ran, and stood in line for a processor."""
    ran = waited = 0.0
    with contextlib.suppress(OSError):
        for thread in sorted((PROC / str(pid) / "task").iterdir())[:64]:
            words = _read(pid, f"task/{thread.name}/schedstat").split()
            if len(words) >= 2:
                ran += int(words[0]) / 1e9
                waited += int(words[1]) / 1e9
    return ran, waited


def _swapped(pid: int) -> int:
    found = re.search(rb"^VmSwap:\s+(\d+) kB", _read(pid, "status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _frozen(pid: int) -> bool:
    """Whether the control group of the process stands still."""
    found = re.search(rb"^0::(/.*)$", _read(pid, "cgroup"), re.MULTILINE)
    if not found:
        return False
    path = Path("/sys/fs/cgroup" + os.fsdecode(found[1])) / "cgroup.events"
    try:
        return "frozen 1" in path.read_text()
    except (OSError, ValueError):
        return False


def words(pid: int) -> list[str]:
    """The words of a process' command line, printable; the last one may be cut off."""
    text = _read(pid, "cmdline").decode(errors="replace").removesuffix("\0")
    return [clean(word, len(word)) for word in text.split("\0")]


def command(pid: int) -> str:
    """The command line of a process."""
    return clean(" ".join(words(pid)).strip())


def owner(pid: int) -> int | None:
    """The real user of a process; None if it is gone. The owner of its files in /proc is another
    one if it cannot be traced."""
    found = re.search(rb"^Uid:\s+(\d+)\s", _read(pid, "status"), re.MULTILINE)
    return int(found[1]) if found else None


def look(pid: int) -> dict[str, Any] | None:
    """All of this about one process; None if it is gone."""
    told = stat(pid)
    if told is None:
        return None
    told["ran_s"], told["waited_s"] = _scheduled(pid)
    told["swapped_bytes"] = _swapped(pid)
    told["frozen"] = _frozen(pid)
    told["command"] = command(pid)
    told["uid"] = owner(pid)
    told.update(rank_of(environment(pid)))
    return told


def parents() -> dict[int, int]:
    """Every process and its parent."""
    found = {}
    for each in PROC.iterdir():
        if each.name.isdigit() and (told := stat(int(each.name))) is not None:
            found[int(each.name)] = told["parent"]
    return found


def below(pid: int) -> set[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for each, parent in parents().items():
        children.setdefault(parent, []).append(each)
    found, waiting = {pid}, [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def network(pid: int) -> int | None:
    """The network namespace of a process; None if it is gone, or another user's."""
    try:
        return (PROC / str(pid) / "ns" / "net").stat().st_ino
    except OSError:
        return None


def ranks() -> set[int]:
    """The processes that a launcher calls ranks, and what these have started themselves: variables
    are inherited."""
    return {pid for pid in parents() if rank_of(environment(pid))["rank"] is not None}
