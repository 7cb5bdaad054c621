# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tests of the documents run commands as the tools' tests do."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
