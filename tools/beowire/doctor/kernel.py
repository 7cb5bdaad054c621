# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of how the kernel was built and started [A8]."""

import re

from beowire.doctor.check import (
    LATENCY,
    Bad,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Node, parse_cpus
from beowire.doctor.rules import exactly, sysctl
from beowire.doctor.words import counted

_PARAMETERS = "kernel: admin-guide/kernel-parameters.txt"
_SYSCTL = "kernel: admin-guide/sysctl/kernel.rst"
_TICKLESS = "kernel: timers/no_hz.rst"
_CPU = "/sys/devices/system/cpu"
_CONFIGS = ("/proc/config.gz", "/boot/config-RELEASE", "/lib/modules/RELEASE/config")
_LIVE_MODEL = "/sys/kernel/debug/sched/preempt"
_LAZY_SINCE = (6, 13)
_SLOW_OPTIONS = (
    "KASAN",
    "KCSAN",
    "KMEMLEAK",
    "PROVE_LOCKING",
    "LOCK_STAT",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_PAGEALLOC",
    "DEBUG_OBJECTS",
    "SLUB_DEBUG_ON",
    "UBSAN_ALIGNMENT",
    "KCOV",
    "GCOV_KERNEL",
)


def options(node: Node) -> dict[str, str]:
    """The kernel's configuration without the prefix CONFIG_; NotApplicable where it is not here."""
    for place in _CONFIGS:
        path = place.replace("RELEASE", node.release)
        if node.exists(path):
            pairs = (line.partition("=") for line in node.text(path).splitlines())
            return {
                name.removeprefix("CONFIG_"): value
                for name, _, value in pairs
                if name.startswith("CONFIG_")
            }
    raise NotApplicable("the kernel's configuration is not here")


def preemption(node: Node) -> str:
    """The model in force: none, voluntary, full, lazy or rt."""
    if node.exists(_LIVE_MODEL) and (found := re.search(r"\((\w+)\)", node.text(_LIVE_MODEL))):
        return found[1]
    built = options(node)
    if built.get("PREEMPT_RT") == "y":
        return "rt"
    given = node.parameter("preempt")
    if given and built.get("PREEMPT_DYNAMIC") == "y":
        return given
    for option, name in (("PREEMPT_LAZY", "lazy"), ("PREEMPT_NONE", "none")):
        if built.get(option) == "y":
            return name
    return "voluntary" if built.get("PREEMPT_VOLUNTARY") == "y" else "full"


def _preemption(node: Node) -> Verdict:
    model = preemption(node)
    good = ("none", "lazy") if node.kernel >= _LAZY_SINCE else ("none",)
    if model in good:
        return Good(f"preemption model {model}")
    weight = Weight.SLIGHT if model == "voluntary" else Weight.COSTLY
    # The file is there only where the model can be chosen.
    dynamic = node.exists(_LIVE_MODEL) or options(node).get("PREEMPT_DYNAMIC") == "y"
    advice = f"Add preempt={good[-1]} to the kernel's command line."
    if not dynamic:
        advice = "Use a kernel built with CONFIG_PREEMPT_NONE or CONFIG_PREEMPT_DYNAMIC."
    return Bad(f"preemption model {model}", " or ".join(good), advice=advice, weight=weight)


def _tickless(node: Node) -> Verdict:
    if len(node.cpus()) < 4:
        raise NotApplicable("there are fewer than four processors; one has to keep the tick")
    built = options(node)
    if built.get("NO_HZ_FULL") != "y":
        advice = "Use a kernel built with CONFIG_NO_HZ_FULL."
        return Bad("the kernel ticks on all processors", "NO_HZ_FULL", advice=advice)
    without = _listed(node, f"{_CPU}/nohz_full")
    if without:
        return Good(f"{counted(len(without), 'processor')} without ticks")
    advice = "Add nohz_full=1-N to the kernel's command line for the processors that compute."
    return Bad("all processors tick", "those that compute do not", advice=advice)


def _isolation(node: Node) -> Verdict:
    without = _listed(node, f"{_CPU}/nohz_full")
    if not without:
        raise NotApplicable("no processor is free of ticks")
    isolated = _listed(node, f"{_CPU}/isolated")
    bare = sorted(set(without) - set(isolated))
    callbacks = parse_cpus(node.parameter("rcu_nocbs") or "")
    if not bare or set(without) <= set(callbacks):
        return Good(f"left alone: {counted(len(without), 'processor')} without ticks")
    advice = "Add isolcpus=managed_irq,domain,LIST rcu_nocbs=LIST for the processors of nohz_full."
    return Bad(f"{len(bare)} of them get other work", "left alone", advice=advice)


def _listed(node: Node, path: str) -> list[int]:
    """Processors listed in a file; none where it is missing or says (null)."""
    if not node.exists(path):
        return []
    text = node.text(path).strip()
    return [] if text == "(null)" else parse_cpus(text)


def _debugging(node: Node) -> Verdict:
    built = options(node)
    found = [each for each in _SLOW_OPTIONS if built.get(each) == "y"]
    if not found:
        return Good("no option that looks for defects")
    advice = "Boot the distribution's ordinary kernel."
    return Bad(f"built with {', '.join(found)}", "none of them", advice=advice)


def _memory_protection(node: Node) -> Verdict:
    found = [
        word
        for word in node.command_line
        if word in {"init_on_alloc=1", "init_on_free=1", "iommu.strict=1", "slub_debug", "debug"}
        or word.startswith(("page_poison=1", "slub_debug="))
    ]
    if not found:
        return Good("no parameter that slows memory down")
    advice = "Take them off the command line, if your security rules allow it."
    return Bad(f"started with {', '.join(found)}", "none of them", advice=advice)


CHECKS = (
    Check(
        name="kernel.preemption",
        title="The kernel does not preempt itself",
        why="Each preemption in the stack takes the processor from a message under way.",
        sources=("[A8]", _PARAMETERS),
        reads=(_LIVE_MODEL, *_CONFIGS, "/proc/cmdline"),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        fix=Fix.REBOOT,
        look=_preemption,
    ),
    Check(
        name="kernel.tickless",
        title="Processors that compute have no timer ticks",
        why="Ticks interrupt computing; the slowest rank is the one all wait for. Each system "
        "call gets a little slower by it: measure.",
        sources=("[A8]", _TICKLESS),
        reads=(f"{_CPU}/nohz_full", *_CONFIGS),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REBOOT,
        goals=LATENCY,
        look=_tickless,
    ),
    Check(
        name="kernel.isolation",
        title="Processors without ticks are left alone",
        why="Other work and callbacks on them bring the ticks back.",
        sources=(_TICKLESS, _PARAMETERS),
        reads=(f"{_CPU}/nohz_full", f"{_CPU}/isolated", "/proc/cmdline"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REBOOT,
        look=_isolation,
    ),
    Check(
        name="kernel.debugging",
        title="The kernel is not one that looks for defects",
        why="Such a kernel takes several times as long for each frame.",
        sources=("kernel: dev-tools/index.rst",),
        reads=_CONFIGS,
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REBOOT,
        look=_debugging,
    ),
    Check(
        name="kernel.hardening",
        title="The kernel does not clear memory for safety's sake",
        why="Each buffer of each frame is cleared or unmapped once more.",
        sources=(_PARAMETERS,),
        reads=("/proc/cmdline",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_memory_protection,
    ),
    sysctl(
        "kernel.watchdog",
        "kernel.nmi_watchdog",
        exactly(0),
        title="No watchdog interrupts all processors",
        why="It takes a performance counter and an interrupt on each processor every few seconds.",
        sources=("kernel: admin-guide/lockup-watchdogs.rst",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        goals=LATENCY,
    ),
    sysctl(
        "kernel.autogroup",
        "kernel.sched_autogroup_enabled",
        exactly(0),
        title="Priorities hold across sessions",
        why="With groups by session a job's nice value counts within its own session only.",
        sources=("[A9]", "man: sched(7)"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
)
