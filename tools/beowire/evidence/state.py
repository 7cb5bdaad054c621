# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is measured already, a RowFile: Ctrl-C or a crash loses the experiment under way and nothing
else. Several entries may share an experiment; the rows are of experiments, and entries are judged
anew from them. Results of another version, machine, or kind of run are refused.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire import __version__
from beowire.errors import BeowireError
from beowire.evidence.entry import Measure
from beowire.evidence.experiment import CannotRunError
from beowire.evidence.figures import Figures, decode
from beowire.row_file import RowFile


def setting(host: dict[str, Any], commit: str, quick: bool) -> dict[str, Any]:
    """What all rows of a file have in common."""
    return {
        "writer": "beowire evidence",
        "version": __version__,
        "commit": commit,
        "host": host,
        "run": "quick" if quick else "full",
    }


def key_of(measure: Measure, quick: bool) -> str:
    """What an experiment is known by: its name and its parameters."""
    return f"{measure.experiment} {json.dumps(dict(measure.parameters(quick)), sort_keys=True)}"


@dataclass(frozen=True)
class Measured:
    """An experiment that was run: its figures, or why it cannot be run here."""

    figures: Figures | None
    cannot: str
    seconds: float
    load: float
    """Of the machine when it ended."""

    def get(self) -> Figures:
        if self.figures is None:
            raise CannotRunError(self.cannot)
        return self.figures


class State:
    """The file, open for more. Not for several processes at once."""

    def __init__(self, path: Path, common: dict[str, Any]) -> None:
        self.path = path
        self._measured: dict[str, Measured] = {}
        try:
            self._file = RowFile(path, "beowire evidence", common)
        except BeowireError as error:
            fix = "Name another file by --state, or begin anew with --fresh."
            raise BeowireError(error.what, fix, 2) from error
        for index, row in enumerate(self._file.rows):
            try:
                self._take(row)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise BeowireError(
                    self._file.bad_row(index, error).what, "Begin anew with --fresh.", 2
                ) from error
        self._file.begin(self._file.rows)

    def find(self, key: str) -> Measured | None:
        return self._measured.get(key)

    def add(self, key: str, measured: Measured) -> None:
        """Writes one experiment, to the disk."""
        self._measured[key] = measured
        figures = measured.figures.as_json() if measured.figures is not None else None
        self._file.add(
            {
                "experiment": key,
                "figures": figures,
                "cannot": measured.cannot,
                "seconds": measured.seconds,
                "load": measured.load,
            }
        )

    def loads(self) -> list[float]:
        """The machine's load after each experiment."""
        return [each.load for each in self._measured.values()]

    def _take(self, row: dict[str, Any]) -> None:
        figures = decode(row["figures"]) if row["figures"] is not None else None
        self._measured[str(row["experiment"])] = Measured(
            figures, str(row["cannot"]), float(row["seconds"]), float(row["load"])
        )
