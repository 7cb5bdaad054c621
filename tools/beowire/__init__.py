# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one command: labs, runs, measurements, demonstration and tests.

Each noun has a module of its own; a module `noun_cli` holds only its command line.
"""

__version__ = "0.1.0"
