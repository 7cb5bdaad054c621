# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where text for people goes: results to stdout, remarks and errors to stderr."""

import sys
from functools import cache

from rich.console import Console

_WIDTH_OF_FILES = 132


@cache
def out() -> Console:
    """Results; where there is no terminal, tables are as wide as they need."""
    width = None if sys.stdout.isatty() else _WIDTH_OF_FILES
    return Console(highlight=False, width=width)


@cache
def err() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """A remark beside the result."""
    err().print(f"beowire: {text}", markup=False)
