# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of runs that `beowire model measure` writes, a RowFile: the first line says what was
measured and on what. What is in the file is not run again, except what failed. `beowire model fit`
reads the same file.
"""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from beowire.row_file import RowFile


@dataclass(frozen=True)
class Setting:
    """What all runs of a file have in common."""

    command: list[str]
    """With its placeholders."""
    ranks_per_node: int
    clock: str
    """What told the time: wall clock, or the expression that found it in the output."""
    machine: str
    basis: str
    """How the processors were shared."""
    fits: bool
    """The times may be fitted."""


@dataclass(frozen=True)
class Traffic:
    """What the busiest rank exchanged with other nodes in a run, sent and received; what came in
    while as much was going out counts once."""

    messages: int
    bytes: int


class Results:
    """A file of runs, open for more. Not for several processes at once."""

    def __init__(self, path: Path, setting: Setting) -> None:
        self.path = path
        self.setting = setting
        self.times: dict[tuple[int, int], float] = {}
        """In seconds, by N and repeat."""
        self.traffic: dict[tuple[int, int], Traffic] = {}
        """Of those runs whose traffic was counted."""
        self._file = RowFile(path, "beowire model measure", asdict(setting))
        for index, row in enumerate(self._file.rows):
            try:
                self._take(row)
            except (ValueError, KeyError, TypeError) as error:
                raise self._file.bad_row(index, error) from error
        self._file.begin(self._measured(*key) for key in self.times)  # failures are forgotten

    def add(self, nodes: int, repeat: int, time_s: float, traffic: Traffic | None = None) -> None:
        """Writes one run."""
        self.times[nodes, repeat] = time_s
        if traffic is not None:
            self.traffic[nodes, repeat] = traffic
        self._file.add(self._measured(nodes, repeat))

    def add_failure(self, nodes: int, repeat: int, why: str) -> None:
        """Writes that a run failed; the next measurement tries it again."""
        self._file.add(self._row(nodes, repeat) | {"failed": why})

    def _row(self, nodes: int, repeat: int) -> dict[str, Any]:
        return {"N": nodes, "ranks_per_node": self.setting.ranks_per_node, "repeat": repeat}

    def _measured(self, nodes: int, repeat: int) -> dict[str, Any]:
        told = self._row(nodes, repeat) | {"time": self.times[nodes, repeat]}
        traffic = self.traffic.get((nodes, repeat))
        return told | (asdict(traffic) if traffic else {})

    def _take(self, told: dict[str, Any]) -> None:
        if "failed" in told:
            return
        key = int(told["N"]), int(told["repeat"])
        self.times[key] = float(told["time"])
        if "messages" in told:
            counts = {each.name: int(told[each.name]) for each in fields(Traffic)}
            self.traffic[key] = Traffic(**counts)
