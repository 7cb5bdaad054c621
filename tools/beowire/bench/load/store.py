# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of results: what was measured in which setting, run by run, and the figures of it.

It is written anew after every round, in one step, so that measuring can go on later.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench.load.runs import CARRIERS, Carrier, Phase
from beowire.errors import BeowireError

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
        if path is None:
            return
        places.check_replaceable(path)
        places.check_output(path)
        if path.exists() and path.stat().st_size:
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
        if self.path is None:
            return
        try:
            with places.replacing(self.path) as part:
                places.write_output(part, json.dumps(self.as_json()) + "\n")
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
            self.rounds = [{name: each[name] for name in CARRIERS} for each in told["rounds"]]
            if self.rounds:
                self._figures(self.rounds)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise BeowireError(
                f"{path} has a round that cannot be read: {error!r}.", "Name another file."
            ) from error

    def _check_setting(self, path: Path, told: Any) -> None:
        told = told if isinstance(told, dict) else {}
        wanted = json.loads(json.dumps(self.setting))
        differ = [
            f"{name} {told.get(name)}, not {value}"
            for name, value in wanted.items()
            if told.get(name) != value
        ]
        if differ:
            raise BeowireError(
                f"{path} has rounds of another setting: {'; '.join(differ)}.",
                "Name another file by --json, or measure with that setting.",
            )
