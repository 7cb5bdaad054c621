# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of results: what was measured in which setting, run by run, and the figures of it."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from beowire.bench import result_file
from beowire.bench.load.runs import CARRIERS, Carrier, Phase

FORMAT = 1
WRITER = "beowire bench load"
Round = dict[Carrier, list[Phase]]
"""The phases of both transports."""


class Store:
    """The rounds that are known, and the file that keeps them, if there is one."""

    def __init__(
        self,
        path: Path | None,
        setting: Mapping[str, Any],
        figures: Callable[[list[Round]], Mapping[str, Any]],
    ) -> None:
        """`figures` makes what is written beside the rounds. Raises BeowireError if the file cannot
        be written, or is of another measurement."""
        self.path = path
        self.setting = dict(setting)
        self.rounds: list[Round] = []
        self._figures = figures
        if path is not None:
            result_file.check(path)
            self._read(path)

    def add(self, measured: Round) -> None:
        """One more round, kept at once."""
        self.rounds.append(measured)
        self.save()

    def as_json(self) -> dict[str, Any]:
        """The keys are described in docs/load.md, and stay."""
        return {
            "writer": WRITER,
            "format": FORMAT,
            "setting": self.setting,
            "order": "A B A B",
            **(self._figures(self.rounds) if self.rounds else {}),
            "rounds": self.rounds,
        }

    def save(self) -> None:
        """Puts what is known in the place of the file, at once."""
        if self.path is not None:
            result_file.save(self.path, json.dumps(self.as_json()) + "\n")

    def _read(self, path: Path) -> None:
        told = result_file.read(path, WRITER, FORMAT, self.setting, "rounds")
        if not told:
            return
        try:
            self.rounds = [{name: each[name] for name in CARRIERS} for each in told["rounds"]]
            if self.rounds:
                self._figures(self.rounds)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise result_file.unreadable(path, "round", error) from error
