# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the time of a run of the tests went, by folder."""

import os
import resource
import time
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Time:
    """What tests took."""

    seconds: float = 0.0
    """They add up to more than has passed where tests ran side by side."""
    processor_s: float = 0.0
    """Of processors, in processes that were waited for; nobody counts that of compiled tests."""


def by_folder(logs: Iterable[Path]) -> dict[str, Time]:
    """By the folder of tests in Python and the suite of those compiled, the longest first."""
    found: defaultdict[str, Time] = defaultdict(Time)
    for log in logs:
        if log.exists():
            for element in ElementTree.parse(log).iter("testcase"):
                took = found[_folder(element.get("classname", ""), element.get("name", ""))]
                took.seconds += float(element.get("time") or 0)
                for each in element.iterfind("properties/property[@name='processor_s']"):
                    took.processor_s += float(each.get("value") or 0)
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def _folder(owner: str, name: str) -> str:
    """tests.tools.test_x is in tests/tools; Meson tells the suite: "beowire:sim / x"."""
    if " / " in name:
        return f"suite {name.split(' / ')[0].partition(':')[2]}"
    parts = owner.split(".")
    names = [each for each in parts[1:] if each.startswith("test_")]
    return "/".join(parts[: parts.index(names[0])]) if names else owner or "other"


def table(folders: dict[str, Time], whole: Time | None = None) -> list[str]:
    """A line each: by the clock, and of processors; and for all that was run, the tests' runners
    included."""
    rows = list(folders.items())
    if whole is not None:
        rows.append(("in all, by the clock and of processors", whole))
    return [
        f"{took.seconds:8.1f} s {took.processor_s or '-':>8{'.1f' if took.processor_s else ''}}  "
        f"{name}"
        for name, took in rows
    ]


def until_now() -> Time:
    """What this process took since it began, and what those took that it waited for, as their
    parents told of theirs: those whose parents did not wait for them are not in it."""
    took = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    began = time.clock_gettime(time.CLOCK_BOOTTIME) - _began_s()
    return Time(began, sum(each.ru_utime + each.ru_stime for each in took))


def _began_s() -> float:
    """When this process began, since the machine did: proc_pid_stat(5) has it behind the name."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    return int(fields[19]) / os.sysconf("SC_CLK_TCK")
