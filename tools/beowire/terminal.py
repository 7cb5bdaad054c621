# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where text for people goes: results to stdout, remarks and errors to stderr."""

import sys
from functools import cache

from rich.console import Console


@cache
def out() -> Console:
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


@cache
def err() -> Console:
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str) -> None:
    """A remark beside the result."""
    err().print(f"beowire: {text}", markup=False)
