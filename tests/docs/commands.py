# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands of the documents: those in blocks of the language `sh`, one a line, in their order."""

import re
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(
    r"(?:^ *<!-- not run: (?P<why>[^\n]+) -->\n)?^(?P<indent> *)```(?P<kind>\S*)\n"
    r"(?P<body>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Command:
    """A line that a reader would type, without its comment, and where it stands."""

    text: str
    line: int
    not_run: str = ""
    """Why, as the document says; empty: it can be."""


def commands(page: Path) -> list[Command]:
    text = page.read_text()
    found: list[Command] = []
    for block in _BLOCK.finditer(text):
        if block["kind"] == "sh":
            first = text.count("\n", 0, block.start("body")) + 1
            found += _of_a_block(block["body"], first, block["why"] or "")
    return found


def _of_a_block(body: str, first: int, not_run: str) -> list[Command]:
    found: list[Command] = []
    whole = ""
    for number, line in enumerate(body.splitlines(), first):
        whole += re.sub(r"(^|\s+)#.*$", "", line).strip()
        if whole.endswith("\\"):
            whole = whole[:-1]
        elif whole:
            found.append(Command(whole, number, not_run))
            whole = ""
    return found
