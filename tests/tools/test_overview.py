# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire --help`: it tells of each command what the command itself says, without loading it."""

import subprocess
import sys

import pytest
import typer
from beowire import cli

COMMANDS = typer.main.get_command(cli.command_line()).commands  # type: ignore[attr-defined]
LOADED = """
import sys, typer
from beowire import cli
typer.main.get_command(cli.command_line({words}))
print(*(each for each in sys.modules if each.startswith("beowire.")))
"""


@pytest.mark.parametrize("words", [[], ["--help"], ["--report", "file", "-h"], ["no-command"]])
def test_all_commands_are_told_in_their_own_words(words: list[str]) -> None:
    told = typer.main.get_command(cli.command_line(words)).commands  # type: ignore[attr-defined]
    assert list(told) == list(COMMANDS)
    for name, command in COMMANDS.items():
        (first, *_) = (command.help or "").split("\n\n")
        assert told[name].help == " ".join(first.split()), name


@pytest.mark.parametrize("words", [["--help"], ["bench"]])
def test_no_other_command_is_loaded(words: list[str]) -> None:
    script = LOADED.format(words=words)
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    loaded = {each.split(".")[1] for each in done.stdout.split()}
    assert "cli" in loaded
    assert not loaded & {"doctor", "demo", "model", "evidence", "package"}
    assert ("bench" in loaded) == (words == ["bench"])
