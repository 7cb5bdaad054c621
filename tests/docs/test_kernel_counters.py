# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/kernel-module.md has each counter of /proc/net/beowire/node, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def written(code: str) -> set[str]:
    """The counters that the function which writes the file names."""
    _, _, shown = code.partition("static int bwk_proc_show_node(")
    function, _, _ = shown.partition("\n}\n")
    texts = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', function))
    return set(re.findall(r"([a-z-]+) %lu$", texts.replace(r"\n", "\n"), re.MULTILINE))


def documented(page: str) -> set[str]:
    """Those in the first column of the page's table of counters."""
    match = re.search(r"^\| counter \|.*\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert match is not None
    cells = re.findall(r"^\| ([^|]*) \|", match[1], re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_counters_of_a_node() -> None:
    counters = written((ROOT / "hosts" / "kernel" / "proc.c").read_text())
    assert len(counters) > 15
    assert documented((ROOT / "docs" / "kernel-module.md").read_text()) == counters


def test_a_counter_that_is_missing_is_noticed() -> None:
    page = "| counter | what |\n|---|---|\n| `a`, `b` | x `z` |\n"
    code = 'static int bwk_proc_show_node()\n{\n\tf("a %lu\\nb %lu\\n"\n\t  "c %lu\\n");\n}\n'
    assert written(code) == {"a", "b", "c"}
    assert documented(page) == {"a", "b"}
