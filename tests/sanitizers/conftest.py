# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs over the kernel link, and protocol servers, are those of their own tests."""

import sys
from pathlib import Path

for room in ("link", "server"):
    sys.path.append(str(Path(__file__).resolve().parents[1] / "kernel" / room))
