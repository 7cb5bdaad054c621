# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the time of a run of the tests went, by folder."""

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
                time = found[_folder(element.get("classname", ""), element.get("name", ""))]
                time.seconds += float(element.get("time") or 0)
                for each in element.iterfind("properties/property[@name='processor_s']"):
                    time.processor_s += float(each.get("value") or 0)
    return dict(sorted(found.items(), key=lambda item: -item[1].seconds))


def _folder(owner: str, name: str) -> str:
    """tests.tools.test_x is in tests/tools; Meson tells the suite: "beowire:sim / x"."""
    if " / " in name:
        return f"suite {name.split(' / ')[0].partition(':')[2]}"
    parts = owner.split(".")
    names = [each for each in parts[1:] if each.startswith("test_")]
    return "/".join(parts[: parts.index(names[0])]) if names else owner or "other"


def table(folders: dict[str, Time]) -> list[str]:
    """A line each: by the clock, and of processors."""
    return [
        f"{time.seconds:8.1f} s {time.processor_s or '-':>8{'.1f' if time.processor_s else ''}}  "
        f"{folder}"
        for folder, time in folders.items()
    ]
