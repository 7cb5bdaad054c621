# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is printed of others' text: their characters, and none of their orders."""

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
