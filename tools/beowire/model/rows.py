# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The rows of a file of runs, CSV or JSON, under the names that `runs` knows, each with its
place. What a row says is not looked at here; a file whose columns are not understood is refused.
"""

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire.errors import BeowireError

COLUMNS = {
    "N": ("n", "nodes", "number of nodes"),
    "time": ("time", "time_s", "seconds", "t"),
    "ranks per node": ("ranks per node", "ranks_per_node", "per_node", "ppn"),
    "repeat": ("repeat", "round", "run", "repetition"),
    "messages": ("messages",),
    "bytes": ("bytes",),
}
"""What a column may be called, in any case of letters."""
HELP = "The first line names the columns: N,time and, if wanted, ranks per node and repeat."
_NEEDED = ("N", "time")

Row = tuple[str, dict[str, Any]]
"""Place and cells; "surplus" is the number of cells beyond the columns."""


@dataclass
class Rows:
    """What a file has."""

    rows: list[Row] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Runs that the file itself calls failed, with their places."""
    basis: list[str] = field(default_factory=list)
    """How the nodes' processors were shared, if the file says it."""


def read(file: Path) -> Rows:
    """Each row with its place, its columns under our names."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise BeowireError(f"{file} cannot be read: {why}.", "Name a CSV or JSON file.") from error
    if not text.strip():
        raise BeowireError(f"{file} is empty.", HELP)
    if text.lstrip()[0] in "[{":
        return _json_rows(file, text)
    return Rows(_csv_rows(file, text))


def _csv_rows(file: Path, text: str) -> list[Row]:
    """Separated by commas, semicolons or tabs; lines that begin with # are remarks."""
    lines = text.splitlines()
    first = next(
        (number for number, line in enumerate(lines) if line.strip() and line[0] != "#"), None
    )
    if first is None:
        raise BeowireError(f"{file} has only remarks.", HELP)
    separator = max(",;\t", key=lines[first].count)
    reader = csv.reader(io.StringIO("\n".join(lines[first:])), delimiter=separator)
    names: list[str | None] = []
    rows = []
    try:
        for cells in reader:
            place = f"line {first + reader.line_num}"
            if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
                continue
            if not names:
                names = _names(f"{file}, {place}", cells)
                continue
            row: dict[str, Any] = {
                name: cell.strip() for name, cell in zip(names, cells, strict=False) if name
            }
            if len(cells) > len(names):
                row["surplus"] = len(cells) - len(names)
            rows.append((place, row))
    except csv.Error as error:
        raise BeowireError(f"{file}, line {first + reader.line_num}: {error}.", HELP) from error
    return rows


def _names(place: str, cells: list[str]) -> list[str | None]:
    """Our name of each column; None: a column that says nothing to us."""
    names = [_name(cell) for cell in cells]
    for name, times in Counter(name for name in names if name).items():
        if times > 1:
            same = [cell.strip() for cell in cells if _name(cell) == name]
            raise BeowireError(
                f"{place}: {times} columns mean {name}: {', '.join(same)}.", "Leave one of them."
            )
    for needed in _NEEDED:
        if needed not in names:
            raise BeowireError(
                f"{place}: no column {needed} among: {', '.join(c.strip() for c in cells)}.",
                f"Name it {' or '.join(COLUMNS[needed])}. {HELP}",
            )
    return names


def _name(cell: str) -> str | None:
    plain = cell.strip().lower()
    return next((name for name, known in COLUMNS.items() if plain in known), None)


def _json_rows(file: Path, text: str) -> Rows:
    """A list of objects; an object with lists, or with a list `runs`; or lines of objects, as
    `beowire model measure` writes them."""
    try:
        whole = json.loads(text)
        entries = [(f"entry {number}", each) for number, each in enumerate(_entries(whole), 1)]
    except json.JSONDecodeError as error:
        lines = [each for each in enumerate(text.splitlines(), 1) if each[1].strip()]
        if len(lines) < 2 or not isinstance(_object(lines[0][1]), dict):
            raise BeowireError(
                f"{file}, line {error.lineno}: no JSON: {error.msg}.", "Fix it there."
            ) from error
        entries = [(f"line {number}", _object(line)) for number, line in lines]
    found = Rows()
    for place, each in entries:
        if isinstance(each, dict) and "basis" in each and "time" not in each:
            _check_basis(file, each)
            found.basis.append(str(each["basis"]))
        elif isinstance(each, dict) and "failed" in each:
            found.failed.append(f"{file}, {place}: this run failed: {each['failed']}")
        else:
            found.rows.append((place, _entry(f"{file}, {place}", each)))
    return found


def _check_basis(file: Path, header: dict[str, Any]) -> None:
    """Runs whose nodes competed for processors say nothing of speedup."""
    if header.get("fits") is False:
        raise BeowireError(
            f"{file} was measured where nodes compete for processors ({header['basis']}): it is "
            "not to be fitted.",
            "Measure with equal limits of processor time for each node; docs/model.md says how.",
        )


def _entries(whole: Any) -> list[Any]:
    if isinstance(whole, dict) and isinstance(whole.get("runs"), list):
        return list(whole["runs"])
    if isinstance(whole, dict) and whole and all(isinstance(v, list) for v in whole.values()):
        longest = max(map(len, whole.values()))
        return [
            {name: values[at] if at < len(values) else None for name, values in whole.items()}
            for at in range(longest)
        ]
    return whole if isinstance(whole, list) else [whole]


def _object(line: str) -> Any:
    """A line's object; text that is none is kept, to be named."""
    try:
        return json.loads(line)
    except ValueError:
        return line


def _entry(place: str, each: Any) -> dict[str, Any]:
    """An object's members under our names; one that is no object is empty."""
    if not isinstance(each, dict):
        return {}
    return {
        name: value
        for name, value in zip(_known(place, list(each)), each.values(), strict=True)
        if name
    }


def _known(place: str, keys: list[str]) -> list[str | None]:
    names = [_name(key) for key in keys]
    for name, times in Counter(name for name in names if name).items():
        if times > 1:
            raise BeowireError(f"{place}: {times} members mean {name}.", "Leave one of them.")
    return names
