# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Budgets of instructions for a message, in budgets.toml: what they hold for, and new ones."""

import datetime
import json
import math
import os
import platform
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

BUDGETS = Path(__file__).with_name("budgets.toml")
ROOM = 0.02
"""What a message may cost above its budget."""


def compiler() -> str:
    """What the budgets hold for: the compiler's major version and the machine."""
    text = subprocess.run(["cc", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"^(cc|gcc|clang|.*clang version).* (\d+)\.\d+\.\d+", text, re.MULTILINE)
    assert found, text
    name = "clang" if "clang" in found[1] else "gcc"
    return f"{name}-{found[2]} {platform.machine()}"


def _quoted(text: str) -> str:
    """A string of TOML: as it is between apostrophes, unless it has one of its own."""
    return f"'{text}'" if "'" not in text else json.dumps(text)


def record(owner: str, name: str, found: int, why: str) -> None:
    """A new budget, in front of those before it."""
    budgets = tomllib.loads(BUDGETS.read_text())
    history = budgets.setdefault(owner, {}).setdefault(name, [])
    history.insert(0, f"{found}, {datetime.date.today().isoformat()}: {why}")
    head = BUDGETS.read_text().partition("\n[")[0].rstrip()
    lines = [head]
    for each_owner, rows in sorted(budgets.items()):
        lines += ["", f'["{each_owner}"]']
        for row, entries in sorted(rows.items()):
            quoted = ",\n".join("    " + _quoted(each) for each in entries)
            lines.append(f'"{row}" = [\n{quoted},\n]')
    BUDGETS.write_text("\n".join(lines) + "\n")


def asked() -> str:
    """Why there are to be new budgets; empty if there are not."""
    return os.environ.get("BEOWIRE_TEST_NEW_BUDGETS", "")


def limit(owner: str, name: str) -> float:
    """What a message may cost, ROOM above its budget; if there is to be a new one, anything."""
    if asked():
        return math.inf
    rows = tomllib.loads(BUDGETS.read_text()).get(owner)
    if rows is None:
        pytest.skip(f"no budgets for {owner}: write them by BEOWIRE_TEST_NEW_BUDGETS=why")
    return int(rows[name][0].partition(",")[0]) * (1 + ROOM)


def judge(owner: str, name: str, found: int, most: float) -> None:
    """Fails if a message costs more. `found` becomes the budget if there is to be a new one."""
    assert found <= most, f"{name}: {found} instructions, the limit is {most:.0f}"
    if asked():
        record(owner, name, found, asked())
