# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one command: labs, runs, measurements, demonstration and tests.

Each topic is a package of its own and each noun a module; here lies what all share. A module `cli`,
or `noun_cli`, holds only a command line.
"""

import os
import sys

__version__ = "0.1.0"

_VENDORED = f"{__path__[0].rpartition('/')[0]}/vendored"
"""Packages that the distribution lacks; only an installation has it (package/vendored.py)."""
if _VENDORED not in sys.path and os.access(_VENDORED, os.F_OK):
    sys.path.insert(0, _VENDORED)
