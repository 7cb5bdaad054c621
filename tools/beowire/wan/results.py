# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of results of `beowire bench wan`, a RowFile: the first line says what was measured on.
What is in the file is not run again.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from beowire.row_file import RowFile
from beowire.wan.grid import Line, Point, Problem


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
        self._file = RowFile(path, "beowire bench wan", asdict(setting))
        for index, row in enumerate(self._file.rows):
            try:
                self.measured.append(decode(row))
            except (ValueError, KeyError, TypeError) as error:
                raise self._file.bad_row(index, error) from error
        self._file.begin(map(asdict, self.measured))

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
        self._file.add(asdict(measured))
        self.measured.append(measured)
