# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of monitoring, accounting and control groups [A8]: reported, never fixed."""

from beowire.doctor.check import Bad, Check, Fix, Good, NotApplicable, Sure, Verdict, Weight
from beowire.doctor.node import Node
from beowire.doctor.processes import jobs, named
from beowire.doctor.rules import exactly, sysctl
from beowire.doctor.words import counted

_SYSCTL = "kernel: admin-guide/sysctl/kernel.rst"
_GROUPS = "kernel: admin-guide/cgroup-v2.rst"
_OLD_GROUPS = "kernel: admin-guide/cgroup-v1/memory.rst"
_ROOT = "/sys/fs/cgroup"
_OWN = "/proc/self/cgroup"
_UNLIMITED_BYTES = 1 << 62
"""Version 1 has no word for no limit, but the largest number of pages (PAGE_COUNTER_MAX)."""


def own_groups(node: Node, controller: str) -> list[str]:
    """The directories of the caller's control group and of those above it: of version 2, and those
    of version 1 with this controller."""
    found = []
    for line in node.text(_OWN).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            bases, mark = (_ROOT, f"{_ROOT}/unified"), "cgroup.controllers"
        elif controller in controllers.split(","):
            bases, mark = (f"{_ROOT}/{controllers}", f"{_ROOT}/{controller}"), "notify_on_release"
        else:
            continue
        base = next((each for each in bases if node.exists(f"{each}/{mark}")), None)
        if base is None:
            continue
        parts = [part for part in path.split("/") if part]
        if ".." in parts:
            raise NotApplicable("the control group lies outside of what is seen here")
        found += [base + "".join(f"/{part}" for part in parts[:n]) for n in range(len(parts) + 1)]
    if not found:
        raise NotApplicable("no control groups are to be seen")
    return found


def _name(group: str) -> str:
    return group.removeprefix(_ROOT) or "/"


def _throttled(node: Node, group: str) -> int:
    pairs = (line.split() for line in node.text(f"{group}/cpu.stat").splitlines())
    return next((int(value) for name, value in pairs if name == "nr_throttled"), 0)


def _quota(node: Node) -> Verdict:
    limited = []
    for group in own_groups(node, "cpu"):
        new, old = f"{group}/cpu.max", f"{group}/cpu.cfs_quota_us"
        if (node.exists(new) and not node.text(new).startswith("max")) or (
            node.exists(old) and node.number(old) > 0
        ):
            limited.append(group)
    if not limited:
        return Good("no quota of processor time")
    throttled = sum(_throttled(node, group) for group in limited)
    names = ", ".join(map(_name, limited))
    advice = "Give the job's group no quota (CPUQuota= of its unit, or the batch system's limits)."
    return Bad(f"quota in {names}, stopped {counted(throttled, 'time')}", "none", advice=advice)


def _memory(node: Node) -> Verdict:
    for group in own_groups(node, "memory"):
        high, limit = f"{group}/memory.high", f"{group}/memory.limit_in_bytes"
        if node.exists(high) and node.text(high).strip() != "max":
            advice = "MemoryHigh= of the unit slows its processes down; use MemoryMax= alone."
            return Bad(f"memory.high set in {_name(group)}", "max", advice=advice)
        if node.exists(limit) and node.number(limit) < _UNLIMITED_BYTES:
            advice = (
                "Let the limit leave room for files that the job reads and writes: they count, and "
                "at the limit each allocation has to make room first."
            )
            read = f"memory.limit_in_bytes set in {_name(group)}"
            return Bad(read, "none", advice=advice, weight=Weight.SLIGHT)
    return Good("no group slows down for memory")


def _audit(node: Node) -> Verdict:
    if not named(node, "auditd"):
        return Good("auditd does not run")
    advice = "If your rules allow it: no rules for system calls on nodes that compute."
    return Bad("auditd runs", "no auditing of system calls", advice=advice)


def _pressure(node: Node) -> Verdict:
    if not node.exists("/proc/pressure/cpu"):
        return Good("pressure is not measured")
    advice = "Add psi=0 to the kernel's command line, unless something uses it (systemd-oomd does)."
    return Bad("pressure is measured at each switch of tasks", "psi=0", advice=advice)


def _priority(node: Node) -> Verdict:
    running = [each for each in jobs(node) if each.rank]
    if not running:
        raise NotApplicable("no job runs")
    slow = [f"{each.name} ({each.pid})" for each in running if each.nice > 0]
    if not slow:
        return Good(f"{counted(len(running), 'rank')} at ordinary priority or above")
    advice = "Start jobs without nice; renice -n 0 -p PID for those that run."
    return Bad(f"niced down: {', '.join(slow[:5])}", "ordinary priority or above", advice=advice)


CHECKS = (
    Check(
        name="groups.quota",
        title="No quota of processor time holds here",
        why="A process that used up its share waits for the next period, up to 100 ms, and all "
        "its partners with it.",
        sources=("[A8]", _GROUPS, "kernel: scheduler/sched-bwc.rst"),
        reads=(_OWN, *(f"{_ROOT}/*/cpu.{each}" for each in ("max", "cfs_quota_us", "stat"))),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_quota,
    ),
    Check(
        name="groups.memory",
        title="No control group slows its processes down for memory",
        why="Beyond memory.high each allocation, of frames too, is put to sleep.",
        sources=("[A8]", _GROUPS, _OLD_GROUPS),
        reads=(_OWN, f"{_ROOT}/*/memory.high", f"{_ROOT}/*/memory.limit_in_bytes"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_memory,
    ),
    Check(
        name="accounting.audit",
        title="System calls are not audited",
        why="With rules loaded each system call goes the slow way.",
        sources=("[A8]",),
        reads=("/proc/*/comm",),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_audit,
    ),
    Check(
        name="accounting.pressure",
        title="Pressure stall information is off",
        why="It costs at each switch of tasks and each wake-up.",
        sources=("[A8]", "kernel: accounting/psi.rst"),
        reads=("/proc/pressure/cpu",),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_pressure,
    ),
    *(
        sysctl(
            f"accounting.{name}",
            f"kernel.{setting}",
            exactly(0),
            title=title,
            why=why,
            sources=("[A8]", _SYSCTL),
            sure=Sure.DOCUMENTED,
            weight=Weight.SLIGHT,
            fix=Fix.REPORT,
        )
        for name, setting, title, why in (
            (
                "scheduler",
                "sched_schedstats",
                "The scheduler keeps no statistics",
                "They are updated at each switch of tasks.",
            ),
            (
                "delays",
                "task_delayacct",
                "Delays of tasks are not accounted",
                "Clocks are read at each wait.",
            ),
            (
                "programs",
                "bpf_stats_enabled",
                "Run times of BPF programs are not measured",
                "Clocks are read twice for each run, at worst for each frame.",
            ),
        )
    ),
    Check(
        name="jobs.priority",
        title="Jobs are not niced down",
        why="A niced rank gives way to everything else, and all others wait for it.",
        sources=("[A9]",),
        reads=("/proc/*/environ", "/proc/*/maps", "/proc/*/stat"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_priority,
    ),
)
