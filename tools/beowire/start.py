# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The first that Python executes, by `python -S` and this file's name: Ctrl-C that comes while the
modules are still being found ends the process as it ends any other program, without a traceback."""

# The built-in part of `signal`, which takes time to load.
import _signal  # type: ignore[import-not-found]

_RAISES = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
"""Else it is ignored, as in a shell's background jobs, and remains so."""
if _RAISES:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

import site  # noqa: E402

site.main()  # what -S left out: the environment with its packages

from beowire.__main__ import main  # noqa: E402

if __name__ == "__main__":
    main(raise_interruptions=_RAISES)
