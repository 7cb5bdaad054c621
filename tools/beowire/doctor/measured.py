# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire doctor fix --measure`: each fix is tried with a peer, and stays if it helps."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from beowire.terminal import note, out

if TYPE_CHECKING:
    from beowire.doctor.examine import Outcome
    from beowire.doctor.node import Node
    from beowire.doctor.series import Measurer, Turn

_TURN_S = 0.2


@dataclass(frozen=True)
class Trials:
    """How fixes are tried."""

    peer: str
    ssh: str
    by: str
    rounds: int


def measured(node: "Node", outcomes: "list[Outcome]", trials: Trials) -> None:
    """Tries the fixes; tells of each what it brought and whether it stays."""
    from beowire.doctor import journal, keep, pair
    from beowire.doctor.series import Series, measuring
    from beowire.lab.up import termination_raises

    refused = False
    with termination_raises(), measuring(pair.find(trials.peer, trials.ssh), _TURN_S) as measurer:
        series = Series()
        usable = keep.prepared(measurer, node.goal, series)
        for each in series.troubles:
            note(each)
        before = _figures(measurer, usable, trials.rounds, note)
        log = journal.Journal(node.source, "fix --measure")
        kept = False
        try:
            lots = keep.together(outcomes, trials.by)
            for trial in keep.attempt(
                node.source, node, lots, log, measurer, usable, trials.rounds, note
            ):
                verdict = "kept" if trial.kept else "taken back"
                out().print(f"{verdict}: {', '.join(trial.names)}: {trial.said()}")
                kept = kept or trial.kept
                refused = refused or keep.refused(trial)
        finally:
            log.close()
        if kept:
            after = _figures(measurer, usable, trials.rounds, note)
            for name, value in before.items():
                print(f"{name}: {value} before, {after[name]} after")
            note(f"undo file: {log.path}; back again: beowire doctor undo")
        else:
            with contextlib.suppress(FileNotFoundError):
                journal.set_undone(log.path)
            print("Nothing of this helps here; all is as it was.")
    if refused:
        raise typer.Exit(1)


def _figures(
    measurer: "Measurer", usable: "list[Turn]", rounds: int, tell: Callable[[str], None]
) -> dict[str, str]:
    """What is measured, as it is now."""
    from beowire.doctor import keep
    from beowire.doctor.draws import estimate, of_rounds
    from beowire.doctor.series import Key

    tell(f"measuring with {measurer.pair.peer}")
    series: dict[Key, list[float]] = {}
    for _ in range(rounds):
        for turn in usable:
            for key, value in measurer.run(turn).items():
                series.setdefault(key, []).append(value)
    told = {}
    for key, values in series.items():
        found = estimate(of_rounds(values))
        unit, scale = ("us", 1e6) if key.mode == "latency" else ("Mbit/s", 8e-6)
        each = found.scaled(scale)
        told[keep.name_of(key)] = f"{each.value:.4g} [{each.low:.4g}, {each.high:.4g}] {unit}"
    return told
