# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The machine that measured: what explains its figures, and a mark that tells it from others."""

import hashlib
import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from beowire import installed, places
from beowire.bench.pingpong import machine

_ID = Path("/etc/machine-id")
_MARK = 12
"""Characters: enough to tell machines apart, and nothing is learned of them."""


def find() -> dict[str, Any]:
    """What stays the same from one run to the next."""
    try:
        identity = _ID.read_text().strip() or platform.node()
    except OSError:
        identity = platform.node()
    mark = hashlib.sha256(f"beowire evidence {identity}".encode()).hexdigest()[:_MARK]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return {"mark": mark, "processor": _processor(), "memory_gib": memory, **machine()}


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.machine()


def load() -> float:
    """Threads that run or want to, over the last minute."""
    return os.getloadavg()[0]


def commit() -> str:
    """Of the checkout; empty for an installation."""
    if installed.directories() is not None:
        return ""
    words = ["git", "-C", str(places.root()), "rev-parse", "--short=12", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
