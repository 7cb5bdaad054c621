# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of runs that `beowire model measure` writes: lines of JSON, each to the disk as its run
ends. The first line says what was measured and on what; runs of another command are not mixed in.

What is in the file is not run again, except what failed. A line that was cut off by a crash counts
as not written. `beowire model fit` reads the same file.
"""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from beowire.errors import BeowireError

FORMAT = 1


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
    """What the busiest rank exchanged with other nodes in a run."""

    messages: int
    """Sent or received, the greater."""
    bytes: int
    messages_both: int
    """Sent and received, added up."""
    bytes_both: int


class Results:
    """A file of runs, open for more. Not for several processes at once."""

    def __init__(self, path: Path, setting: Setting) -> None:
        self.path = path
        self.setting = setting
        self.times: dict[tuple[int, int], float] = {}
        """In seconds, by N and repeat."""
        self.traffic: dict[tuple[int, int], Traffic] = {}
        """Of those runs whose traffic was counted."""
        lines = self._lines()
        if lines:
            self._check(lines[0])
        for number, line in enumerate(lines[1:], 2):
            self._take(number, line)
        self._begin()

    def add(self, nodes: int, repeat: int, time_s: float, traffic: Traffic | None = None) -> None:
        """Writes one run."""
        self.times[nodes, repeat] = time_s
        if traffic is not None:
            self.traffic[nodes, repeat] = traffic
        self._write(self._measured(nodes, repeat))

    def add_failure(self, nodes: int, repeat: int, why: str) -> None:
        """Writes that a run failed; the next measurement tries it again."""
        self._write(self._row(nodes, repeat) | {"failed": why})

    def _row(self, nodes: int, repeat: int) -> dict[str, Any]:
        return {"N": nodes, "ranks_per_node": self.setting.ranks_per_node, "repeat": repeat}

    def _measured(self, nodes: int, repeat: int) -> dict[str, Any]:
        told = self._row(nodes, repeat) | {"time": self.times[nodes, repeat]}
        traffic = self.traffic.get((nodes, repeat))
        return told | (asdict(traffic) if traffic else {})

    def _lines(self) -> list[str]:
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(str(error)) from error
        return text[: text.rfind("\n") + 1].splitlines()

    def _check(self, line: str) -> None:
        try:
            told = json.loads(line)
            found = {key: told[key] for key in asdict(self.setting)}
            number = told["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable("its first line is none of `beowire model measure`") from error
        if number != FORMAT:
            raise self._unusable(f"its format is {number}, not {FORMAT}")
        wanted = asdict(self.setting)
        other = [
            f"{key} {found[key]}, not {wanted[key]}" for key in found if found[key] != wanted[key]
        ]
        if other:
            raise self._unusable(f"it has other runs: {'; '.join(other)}")

    def _take(self, number: int, line: str) -> None:
        try:
            told = json.loads(line)
            if "failed" in told:
                return
            key = int(told["N"]), int(told["repeat"])
            self.times[key] = float(told["time"])
            if "messages" in told:
                counts = {each.name: int(told[each.name]) for each in fields(Traffic)}
                self.traffic[key] = Traffic(**counts)
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(f"line {number} is no run ({error!r})") from error

    def _begin(self) -> None:
        """Writes what is kept, without failures, in the place of the old file at once."""
        part = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        rows = [{"format": FORMAT, **asdict(self.setting)}]
        rows += [self._measured(*key) for key in self.times]
        try:
            with part.open("w") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in rows)
                stream.flush()
                os.fsync(stream.fileno())
            part.replace(self.path)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error
        finally:
            part.unlink(missing_ok=True)

    def _write(self, told: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(told) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _unusable(self, why: str) -> BeowireError:
        return BeowireError(
            f"Runs cannot be kept in {self.path}: {why}.", "Name another file by --results."
        )
