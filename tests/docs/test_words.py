# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Every call of the command that a document shows has commands and options that there are."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
_BLOCK = re.compile(r"^ *```(?:sh)?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"(?:^\s*|[(|&;]\s*|-- |exec )(?:\./)?beowire\s+(?=(.*))")
_SIGNS = "|&;()<>'\""
_WORD = re.compile(r"""'[^']*'|"[^"]*"|[^\s'"|&;()<>]+|[|&;()<>'"]""")


@cache
def command_tree() -> Any:
    from beowire.cli import command_line

    return typer.main.get_command(command_line())


def calls(text: str) -> Iterator[list[str]]:
    """The words behind the command's name, of each call in a block of commands."""
    for block in _BLOCK.findall(text):
        for line in re.sub(r"\\\n", " ", block).splitlines():
            typed = re.sub(r"(^|\s)#.*$", "", line)
            yield from (_words(found) for found in _CALL.findall(typed))


def _words(typed: str) -> list[str]:
    """Those of one command: a shell's signs end them."""
    words = []
    for word in _WORD.findall(typed):
        if word in _SIGNS:
            break
        words.append(word.strip("'\""))
    return words


def wrong(words: list[str]) -> str:
    """The first word that the command does not know; empty: none."""
    command = command_tree()
    rest = iter(words)
    for word in rest:
        if word == "--":
            return ""
        if word.startswith("-"):
            name = word.partition("=")[0]
            option = next((each for each in command.params if name in _names(each)), None)
            if option is None and name not in ("-h", "--help"):
                return word
            if option is not None and not _is_switch(option) and "=" not in word:
                next(rest, None)
        elif inner := getattr(command, "commands", None):
            if word not in inner:
                return "" if word.isupper() or word == "..." else word
            command = inner[word]
        elif not command.context_settings.get("allow_interspersed_args", True):
            return ""
    return ""


def _names(parameter: Any) -> list[str]:
    return [*parameter.opts, *parameter.secondary_opts]


def _is_switch(option: Any) -> bool:
    return bool(getattr(option, "is_flag", False) or getattr(option, "count", False))


SHOWN = """
```
./beowire lab up x --nodes 2 --soon
./beowire doktor   # --no
./beowire lab exec x node1 -- ./beowire doctor --what
```
```sh
./beowire run -n 2 --transport tcp -- p --any | cat --this
```
```
eval "$(beowire env --shell csh)"
./beowire --report a.html COMMAND ...
./beowire doctor cluster --bad; ./beowire info
```
"""


def test_what_is_wrong_is_found() -> None:
    found = [wrong(each) for each in calls(SHOWN)]
    assert found == ["--soon", "doktor", "", "--what", "", "", "", "--bad", ""]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_options_are_there(page: Path) -> None:
    found = [(words, wrong(words)) for words in calls(page.read_text())]
    assert not [each for each in found if each[1]]


def test_there_are_many() -> None:
    assert sum(len(list(calls(page.read_text()))) for page in PAGES) > 100
