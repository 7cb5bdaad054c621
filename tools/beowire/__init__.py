# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The one command: labs, runs, measurements, demonstration and tests.

Each topic is a package of its own and each noun a module; here lies what all share. A module `cli`,
or `noun_cli`, holds only a command line.
"""

__version__ = "0.1.0"
