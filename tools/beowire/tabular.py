# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Results as a table for people, or the same rows as CSV (RFC 4180) or JSON: one place for all
commands that have --format."""

import csv
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from beowire import places
from beowire.terminal import printable

Format = Literal["table", "csv", "json"]
Row = Mapping[str, Any]
"""Values by column; None where there is none."""
Chosen = Annotated[
    Format,
    typer.Option("--format", help="Rows for people (table), or for machines (csv, json)."),
]


def tell(chosen: Format, rows: Sequence[Row], table: Callable[[], None]) -> None:
    """Prints rows in the chosen form; `table` prints them for people."""
    if chosen == "table":
        table()
    elif chosen == "json":
        sys.stdout.write(places.json_text(list(rows)))
    else:
        sys.stdout.write(csv_text(rows))


def csv_text(rows: Sequence[Row]) -> str:
    """A line of column names, then one for each row. Numbers are as they are, without units."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    """A program that reads tables must not take what others wrote for a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    text = printable(str(value)).replace("\n", " ").replace("\t", " ")
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text


def flat(told: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
    """One level of columns out of nested ones: {"a": {"b": 1}} is {"a_b": 1}."""
    found: dict[str, Any] = {}
    for name, value in told.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{inside}{name}_")
        elif isinstance(value, list | tuple):
            found[f"{inside}{name}"] = " ".join(map(str, value))
        else:
            found[f"{inside}{name}"] = value
    return found
