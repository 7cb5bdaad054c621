# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of the clock: what reads it, and whether it agrees with others."""

from beowire.doctor.check import (
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
from beowire.doctor.setting import FileSetting

_SOURCE = "/sys/devices/system/clocksource/clocksource0"
CURRENT = f"{_SOURCE}/current_clocksource"
_DOCUMENT = "kernel: timers/timekeeping.rst"
_FAST = ("tsc", "arch_sys_counter", "timebase", "kvm-clock", "hyperv_clocksource_tsc_page")
"""Read without a system call, the best first."""
_SLOW = ("hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen")
_OFFSET_US = 1000


def _source(node: Node) -> Verdict:
    setting = FileSetting(CURRENT)
    now = setting.read(node)
    here = node.text(f"{_SOURCE}/available_clocksource").split()
    better = next((each for each in _FAST if each in here), None)
    if now.strip() not in _SLOW:
        return Good(now.strip())
    if better is None:
        return Bad(
            now.strip(),
            "tsc",
            advice="The kernel found the processor's counter unsteady: see dmesg; update firmware.",
        )
    return Bad(now.strip(), better, (Change(setting, now, better),))


def _synchronized(node: Node) -> Verdict:
    clock = node.answer("clock")
    if clock["synchronized"]:
        return Good("synchronized")
    advice = "Run chrony or systemd-timesyncd; where others' logs are compared, PTP."
    return Bad("not synchronized", "synchronized", advice=advice)


def _offset(node: Node) -> Verdict:
    clock = node.answer("clock")
    if not clock["synchronized"]:
        raise NotApplicable("the clock is not synchronized")
    read = f"{clock['offset_us']:.0f} us off"
    if abs(clock["offset_us"]) <= _OFFSET_US:
        return Good(read)
    advice = "Look at its servers: chronyc sources, or timedatectl timesync-status."
    return Bad(read, f"at most {_OFFSET_US} us", advice=advice)


CHECKS = (
    Check(
        name="clock.source",
        title="Reading the clock takes no system call",
        why="With hpet or acpi_pm each reading takes about a microsecond; MPI_Wtime, timers and "
        "time stamps of frames read it all the time.",
        sources=(_DOCUMENT,),
        reads=(CURRENT, f"{_SOURCE}/available_clocksource"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.LIVE,
        look=_source,
    ),
    Check(
        name="clock.synchronized",
        title="The clock is synchronized",
        why="Logs and traces of nodes cannot be compared, and files seem to come from the future.",
        sources=("man: adjtimex(2)",),
        reads=("adjtimex(2)",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_synchronized,
    ),
    Check(
        name="clock.offset",
        title="The clock is near that of its servers",
        why="One-way times measured between nodes are wrong by as much.",
        sources=("man: adjtimex(2)",),
        reads=("adjtimex(2)",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_offset,
    ),
)
