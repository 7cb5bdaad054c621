# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where text for people goes: results to stdout, remarks and errors to stderr.

Much of it was written by others: by nodes that were asked, in files that were handed in. So it is
text and nothing else, neither commands to the terminal nor to the library that lays it out. That
library is loaded when something is laid out: it takes a fifth of a command's start.
"""

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_WIDTH_OF_FILES = 132
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Of ECMA-48, C0 but for tabs and ends of lines, and C1."""


def printable(text: str) -> str:
    """The text with a question mark in place of each control character."""
    return _CONTROL.sub("?", text)


def _plain(**settings: Any) -> "Console":
    """Prints strings as they are: with no control characters but its own, and with no ends of
    lines either, as there are commands among them that are copied. Tables fit the width."""
    from rich.console import Console

    class Plain(Console):
        def print(self, *told: Any, **options: Any) -> None:
            options.setdefault("soft_wrap", all(isinstance(each, str) for each in told))
            super().print(*told, **options)

        def render_str(self, text: str, **options: Any) -> "Text":
            return super().render_str(printable(text), **options)

    return Plain(highlight=False, markup=False, emoji=False, **settings)


@cache
def out() -> "Console":
    """Results; where there is no terminal, tables are as wide as they need."""
    return _plain(width=None if sys.stdout.isatty() else _WIDTH_OF_FILES)


@cache
def err() -> "Console":
    return _plain(stderr=True)


def note(text: str) -> None:
    """A remark beside the result. Beside what is laid out on a terminal it takes its turn."""
    if sys.stderr.isatty():
        err().print(f"beowire: {text}")
    else:
        print(f"beowire: {printable(text).expandtabs()}", file=sys.stderr, flush=True)
