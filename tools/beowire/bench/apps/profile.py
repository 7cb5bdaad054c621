# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the time of an application goes, over TCP and over Beowire: one run of each with a ledger
preloaded, which costs a little itself, so that the times of these runs are compared with nothing
else."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from beowire.bench.apps import ledger
from beowire.bench.apps.application import Application
from beowire.bench.apps.ledger import Ledger
from beowire.bench.apps.measure import TRANSPORTS, Runs
from beowire.bench.apps.place import Shape
from beowire.run.launch import Transport


@dataclass(frozen=True)
class Profile:
    """An application's two ledgers."""

    application: str
    shape: Shape
    ledgers: dict[Transport, Ledger]

    def as_json(self) -> dict[str, Any]:
        """The keys are described in docs/apps.md, and stay."""
        return {
            "application": self.application,
            "ranks": self.shape.ranks,
            "nodes": self.shape.nodes,
            **{transport: each.as_json() for transport, each in self.ledgers.items()},
        }


def take(
    runs: Runs, application: Application, shape: Shape, tell: Callable[[str], None]
) -> Profile:
    """Two runs."""
    found: dict[Transport, Ledger] = {}
    library = runs.bench.put_ledger()
    for transport in TRANSPORTS:
        tell(f"{application.name} {shape} over {transport}, its profile")
        job = runs.job(application, shape, transport)
        job = replace(job, environment={**job.environment, "LD_PRELOAD": library})
        with tempfile.TemporaryDirectory(prefix="beowire-apps-") as name:
            runs.run_job(application, shape, job, Path(name))
            found[transport] = ledger.read(Path(name))
    return Profile(application.name, shape, found)
