# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of results of `beowire bench wan`: lines of JSON, each written when its run ended.

The first line says what was measured on; results of another machine or setting are not mixed in.
What is in the file is not run again. A last line that was cut off by a crash counts as not written.
"""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from beowire.errors import BeowireError
from beowire.wan_grid import Line, Point, Problem

FORMAT = 1


@dataclass(frozen=True)
class Setting:
    """What results of one file have in common."""

    nodes: int
    """Half of them at each site; one rank on each."""
    cpus: float
    """Processor time of each node, in processors."""
    processors: int
    machine: str
    library: str
    """The MPI."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """Whether the emulator kept to its settings."""

    made_by: str
    """What the line was: plain, kernel or beowire-link."""
    valid: bool | None
    """None: nothing emulates that could be late (a cable, a token bucket of the kernel)."""
    reasons: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.valid is None:
            return f"none ({self.made_by})"
        return "valid" if self.valid else f"invalid: {'; '.join(self.reasons)}"


@dataclass(frozen=True)
class Measured:
    """One run of a point."""

    round: int
    """0: a small run for the model."""
    point: Point
    time_s: float
    residual: float
    checksum: str
    """Of the solution, to the last bit."""
    payload_bytes: int
    """That crossed between nodes, as the transport counts them; over TCP with headers."""
    retransmits: int
    """Of Beowire; TCP's are not counted."""
    run_s: float
    """Of the whole run, launcher included."""
    verdict: Verdict
    attempts: int = 1
    """Runs until the emulator was content; an invalid result had as many as are allowed."""


def decode(told: dict[str, Any]) -> Measured:
    """What `asdict` gave. Raises KeyError or TypeError."""
    point = told["point"]
    return Measured(
        **{
            **told,
            "point": Point(point["transport"], Problem(**point["problem"]), Line(**point["line"])),
            "verdict": Verdict(**told["verdict"]),
        }
    )


class Results:
    """A file of results, open for more. Not for several processes at once."""

    def __init__(self, path: Path, setting: Setting) -> None:
        self.path = path
        self.setting = setting
        self.measured: list[Measured] = []
        text = self._text()
        whole = text[: text.rfind("\n") + 1]
        lines = whole.splitlines()
        if lines:
            self._check(lines[0])
            self.measured = [
                self._decoded(number, line) for number, line in enumerate(lines[1:], 2)
            ]
        self._cut(len(whole.encode()))
        if not lines:
            self._write({"format": FORMAT, **asdict(setting)})

    def find(self, number: int, point: Point) -> Measured | None:
        """The result of that round, if it is here."""
        for each in self.measured:
            if each.round == number and each.point == point:
                return each
        return None

    def done(self) -> set[tuple[int, Point]]:
        return {(each.round, each.point) for each in self.measured}

    def add(self, measured: Measured) -> None:
        """Writes one result, to the disk."""
        self._write(asdict(measured))
        self.measured.append(measured)

    def _text(self) -> str:
        try:
            return self.path.read_text()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable(str(error)) from error

    def _cut(self, length: int) -> None:
        """Drops a line that was not written whole."""
        try:
            with self.path.open("ab") as stream:
                stream.truncate(length)
        except OSError as error:
            raise self._unusable(error.strerror or str(error)) from error

    def _check(self, line: str) -> None:
        try:
            told = json.loads(line)
            found = {key: told[key] for key in asdict(self.setting)}
            number = told["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(
                f"its first line is none of `beowire bench wan` ({error!r})"
            ) from (error)
        if number != FORMAT:
            raise self._unusable(f"its format is {number}, not {FORMAT}")
        wanted = asdict(self.setting)
        other = [
            f"{key} {found[key]}, not {wanted[key]}" for key in found if found[key] != wanted[key]
        ]
        if other:
            raise self._unusable(f"it was measured elsewhere: {', '.join(other)}")

    def _decoded(self, number: int, line: str) -> Measured:
        try:
            return decode(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(f"line {number} is no result ({error!r})") from error

    def _write(self, told: dict[str, Any]) -> None:
        with self.path.open("a") as stream:
            stream.write(json.dumps(told) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _unusable(self, why: str) -> BeowireError:
        return BeowireError(
            f"Results cannot be kept in {self.path}: {why}.", "Name another file by --results."
        )
