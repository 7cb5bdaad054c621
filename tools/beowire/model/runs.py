# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measured runs, from CSV, JSON or lines of JSON: how many nodes, how long.

A bad row is named with its line, counted and left out; a file whose columns are not understood is
refused. N counts nodes at a constant number of ranks on each, so runs with another number of ranks
per node are not mixed in.
"""

import math
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beowire.errors import BeowireError
from beowire.model import rows

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

_NODES_MAX = 1e9
_TIME_LEAST, _TIME_MOST = 1e-30, 1e30
"""In whatever unit; with others, squares and cubes leave what floating point can hold."""
_TOLD_AT_MOST = 20


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
    """That the busiest rank sent and received one after another; None: not counted."""
    bytes: float | None = None


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
        found = rows.read(file)
        result.basis += found.basis
        result.remarks += found.failed
        result.left_out += len(found.failed)
        seen: dict[tuple[int, int | None, str], Run] = {}
        for place, row in found.rows:
            _take(result, f"{file}, {place}", row, seen)
    _choose(result, per_node)
    if not result.runs:
        raise BeowireError(
            f"No usable run in {', '.join(map(str, files))}.",
            "\n  ".join(result.told()) or rows.HELP,
        )
    result.runs.sort(key=lambda run: run.nodes)
    return result


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
    if nodes > _NODES_MAX:
        raise ValueError(f"N = {nodes:g} is above {_NODES_MAX:g}")
    if time <= 0:
        raise ValueError(f"time {time:g} is not above 0")
    if not _TIME_LEAST <= time <= _TIME_MOST:
        raise ValueError(f"time {time:g} is not between {_TIME_LEAST:g} and {_TIME_MOST:g}")
    per_node = None
    if row.get("ranks per node") not in (None, ""):
        ranks = _number("ranks per node", row["ranks per node"])
        if ranks < 1 or ranks != int(ranks):
            raise ValueError(f"{ranks:g} ranks per node")
        per_node = int(ranks)
    repeat = row.get("repeat")
    named = None if repeat in (None, "") else str(repeat)
    counts = (_count(name, row) for name in ("messages", "bytes"))
    return Run(int(nodes), time, per_node, named, place, *counts)


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
