# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench activation`."""

from pathlib import Path
from statistics import geometric_mean
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import activation, activation_counted, arrival
from beowire.bench.activation import Key, Plan, Report
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.terminal import note, out

SCOPES = (*activation.SCOPES, "network")


def _chosen(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    if not wanted or not set(wanted) <= set(known):
        raise BeowireError(f"{option} {text}?", f"Choose among {', '.join(known)}.")
    return tuple(each for each in known if each in wanted)


def run(
    scopes: Annotated[str, typer.Option(help="With commas.")] = ",".join(SCOPES),
    events: Annotated[str, typer.Option(help="With commas.")] = ",".join(activation.EVENTS),
    measures: Annotated[str, typer.Option(help="With commas.")] = ",".join(activation.MEASURES),
    loads: Annotated[str, typer.Option(help="With commas.")] = ",".join(activation.LOADS),
    rounds: Annotated[int, typer.Option(min=1, help="In which the measures take turns.")] = 5,
    count: Annotated[int, typer.Option(min=1, max=1_000_000, help="Events of a run.")] = 2000,
    counted: Annotated[
        bool, typer.Option("--counted", help="Instructions, in a guest of one processor.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="3 rounds of 300 events.")] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every sample to this file.")
    ] = None,
) -> None:
    """From an event to whom it wakes, idle and under load, with measures and without."""
    wanted = _chosen("--scopes", scopes, SCOPES)
    plan = Plan(
        tuple(each for each in wanted if each != "network"),
        _chosen("--events", events, activation.EVENTS),
        _chosen("--measures", measures, activation.MEASURES),
        _chosen("--loads", loads, activation.LOADS),
        3 if quick else rounds,
        300 if quick else count,
        500 if quick else 1000,
    )
    if json_file is not None:
        places.check_output(json_file)
    if counted:
        _count(plan, json_file)
        return
    with up.termination_raises():
        report = activation.measure(plan, note)
        frames = arrival.measure(plan, note) if "network" in wanted else None
    if json_file is not None:
        told = frames.as_json() if frames is not None else None
        places.write_json(json_file, {**report.as_json(), "network": told})
    _show(report, frames)


def _count(plan: Plan, json_file: Path | None) -> None:
    found = activation_counted.measure(plan)
    if json_file is not None:
        places.write_json(json_file, activation_counted.as_json(found))
    table = Table("scope", "event", "measure", "first", "at most", "second", "at most")
    table.title = "instructions, medians; one processor"
    for column in table.columns[3:]:
        column.justify = "right"
    for key, run in found.items():
        steps = [activation.figures(run[f"{step}_ns"]) for step in ("first", "second")]
        shown = [f"{each[name]:,.0f}" for each in steps for name in ("p50", "max")]
        table.add_row(key.scope, key.event, key.measure, *shown)
    out().print(table)
    out().print(
        "Copies and large pages change how long an instruction takes, not their number. The second "
        "is longer if the first runs on until it sleeps."
    )


def _show(report: Report, frames: arrival.Report | None) -> None:
    if frames is not None and frames.missing:
        note(f"network was not measured: {frames.missing}")
    elif frames is not None:
        out().print(_arrivals(frames))
    if not report.runs:
        return
    for step, says in (
        ("first", "from the event to the first thread"),
        ("second", "from the first thread to the second"),
    ):
        out().print(_table(report, step, f"{says}, us"))
    for name, why in report.missing.items():
        note(f"{name} was not measured: {why}")
    if report.plan.count < 1000:
        note("p99.9 of fewer than 1000 events is their maximum")
    before, after = report.load
    out().print(
        f"Geometric means of {report.plan.rounds} rounds in turn of {report.plan.count} events; a "
        "ratio is that of a measure by none.\n"
        + (f"busy: {activation.LOAD_SAYS}.\n" if "busy" in report.plan.loads else "")
        + f"Load of the machine: {before:.1f} before, {after:.1f} afterwards."
    )
    paper = activation.PAPER
    out().print(
        f"Beside it, as a shape: {paper['before_us']:.0f} us before and {paper['after_us']:.0f} us "
        f"after on another machine, {paper['after_us'] / paper['before_us']:.2f}: the average by "
        "its authors' abstract, the maximum by their text."
    )


def _table(report: Report, step: str, title: str) -> Table:
    names = ("load", "scope", "event", "measure", "median", "p99.9", "average", "maximum")
    ratios = ("median [95 %]", "average [95 %]", "maximum [95 %]")
    table = Table(*names, *(f"ratio of {each}" for each in ratios), title=title)
    for column in table.columns[4:]:
        column.justify = "right"
    for key in sorted(report.runs, key=_place):
        shown = [f"{geometric_mean(report.figure(key, step, f)):,.1f}" for f in activation.FIGURES]
        compared = []
        for name in ("p50", "mean", "max"):
            ratio = report.ratio(key, step, name) if key.measure != "none" else None
            compared.append(str(ratio) if ratio is not None else "")
        table.add_row(key.load, key.scope, key.event, key.measure, *shown, *compared)
    return table


def _arrivals(report: arrival.Report) -> Table:
    names = ("load", "way", "from", "median", "p99.9", "average", "maximum")
    ratios = ("median [95 %]", "average [95 %]", "maximum [95 %]")
    title = "from the frame's arrival, and from the sender, to the program that waits, us; by TCP"
    table = Table(*names, *(f"ratio of {each}" for each in ratios), title=title)
    for column in table.columns[3:]:
        column.justify = "right"
    for step, says in (("arrived", "arrival"), ("one_way", "sender")):
        for key in sorted(report.runs, key=_way):
            shown = [
                f"{geometric_mean(report.figure(key, step, name)):,.1f}"
                for name in activation.FIGURES
            ]
            compared = [
                str(report.ratio(key, step, name)) if key[1] != "tcp" else ""
                for name in ("p50", "mean", "max")
            ]
            table.add_row(*key, says, *shown, *compared)
    return table


def _way(key: tuple[str, str]) -> tuple[int, int]:
    return activation.LOADS.index(key[0]), list(arrival.WAYS).index(key[1])


def _place(key: Key) -> tuple[int, ...]:
    return (
        activation.LOADS.index(key.load),
        activation.SCOPES.index(key.scope),
        activation.EVENTS.index(key.event),
        activation.MEASURES.index(key.measure),
    )
