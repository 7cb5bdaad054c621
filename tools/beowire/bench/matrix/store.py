# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of a matrix: its cells with the values of all rounds, so that measuring can go on. Its
setting is the machine, the nodes, and the time for a cell."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import result_file
from beowire.bench.matrix import cells
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.grid import Key

FORMAT = 1
WRITER = "beowire bench matrix"


class Store:
    """The cells that are known, and the file that keeps them, if there is one."""

    def __init__(self, path: Path | None, setting: Mapping[str, Any]) -> None:
        """Raises BeowireError if the file cannot be written, or is of another measurement."""
        self.path = path
        self.setting = dict(setting)
        self.missing: list[dict[str, str]] = []
        """What could not be measured, and why."""
        self.cells: dict[Key, Cell] = {}
        if path is not None:
            result_file.check(path)
            self._read(path)

    def missing_rounds(self, key: Key, rounds: int) -> int:
        """How many rounds a cell lacks."""
        return max(rounds - (self.cells[key].rounds if key in self.cells else 0), 0)

    def add(self, key: Key, beowire: float, others: dict[str, float]) -> None:
        """One more round of a cell."""
        self.cells.setdefault(key, Cell(key)).add(beowire, others)

    def as_json(self) -> dict[str, Any]:
        return {
            "writer": WRITER,
            "format": FORMAT,
            "setting": self.setting,
            "order": "A B C A B C",
            "missing": self.missing,
            "cells": [cell.as_json() for cell in self.cells.values()],
        }

    def save(self) -> None:
        """Puts what is known in the place of the file, at once."""
        if self.path is not None:
            result_file.save(self.path, places.json_text(self.as_json()))

    def _read(self, path: Path) -> None:
        told = result_file.read(path, WRITER, FORMAT, self.setting, "cells")
        if not told:
            return
        try:
            found = [cells.of_json(each) for each in told["cells"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise result_file.unreadable(path, "cell", error) from error
        self.cells = {cell.key: cell for cell in found}
