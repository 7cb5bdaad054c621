# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the time of a run of the tests went, by folder."""

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


def by_folder(logs: Iterable[Path]) -> dict[str, float]:
    """Seconds that tests took, by the folder of those in Python and the suite of those compiled,
    the longest first. They add up to more than has passed where tests ran side by side."""
    found: defaultdict[str, float] = defaultdict(float)
    for log in logs:
        if log.exists():
            for element in ElementTree.parse(log).iter("testcase"):
                seconds = float(element.get("time") or 0)
                found[_folder(element.get("classname", ""), element.get("name", ""))] += seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _folder(owner: str, name: str) -> str:
    """tests.tools.test_x is in tests/tools; Meson tells the suite: "beowire:sim / x"."""
    if " / " in name:
        return f"suite {name.split(' / ')[0].partition(':')[2]}"
    parts = owner.split(".")
    names = [each for each in parts[1:] if each.startswith("test_")]
    return "/".join(parts[: parts.index(names[0])]) if names else owner or "other"


def table(folders: dict[str, float]) -> list[str]:
    """A line each."""
    return [f"{seconds:8.1f} s  {folder}" for folder, seconds in folders.items()]
