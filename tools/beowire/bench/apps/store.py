# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file of results: written anew after each comparison, at once."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import pingpong, result_file
from beowire.bench.apps.measure import Plan, Results
from beowire.bench.apps.profile import Profile

FORMAT = 1
WRITER = "beowire bench apps"


class Store:
    """The results, and the file that keeps them, if there is one."""

    def __init__(self, path: Path | None, plan: Plan, setting: Mapping[str, Any]) -> None:
        """Raises BeowireError if the file cannot be written."""
        self.path = path
        self.setting = {
            **setting,
            "tcp_stack": plan.tcp_stack,
            "bind": plan.bind or "",
            "machine": pingpong.machine(),
        }
        self.results = Results()
        self.missing: list[dict[str, str]] = []
        self.profiles: list[Profile] = []
        if path is not None:
            result_file.check(path)

    def as_json(self) -> dict[str, Any]:
        return {
            "writer": WRITER,
            "format": FORMAT,
            "setting": self.setting,
            "order": "A B A B, A is TCP",
            "missing": self.missing,
            "failed": self.results.failed,
            "cells": [cell.as_json() for cell in self.results.cells.values()],
            "profiles": [each.as_json() for each in self.profiles],
            "commands": self.results.commands,
        }

    def save(self) -> None:
        if self.path is not None:
            result_file.save(self.path, places.json_text(self.as_json()))
