# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands that are begun before anybody waits for them, and facts that are asked once."""

import os
import subprocess
from pathlib import Path

import pytest
from beowire.run import asked, kept_facts


def test_commands_run_beside_one_another(tmp_path: Path) -> None:
    """Each waits for the other's file: one after the other they would wait until nothing is left of
    either."""
    meet = "touch $0; while [ -e $0 -a ! -e $1 ]; do sleep 0.01; done; echo $0 >&2; exit 3"
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    commands = [["sh", "-c", meet, one, other], ["sh", "-c", meet, other, one]]
    try:
        for command in commands:
            asked.begin(command)
        assert asked.answer(commands[0]) == (3, f"{one}\n")
        assert asked.answer(commands[1]) == (3, f"{other}\n")
    finally:
        for each in (one, other):
            Path(each).unlink(missing_ok=True)


def test_what_was_begun_answers_once() -> None:
    command = ["sh", "-c", "echo $$ $NAME"]
    asked.begin(command, {"NAME": "x"})
    asked.begin(command, {"NAME": "x"})
    first = asked.answer(command, {"NAME": "x"}).text
    assert first.endswith(" x\n")
    assert asked.answer(command, {"NAME": "x"}).text != first
    assert asked.answer(command, {"NAME": "y"}).text.endswith(" y\n")


def test_much_is_said_before_anybody_listens() -> None:
    """More than a pipe holds."""
    command = ["sh", "-c", "seq 100000; echo end"]
    asked.begin(command)
    assert asked.answer(command).text.endswith("100000\nend\n")


def test_a_command_that_is_not_there_and_one_that_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(FileNotFoundError):
        asked.answer(["/nowhere/at/all"])
    monkeypatch.setattr(asked, "LIMIT_S", 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        asked.answer(["sleep", "1000"])


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "tool"
    path.write_text("one")
    return path


def test_a_fact_holds_until_a_file_changes(tool: Path) -> None:
    assert not kept_facts.is_known("it works", [tool])
    kept_facts.keep("it works", [tool])
    assert kept_facts.is_known("it works", [tool])
    assert not kept_facts.is_known("it works well", [tool])
    tool.write_text("other")
    assert not kept_facts.is_known("it works", [tool])
    kept_facts.keep("it works", [tool])
    os.utime(tool, ns=(0, 0))
    assert not kept_facts.is_known("it works", [tool])
    tool.unlink()
    assert not kept_facts.is_known("it works", [tool])


def test_facts_that_cannot_be_kept_are_not_known(
    tool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_CACHE", str(tool))  # a file
    kept_facts.keep("it works", [tool])
    assert not kept_facts.is_known("it works", [tool])
    monkeypatch.delenv("BEOWIRE_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", _no_home)
    kept_facts.keep("it works", [tool])
    assert not kept_facts.is_known("it works", [tool])


def _no_home() -> Path:
    raise RuntimeError("there is no home")
