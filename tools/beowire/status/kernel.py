# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel module tells of its sockets and ports in this network namespace, and what these
have dropped."""

import re
from pathlib import Path
from typing import Any

from beowire.status.processes import clean

PLACE = Path("/proc/thread-self/net/beowire")
_ROWS_MAX = 4096
_DROPS = "drops."


def _value(word: str) -> int | str:
    return int(word) if word.lstrip("-").isdecimal() else clean(word)


def table(text: str) -> list[dict[str, int | str]]:
    """The rows below a line of names."""
    lines = text.splitlines()[: _ROWS_MAX + 1]
    names = [name.replace("-", "_") for name in lines[0].split()] if lines else []
    rows = [line.split() for line in lines[1:]]
    return [
        dict(zip(names, map(_value, row), strict=True)) for row in rows if len(row) == len(names)
    ]


def _read(name: str) -> str:
    try:
        return (PLACE / name).read_text(errors="replace")
    except OSError:
        return ""


def _numbers(text: str) -> dict[str, int]:
    """Lines of a name and a number."""
    pairs = [line.split() for line in text.splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def look() -> dict[str, Any] | None:
    """The module's node, counters, ports and sockets; None where it is not loaded."""
    said = _read("node")
    if not said:
        return None
    pairs = [line.split(None, 1) for line in said.splitlines()]
    counted = _numbers(_read("counters"))
    return {
        "node": {
            pair[0].replace("-", "_"): _value(pair[1].strip())
            for pair in pairs
            if len(pair) == 2 and pair[0] != "interface"
        },
        "interfaces": [clean(pair[1]) for pair in pairs if pair[0] == "interface"],
        "counters": {name: n for name, n in counted.items() if not name.startswith(_DROPS)},
        "drops": {
            name.removeprefix(_DROPS): n for name, n in counted.items() if name.startswith(_DROPS)
        },
        "ports": table(_read("ports")),
        # Where a socket is connected to is two words below one name.
        "sockets": table(re.sub(r"\bto\b", "to to-port", _read("sockets"), count=1)),
    }
