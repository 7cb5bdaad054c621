# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The programs over the kernel link are those of its own tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "kernel" / "link"))
