# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire evidence`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.errors import BeowireError
from beowire.evidence import gallery as galleries
from beowire.evidence import host, plot, results, state
from beowire.evidence.entry import Entry
from beowire.evidence.outcome import FAILED, Outcome
from beowire.evidence.registry import WRONG_USE, choose
from beowire.evidence.results import Results
from beowire.evidence.runner import QUICK_S, Runner
from beowire.lab import up
from beowire.terminal import note, out

_STATE = {True: "evidence-quick.jsonl", False: "evidence.jsonl"}


def evidence(
    quick: Annotated[
        bool, typer.Option("--quick", help="Few rounds and small sizes: a quarter of an hour.")
    ] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="These entries, labels or papers; repeatable.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the entries, run nothing.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every result to this file.")
    ] = None,
    update: Annotated[
        Path | None,
        typer.Option(help="Write the results into this file of --json, for its own of them."),
    ] = None,
    state_file: Annotated[
        Path | None,
        typer.Option("--state", help="Keep what is measured here; it is not measured again."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Begin anew, whatever was measured before.")
    ] = False,
    gallery: Annotated[
        list[Path] | None,
        typer.Option(help="Run nothing: write these results, of --json, as Markdown; repeatable."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option(help="With --gallery: write its drawings to this directory.")
    ] = None,
) -> None:
    """Run the tables, figures and numbers of the papers again: do our measurements agree?"""
    if gallery:
        if quick or only or list_ or json_file or update or state_file or fresh:
            raise BeowireError("--gallery runs nothing.", "Give it alone.", WRONG_USE)
        _gallery(results.read(gallery), plots)
        return
    if plots is not None:
        raise BeowireError("--plots needs results.", "Name them by --gallery.", WRONG_USE)
    chosen = choose(only or [])
    if list_:
        out().print(_listed(chosen))
        return
    if json_file is not None:
        places.check_output(json_file)
    if update is not None:
        results.check_updatable(update, host.find(), _kind(quick))
    found = _run(chosen, quick, state_file, fresh)
    if json_file is not None:
        places.write_json(json_file, found.as_json())
    if update is not None:
        places.write_json(update, results.updated(update, found).as_json())
    out().print(_told(found.outcomes))
    plot.add_to_report(found)
    if any(each.outcome == FAILED for each in found.outcomes):
        raise typer.Exit(1)


def _gallery(found: Results, plots: Path | None) -> None:
    if plots is not None:
        places.make_output_dir(plots)
        plot.write(found, plots)
    sys.stdout.write(galleries.text(found, plots.name if plots is not None else ""))


def _run(chosen: list[Entry], quick: bool, file: Path | None, fresh: bool) -> Results:
    file = file or places.make_state_dir() / _STATE[quick]
    directory = file.with_name(f"{file.name}.d")
    if fresh:
        places.check_replaceable(file)
        for each in (file, *directory.glob("*.jsonl")):
            each.unlink(missing_ok=True)
    machine, commit = host.find(), host.commit()
    kept = state.State(file, state.setting(machine, commit, quick))
    places.make_output_dir(directory)
    if os.geteuid() != 0:
        note("labs of namespaces need root: entries that use them cannot be run")
    limit = f" within {QUICK_S / 60:.0f} minutes" if quick else ""
    note(f"{len(chosen)} entries{limit}; what is measured stands in {file}")
    loads = [host.load()]
    runner = Runner(kept, quick, directory, note)
    try:
        with up.termination_raises():
            outcomes = tuple(runner.entries(chosen))
    except (KeyboardInterrupt, SystemExit):
        note(f"what is measured stands in {file}; the same command goes on from there")
        raise
    loads += [*kept.loads(), host.load()]
    return Results(_kind(quick), commit, machine, (min(loads), max(loads)), outcomes)


def _kind(quick: bool) -> str:
    return "quick" if quick else "full"


def _listed(chosen: list[Entry]) -> Table:
    table = Table("entry", "of", "what", "the paper's", "criterion")
    for each in chosen:
        table.add_row(each.id, each.label, each.title, each.paper.where, each.criterion.text())
    return table


def _told(outcomes: tuple[Outcome, ...]) -> Table:
    table = Table("entry", "outcome", "why")
    for each in outcomes:
        table.add_row(each.id, each.outcome, each.why)
    return table
