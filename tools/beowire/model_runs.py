# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measured runs, from CSV, JSON or lines of JSON: how many nodes, how long.

A bad row is named with its line, counted and left out; a file whose columns are not understood is
refused. N counts nodes at a constant number of ranks on each, so runs with another number of ranks
per node are not mixed in.
"""

import csv
import io
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beowire.errors import BeowireError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

COLUMNS = {
    "N": ("n", "nodes", "number of nodes"),
    "time": ("time", "time_s", "seconds", "t"),
    "ranks per node": ("ranks per node", "ranks_per_node", "per_node", "ppn"),
    "repeat": ("repeat", "round", "run", "repetition"),
    "messages": ("messages",),
    "bytes": ("bytes",),
}
"""What a column may be called, in any case of letters."""
_NEEDED = ("N", "time")
_TOLD_AT_MOST = 20
_HELP = "The first line names the columns: N,time and, if wanted, ranks per node and repeat."


@dataclass(frozen=True)
class Run:
    """One run of the program."""

    nodes: int
    time: float
    """In any unit, the same for all."""
    per_node: int | None
    repeat: str | None
    place: str
    """File and line, for people."""
    messages: float | None = None
    """Of the busiest rank, one after the other; None: not counted."""
    bytes: float | None = None
    """That the busiest rank sent or received."""


@dataclass
class Runs:
    """What was read: the usable runs, and why others are not among them."""

    runs: list[Run] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """One for each row left out or doubtful, with its place."""
    left_out: int = 0
    basis: list[str] = field(default_factory=list)
    """What the files themselves say of how their nodes' processors were shared."""

    def nodes(self) -> "NDArray[float64]":
        import numpy as np

        return np.array([run.nodes for run in self.runs], dtype=float)

    def times(self) -> "NDArray[float64]":
        import numpy as np

        return np.array([run.time for run in self.runs], dtype=float)

    def told(self) -> list[str]:
        """The remarks, not too many, and the count."""
        lines = self.remarks[:_TOLD_AT_MOST]
        if len(self.remarks) > len(lines):
            lines.append(f"remarks not shown: {len(self.remarks) - len(lines)}")
        if self.left_out:
            lines.append(f"rows left out: {self.left_out}, used: {len(self.runs)}")
        return lines


def read(files: list[Path], per_node: int = 0) -> Runs:
    """All files together; `per_node` chooses the runs with that many ranks per node, 0 takes the
    only number that there is."""
    result = Runs()
    for file in files:
        rows = _rows(file, result)
        seen: dict[tuple[int, int | None, str], Run] = {}
        for place, row in rows:
            _take(result, f"{file}, {place}", row, seen)
    _choose(result, per_node)
    if not result.runs:
        raise BeowireError(
            f"No usable run in {', '.join(map(str, files))}.", "\n  ".join(result.told()) or _HELP
        )
    result.runs.sort(key=lambda run: run.nodes)
    return result


def _rows(file: Path, result: Runs) -> list[tuple[str, dict[str, Any]]]:
    """Each row with its place, its columns under our names."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise BeowireError(f"{file} cannot be read: {why}.", "Name a CSV or JSON file.") from error
    if not text.strip():
        raise BeowireError(f"{file} is empty.", _HELP)
    if text.lstrip()[0] in "[{":
        return _json_rows(file, text, result)
    return _csv_rows(file, text)


def _csv_rows(file: Path, text: str) -> list[tuple[str, dict[str, Any]]]:
    """Separated by commas, semicolons or tabs; lines that begin with # are remarks."""
    lines = text.splitlines()
    first = next(
        (number for number, line in enumerate(lines) if line.strip() and line[0] != "#"), None
    )
    if first is None:
        raise BeowireError(f"{file} has only remarks.", _HELP)
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
        raise BeowireError(f"{file}, line {first + reader.line_num}: {error}.", _HELP) from error
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
                f"Name it {' or '.join(COLUMNS[needed])}. {_HELP}",
            )
    return names


def _name(cell: str) -> str | None:
    plain = cell.strip().lower()
    return next((name for name, known in COLUMNS.items() if plain in known), None)


def _json_rows(file: Path, text: str, result: Runs) -> list[tuple[str, dict[str, Any]]]:
    """A list of objects; an object with lists, or with a list `runs`; or lines of objects, as
    `beowire model measure` writes them."""
    try:
        whole = json.loads(text)
        entries = [(f"entry {number}", each) for number, each in enumerate(_entries(whole), 1)]
    except json.JSONDecodeError as error:
        lines = [each for each in enumerate(text.splitlines(), 1) if each[1].strip()]
        if len(lines) < 2 or not isinstance(_object(lines[0][1]), dict):
            raise BeowireError(
                f"{file}, line {error.lineno}: no JSON: {error.msg}.", "Mend it there."
            ) from error
        entries = [(f"line {number}", _object(line)) for number, line in lines]
    rows = []
    for place, each in entries:
        if isinstance(each, dict) and "basis" in each and "time" not in each:
            _check_basis(file, each)
            result.basis.append(str(each["basis"]))
            continue
        if isinstance(each, dict) and "failed" in each:
            result.left_out += 1
            result.remarks.append(f"{file}, {place}: this run failed: {each['failed']}")
            continue
        rows.append((place, _entry(f"{file}, {place}", each)))
    return rows


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


def _take(
    result: Runs,
    place: str,
    row: dict[str, Any],
    seen: dict[tuple[int, int | None, str], Run],
) -> None:
    """Adds the row's run, or says what is wrong with it."""
    try:
        run = _run(place, row)
    except ValueError as error:
        result.remarks.append(f"{place}: {error}")
        result.left_out += 1
        return
    if run.repeat is not None:
        key = (run.nodes, run.per_node, run.repeat)
        before = seen.setdefault(key, run)
        if before is not run and before.time == run.time:
            result.remarks.append(f"{place}: the same run as {before.place}")
            result.left_out += 1
            return
        if before is not run:
            result.remarks.append(
                f"{place}: repeat {run.repeat} of N = {run.nodes} again, with another time than "
                f"{before.place}; both are used"
            )
    result.runs.append(run)


def _run(place: str, row: dict[str, Any]) -> Run:
    """Raises ValueError with what is wrong."""
    if row.get("surplus"):
        raise ValueError(f"{row['surplus']} cells more than columns")
    nodes = _number("N", row.get("N"))
    time = _number("time", row.get("time"))
    if nodes < 1 or nodes != int(nodes):
        raise ValueError(f"N = {nodes:g} is no number of nodes")
    if time <= 0:
        raise ValueError(f"time {time:g} is not above 0")
    per_node = None
    if row.get("ranks per node") not in (None, ""):
        ranks = _number("ranks per node", row["ranks per node"])
        if ranks < 1 or ranks != int(ranks):
            raise ValueError(f"{ranks:g} ranks per node")
        per_node = int(ranks)
    repeat = row.get("repeat")
    named = None if repeat in (None, "") else str(repeat)
    messages, size = _count("messages", row), _count("bytes", row)
    return Run(int(nodes), time, per_node, named, place, messages, size)


def _count(name: str, row: dict[str, Any]) -> float | None:
    """A column that may be left empty."""
    if row.get(name) in (None, ""):
        return None
    count = _number(name, row[name])
    if count < 0:
        raise ValueError(f"{name} {count:g} is below 0")
    return count


def _number(name: str, value: Any) -> float:
    if value is None or value == "":
        raise ValueError(f"no {name}")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{name} is no number: {value!r}")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{name} is no number: {value!r}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} is {number}")
    return number


def _choose(result: Runs, per_node: int) -> None:
    """Keeps the runs of one number of ranks per node."""
    found = Counter(run.per_node for run in result.runs)
    if per_node:
        others = sum(times for number, times in found.items() if number not in (per_node, None))
        if others:
            result.remarks.append(
                f"runs with another number of ranks per node than {per_node}: {others}, not used"
            )
            result.left_out += others
        result.runs = [run for run in result.runs if run.per_node in (per_node, None)]
        return
    unsaid = found.pop(None, 0)
    if unsaid and found:
        result.remarks.append(
            f"runs that do not say their ranks per node: {unsaid}, taken for the same"
        )
    if len(found) > 1:
        told = ", ".join(
            f"{number} ({times} runs)" for number, times in sorted(found.items(), key=str)
        )
        raise BeowireError(
            f"The runs have different numbers of ranks per node: {told}.",
            "N counts nodes at a constant number on each: choose one by --per-node.",
        )
