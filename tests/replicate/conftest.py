# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests of programs that run from copies of their text."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
