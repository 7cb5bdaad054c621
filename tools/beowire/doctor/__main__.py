# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The doctor alone, which starts sooner than the whole command: for many nodes of one machine."""

import sys

from beowire.doctor.cli import app
from beowire.errors import BeowireError
from beowire.terminal import note

try:
    app(prog_name="beowire doctor")
except BeowireError as error:
    note(str(error))
    sys.exit(error.code)
