# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is printed of others' text: their characters, and none of their orders."""

import subprocess
import sys

import pytest
from beowire import terminal
from rich.table import Table


@pytest.fixture(autouse=True)
def anew() -> None:
    """Each test's output is another file."""
    terminal.out.cache_clear()
    terminal.err.cache_clear()


def test_control_characters_are_question_marks() -> None:
    assert terminal.printable("a\tb\nc\x1b[2J\x07\x9b1m\r\x7fé漢") == "a\tb\nc?[2J??1m??é漢"


def test_neither_the_terminal_nor_the_library_takes_orders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "\x1b[31mred [bold]not[/bold] [/x] :skull:"
    table = Table("name")
    table.add_row(text)
    terminal.out().print(text)
    terminal.out().print(table)
    terminal.note(text)
    said = capsys.readouterr()
    wanted = "?[31mred [bold]not[/bold] [/x] :skull:"
    assert said.out.count(wanted) == 2
    assert said.err == f"beowire: {wanted}\n"


def test_text_has_no_other_ends_of_lines_and_tables_fit(capsys: pytest.CaptureFixture[str]) -> None:
    """Commands among it are copied."""
    command = "./beowire lab exec " + "a-long-name " * 20
    table = Table("name")
    table.add_row(command)
    terminal.out().print(command)
    terminal.out().print(table)
    terminal.note(command)
    said = capsys.readouterr()
    first, *rest = said.out.splitlines()
    assert first == command
    assert len(rest) > 5
    assert all(len(line) <= 132 for line in rest)
    assert said.err == f"beowire: {command}\n"


def test_what_lays_tables_out_is_loaded_by_those_that_print_some() -> None:
    """It takes a fifth of a command's start; most that scripts start print none."""
    commands = "lab.cli, beowire.lab.status, beowire.run.cli, beowire.doctor.cli, beowire.vm.cli"
    remark = "import sys, beowire.terminal; beowire.terminal.note('x'); "
    code = f"import beowire.{commands}; {remark}sys.exit('rich.console' in sys.modules)"
    subprocess.run([sys.executable, "-P", "-c", code], check=True, stderr=subprocess.PIPE)
