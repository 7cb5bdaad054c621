# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of a matrix: its cells with the values of all rounds, so that measuring can go on.

It is written anew after every round, in one step. What belongs to the measurement as a whole (the
machine, the nodes, the time for a cell) must be the same when it goes on.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench.matrix import cells
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.grid import Key
from beowire.errors import BeowireError

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
        if path is None:
            return
        places.check_replaceable(path)
        places.check_output(path)
        if path.exists() and path.stat().st_size:
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
        if self.path is None:
            return
        try:
            with places.replacing(self.path) as part:
                places.write_json(part, self.as_json())
        except OSError as error:
            raise BeowireError(
                f"{self.path} cannot be written: {error.strerror or error}.", "Name another file."
            ) from error

    def _read(self, path: Path) -> None:
        other = BeowireError(
            f"{path} is no file of `{WRITER}`.", "Name another file by --json, or remove it."
        )
        try:
            told = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise other from error
        if not isinstance(told, dict) or told.get("writer") != WRITER:
            raise other
        if told.get("format") != FORMAT:
            raise BeowireError(
                f"{path} has format {told.get('format')}, not {FORMAT}.", "Name another file."
            )
        self._check_setting(path, told.get("setting"))
        try:
            found = [cells.of_json(each) for each in told["cells"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BeowireError(
                f"{path} has a cell that cannot be read: {error!r}.", "Name another file."
            ) from error
        self.cells = {cell.key: cell for cell in found}

    def _check_setting(self, path: Path, told: Any) -> None:
        told = told if isinstance(told, dict) else {}
        differ = [
            f"{name} {told.get(name)}, not {value}"
            for name, value in self.setting.items()
            if told.get(name) != value
        ]
        if differ:
            raise BeowireError(
                f"{path} has cells of another setting: {'; '.join(differ)}.",
                "Name another file by --json, or measure with that setting.",
            )
