# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of the processors: frequency, sleep, and what is taken from them."""

from beowire.doctor.check import (
    LATENCY,
    Bad,
    Change,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Node
from beowire.doctor.rules import Rule, exactly, judged
from beowire.doctor.setting import FileSetting
from beowire.doctor.words import counted

_CPU = "/sys/devices/system/cpu"
_FREQUENCY = "kernel: admin-guide/pm/cpufreq.rst"
_IDLE = "kernel: admin-guide/pm/cpuidle.rst"
_PSTATE = "kernel: admin-guide/pm/intel_pstate.rst"
_WAKE_US = 10
_STOLEN_SHARE = 0.01
_STEAL = 7


def _policies(node: Node) -> list[str]:
    found = [each for each in node.listed(f"{_CPU}/cpufreq") if each.startswith("policy")]
    if not found:
        raise NotApplicable("the kernel does not set the frequency here")
    return [f"{_CPU}/cpufreq/{each}" for each in found]


def _all_read(node: Node, name: str, good: str, wrong: set[str] | None = None) -> Verdict:
    """All policies have `good` in the file, or at least none of `wrong`."""
    changes, seen = [], set()
    for policy in _policies(node):
        setting = FileSetting(f"{policy}/{name}")
        now = setting.read(node)
        seen.add(now.strip())
        if now.strip() != good and (wrong is None or now.strip() in wrong):
            changes.append(Change(setting, now, good))
    read = f"{name} {', '.join(sorted(seen))}"
    return Bad(read, good, tuple(changes)) if changes else Good(read)


def _governor(node: Node) -> Verdict:
    return _all_read(node, "scaling_governor", "performance")


def _preference(node: Node) -> Verdict:
    wrong = {"power", "balance_power", "default"}
    return _all_read(node, "energy_performance_preference", "performance", wrong)


def _limit(node: Node) -> Verdict:
    changes = []
    for policy in _policies(node):
        setting = FileSetting(f"{policy}/scaling_max_freq")
        most = node.number(f"{policy}/cpuinfo_max_freq")
        if node.number(setting.path) < most:
            changes.append(Change(setting, setting.read(node), str(most)))
    if not changes:
        return Good("no policy is limited below the processor's own frequency")
    shown = f"{int(changes[0].old)} of {changes[0].new} kHz"
    return Bad(
        f"{counted(len(changes), 'policy', 'policies')} limited, {shown}",
        "no limit",
        tuple(changes),
    )


def _boost(node: Node) -> Verdict:
    for path, good in (
        (f"{_CPU}/intel_pstate/no_turbo", 0),
        (f"{_CPU}/cpufreq/boost", 1),
    ):
        if node.exists(path):
            return judged(node, FileSetting(path), exactly(good))
    raise NotApplicable("the processor has no boost to switch")


def _sleep(node: Node) -> Verdict:
    changes, deepest = [], (0, "")
    for cpu in node.cpus():
        base = f"{_CPU}/cpu{cpu}/cpuidle"
        for state in node.listed(base):
            if not state.startswith("state"):
                continue
            wake_us = node.number(f"{base}/{state}/latency")
            setting = FileSetting(f"{base}/{state}/disable")
            if wake_us > _WAKE_US and node.number(setting.path) == 0:
                deepest = max(deepest, (wake_us, node.text(f"{base}/{state}/name").strip()))
                changes.append(Change(setting, setting.read(node), "1"))
    if not changes:
        return Good(f"no state that takes more than {_WAKE_US} us to leave")
    read = f"{deepest[1]} takes {deepest[0]} us to leave"
    return Bad(read, f"at most {_WAKE_US} us", tuple(changes))


def _throttled(node: Node) -> Verdict:
    count = 0
    seen = False
    for cpu in node.cpus():
        path = f"{_CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"
        if node.exists(path):
            seen = True
            count += node.number(path)
    if not seen:
        raise NotApplicable("the processor does not count it")
    if not count:
        return Good("never throttled")
    advice = "Look at fans, filters and the air of the room."
    return Bad(f"throttled {count} times since boot", "never", advice=advice)


def _stolen(node: Node) -> Verdict:
    fields = [int(each) for each in node.text("/proc/stat").splitlines()[0].split()[1:]]
    share = fields[_STEAL] / max(sum(fields[: _STEAL + 1]), 1)
    read = f"{share:.1%} of the time"
    if share <= _STOLEN_SHARE:
        return Good(read)
    advice = "Give the guest processors of its own on its host."
    return Bad(read, f"at most {_STOLEN_SHARE:.0%}", advice=advice)


def _offline(node: Node) -> Verdict:
    online, present = node.text(f"{_CPU}/online").strip(), node.text(f"{_CPU}/present").strip()
    rule = Rule(present, lambda text: text.strip() == present, lambda _: present)
    if rule.holds(online):
        return Good(f"processors {online}")
    advice = f"echo 1 > {_CPU}/cpuN/online for those that are missing"
    return Bad(f"processors {online} of {present}", present, advice=advice)


CHECKS = (
    Check(
        name="cpu.governor",
        title="The processors run at full frequency",
        why="A processor that waits for messages looks idle to the governor and is slowed down.",
        sources=(_FREQUENCY,),
        reads=(f"{_CPU}/cpufreq/policy*/scaling_governor",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look=_governor,
    ),
    Check(
        name="cpu.preference",
        title="The processors prefer performance to energy",
        why="The processor's own governor is slow to speed up for short messages.",
        sources=(_PSTATE,),
        reads=(f"{_CPU}/cpufreq/policy*/energy_performance_preference",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_preference,
    ),
    Check(
        name="cpu.limit",
        title="The frequency is not limited",
        why="All that a node does for a message takes longer by as much.",
        sources=(_FREQUENCY,),
        reads=(
            f"{_CPU}/cpufreq/policy*/scaling_max_freq",
            f"{_CPU}/cpufreq/policy*/cpuinfo_max_freq",
        ),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look=_limit,
    ),
    Check(
        name="cpu.boost",
        title="The processors may boost",
        why="Single-threaded work, such as a message's way through the stack, gains most by it.",
        sources=(_FREQUENCY, _PSTATE),
        reads=(f"{_CPU}/intel_pstate/no_turbo", f"{_CPU}/cpufreq/boost"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_boost,
    ),
    Check(
        name="cpu.sleep",
        title="Idle processors sleep lightly",
        why="Leaving a deep state takes longer than a short message's way through the wire.",
        sources=(_IDLE,),
        reads=(f"{_CPU}/cpu*/cpuidle/state*/latency", f"{_CPU}/cpu*/cpuidle/state*/disable"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        goals=LATENCY,
        look=_sleep,
    ),
    Check(
        name="cpu.throttled",
        title="The processors are not too hot",
        why="A node that throttles makes all others wait at the next exchange.",
        sources=("kernel: admin-guide/thermal/",),
        reads=(f"{_CPU}/cpu*/thermal_throttle/core_throttle_count",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_throttled,
    ),
    Check(
        name="cpu.stolen",
        title="The hypervisor takes no time from the node",
        why="A guest that does not run answers nobody, and all others wait for it.",
        sources=("kernel: filesystems/proc.rst",),
        reads=("/proc/stat",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_stolen,
    ),
    Check(
        name="cpu.offline",
        title="All processors are online",
        why="Ranks share those that are left.",
        sources=("kernel: core-api/cpu_hotplug.rst",),
        reads=(f"{_CPU}/online", f"{_CPU}/present"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look=_offline,
    ),
)
