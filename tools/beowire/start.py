#!/usr/bin/python3 -PS
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first that Python executes, by `python -S` and this file's name: Ctrl-C that comes while the
modules are still being found ends the process as it ends any other program, without a traceback."""

# The built-in part of `signal`, which takes time to load.
import _signal  # type: ignore[import-not-found]

_RAISES = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
"""Else it is ignored, as in a shell's background jobs, and remains so."""
if _RAISES:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import os  # noqa: E402
import sys  # noqa: E402

_HERE = os.path.realpath(__file__).rpartition("/")[0]
"""The package itself; the command of an installation is a link to this file in it."""
if os.access(f"{_HERE}/installed.json", os.F_OK):
    sys.path.insert(0, _HERE.rpartition("/")[0])

if __name__ == "__main__" and sys.argv[1:] == ["--version"]:
    sys.path.insert(0, _HERE.rpartition("/")[0])  # that of a checkout is found by site alone
    from beowire import __version__

    print(f"beowire {__version__}")  # scripts ask that often: nothing else is loaded
    sys.exit(0)

import site  # noqa: E402

site.main()  # what -S left out: the environment with its packages

from beowire.__main__ import main  # noqa: E402

if __name__ == "__main__":
    main(raise_interruptions=_RAISES)
