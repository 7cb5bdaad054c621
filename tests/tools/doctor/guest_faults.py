# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs in a virtual machine of its own, whose settings it may change as a whole: plants faults that
a network namespace cannot show, finds them, fixes them, takes the fixes back.

Prints a JSON object: for each fault what went wrong, or an empty text. The machine was booted with
four processors and the NIC that the command line names as eth0. With an e1000e it has the
parameters in BOOT, and all faults are tried; with another NIC those of a NIC.
"""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from beowire.doctor import fix, journal
from beowire.doctor.examine import Outcome, State, examine
from beowire.doctor.journal import Journal
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Source
from faults import MACHINE
from good_node import GoodNode
from pyroute2 import IPRoute

BOOT = "preempt=full nohz_full=3 init_on_alloc=1 psi=1"
BOOTED = ("kernel.preemption", "kernel.isolation", "kernel.hardening", "accounting.pressure")
_CLOCK = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_HUGE = "/sys/kernel/mm/transparent_hugepage"
_RINGS = 4096
_WITHOUT = {
    "kernel.watchdog",
    "memory.balancing",
    "memory.reclaim",
    "memory.swappiness",  # a guest has no swap
    "napi.budget_time",
}

Plant = Callable[[], contextlib.AbstractContextManager[None]]
FAULTS: dict[str, Plant] = {}


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def file_fault(path: str, bad: str, good: str) -> Plant:
    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        write(path, bad)
        yield
        write(path, good)

    return plant


def nic_fault(*settings: tuple[str, str, int, int]) -> Plant:
    """Of kind, name, bad and good value."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        source = Source()
        for kind, name, bad, _ in settings:
            source.set_ethtool("eth0", kind, name, bad)
        yield
        for kind, name, _, good in settings:
            source.set_ethtool("eth0", kind, name, good)
        source.close()

    return plant


def process_fault(name: str, nice: int = 0, **variables: str) -> Plant:
    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory, name)
            shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
            command = ["nice", "-n", str(nice), str(program), "1000"]
            process = subprocess.Popen(command, env=os.environ | variables)
            while Path(f"/proc/{process.pid}/comm").read_text().strip() != name:
                pass
            try:
                yield
            finally:
                process.kill()
                process.wait()

    return plant


def limit_fault(which: int, bad: int) -> Plant:
    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        old = resource.getrlimit(which)
        resource.setrlimit(which, (bad, bad))
        yield
        resource.setrlimit(which, old)

    return plant


def group_fault(name: str, text: str) -> Plant:
    """The caller in a control group of its own with this setting."""

    @contextlib.contextmanager
    def plant() -> Iterator[None]:
        root = Path("/sys/fs/cgroup")
        group = root / "planted"
        group.mkdir()
        write(str(group / name), text)
        write(str(group / "cgroup.procs"), str(os.getpid()))
        yield
        write(str(root / "cgroup.procs"), str(os.getpid()))
        group.rmdir()

    return plant


@contextlib.contextmanager
def small_mtu() -> Iterator[None]:
    with IPRoute() as route:
        index = route.link_lookup(ifname="eth0")[0]
        route.link("set", index=index, mtu=1500)
        yield
        route.link("set", index=index, mtu=9000)


def settable() -> Iterator[tuple[str, str, str, str]]:
    """The machine's sysctls that this one has: check, path, bad and good value. An emulated
    processor has no counters for a watchdog, one NUMA node has nothing to balance, and Linux 6.1
    takes no less time for polling than two of its ticks."""
    good = GoodNode("latency").files
    for name, setting, bad in MACHINE:
        path = f"/proc/sys/{setting}"
        if name not in _WITHOUT and Path(path).exists():
            yield name, path, bad, good[path]


def collect_nic(nic: str) -> None:
    """What of a NIC can be wrong; each driver has some of it."""
    FAULTS["rings.receive"] = nic_fault(("rings", "rx", 256, _RINGS))
    FAULTS["rings.send"] = nic_fault(("rings", "tx", 256, _RINGS))
    FAULTS["link.mtu"] = small_mtu
    FAULTS["offloads.checksum_receive"] = nic_fault(("features", "rx-checksum", 0, 1))
    FAULTS["offloads.gso"] = nic_fault(("features", "tx-generic-segmentation", 0, 1))
    FAULTS["offloads.gro"] = nic_fault(("features", "rx-gro", 0, 1))
    FAULTS["offloads.tso"] = nic_fault(("features", "tx-tcp-segmentation", 0, 1))
    if nic == "e1000e":
        FAULTS["coalescing.adaptive"] = nic_fault(("coalesce", "rx-usecs", 3, 0))
        FAULTS["coalescing.receive_short"] = nic_fault(("coalesce", "rx-usecs", 100, 0))
        FAULTS["link.pause"] = nic_fault(("pause", "autoneg", 1, 0), ("pause", "tx", 1, 0))


def collect() -> None:
    """What of a machine can be wrong."""
    for name, path, bad, good in settable():
        FAULTS[name] = file_fault(path, bad, good)
    FAULTS["memory.huge_pages"] = file_fault(f"{_HUGE}/enabled", "never", "madvise")
    FAULTS["memory.defragmentation"] = file_fault(f"{_HUGE}/defrag", "always", "madvise")
    FAULTS["clock.source"] = file_fault(_CLOCK, "hpet", "tsc")
    FAULTS["cpu.offline"] = file_fault("/sys/devices/system/cpu/cpu2/online", "0", "1")
    FAULTS["interrupts.balancer"] = process_fault("irqbalance")
    FAULTS["accounting.audit"] = process_fault("auditd")
    FAULTS["jobs.priority"] = process_fault("rank", nice=5, OMPI_COMM_WORLD_RANK="0")
    FAULTS["limits.locked_memory"] = limit_fault(resource.RLIMIT_MEMLOCK, 65536)
    FAULTS["limits.files"] = limit_fault(resource.RLIMIT_NOFILE, 1024)
    FAULTS["limits.priority"] = limit_fault(resource.RLIMIT_RTPRIO, 0)
    FAULTS["groups.quota"] = group_fault("cpu.max", "90000 100000")
    FAULTS["groups.memory"] = group_fault("memory.high", "800000000")


def prepare() -> None:
    """The machine as a person would set it up."""
    for _, path, _, good in settable():
        write(path, good)
    for name in ("enabled", "defrag"):
        write(f"{_HUGE}/{name}", "madvise")
    write(_CLOCK, "tsc")
    with IPRoute() as route:
        route.link("add", ifname="br0", kind="bridge")
    for which, least in ((resource.RLIMIT_MEMLOCK, 2**30), (resource.RLIMIT_NOFILE, 65536)):
        resource.setrlimit(which, (least, least))
    resource.setrlimit(resource.RLIMIT_RTPRIO, (99, 99))
    if not Path("/sys/fs/cgroup/cgroup.procs").exists():
        subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
    write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu +memory")


def prepare_nic(nic: str) -> None:
    settings = [("rings", "rx", _RINGS), ("rings", "tx", _RINGS)]
    if nic == "e1000e":
        settings += [("pause", "autoneg", 0), ("pause", "rx", 0), ("pause", "tx", 0)]
        settings += [("coalesce", "rx-usecs", 0)]
    source = Source()
    for kind, name, value in settings:
        source.set_ethtool("eth0", kind, name, value)
    source.close()
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="eth0")[0], mtu=9000, state="up")


def look(name: str) -> Outcome:
    source = Source()
    check = ALL[name]
    try:
        node = Node(source, min(check.goals, key=lambda each: each is not Goal.LATENCY))
        (outcome,) = examine(node, [check], ["eth0"]).outcomes
        return outcome
    finally:
        source.close()


def tried(name: str, plant: Plant) -> str:
    """What is wrong with the check; empty: nothing."""
    if (before := look(name)).state is not State.GOOD:
        return f"not good before: {before.state}, {before.said}"
    with plant():
        outcome = look(name)
        if outcome.bad is None:
            return f"not found: {outcome.state}, {outcome.said}"
        if outcome.bad.changes and (wrong := fixed(outcome)):
            return wrong
    if (after := look(name)).state is not State.GOOD:
        return f"not good after: {after.state}, {after.said}"
    return ""


def fixed(outcome: Outcome) -> str:
    source = Source()
    assert outcome.bad is not None
    settings = [change.setting for change in outcome.bad.changes]
    try:
        before = [each.read(source) for each in settings]
        node = Node(source, min(outcome.check.goals, key=lambda each: each is not Goal.LATENCY))
        node.interfaces = tuple(each for each in node.all_interfaces() if each.name == "eth0")
        log = Journal(source, "fix")
        steps = list(fix.apply(source, node, [outcome], log))
        log.close()
        if (now := look(outcome.check.name)).state is not State.GOOD:
            return f"not fixed: {now.said}; {steps}"
        back = list(fix.undo(source, journal.read(log.path)))
        if [each.read(source) for each in settings] != before:
            return f"not undone: {back}"
        return ""
    finally:
        source.close()


def main(nic: str) -> None:
    prepare_nic(nic)
    collect_nic(nic)
    if nic == "e1000e":
        prepare()
        collect()
    job = subprocess.Popen(["sleep", "1000"], env=os.environ | {"PMI_RANK": "1"})
    results = {}
    for name, plant in FAULTS.items():
        try:
            results[name] = tried(name, plant)
        except OSError as error:
            results[name] = f"{error!r}: {traceback.format_exc().splitlines()[-4:]}"
    for name in BOOTED if nic == "e1000e" else ():
        outcome = look(name)
        results[name] = "" if outcome.bad else f"not found: {outcome.state}, {outcome.said}"
    job.kill()
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
