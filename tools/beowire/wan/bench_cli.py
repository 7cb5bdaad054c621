# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench wan`."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import drawing, places
from beowire.bench import result_file
from beowire.bench.samples import Ratio
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.terminal import note, out
from beowire.wan import grid, plot, report, run, sites
from beowire.wan.report import Report, Row
from beowire.wan.results import Results, Setting

_RESULTS = Path("beowire-wan.jsonl")


def run_(
    name: Annotated[
        str,
        typer.Option(
            "--grid", help="How much: quick (minutes), ready (an hour), paper (as in [C2])."
        ),
    ] = "quick",
    results: Annotated[
        Path, typer.Option(help="Keep each result here; what is here is not run again.")
    ] = _RESULTS,
    rounds: Annotated[int, typer.Option(min=0, help="Of the grid; 0: the grid's own.")] = 0,
    nodes: Annotated[int, typer.Option(help="Nodes, half of them at each site.")] = 4,
    cpus: Annotated[
        float, typer.Option(min=0, help="Processor time of each node; 0: equal shares.")
    ] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how long it would take, after small runs.")
    ] = False,
    report_only: Annotated[
        bool, typer.Option("--report", help="Run nothing; show what the file has.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw to this file (.png, .svg, .pdf).")
    ] = None,
) -> None:
    """HPL's work on two sites over an emulated line: delay, rate, problem and block size."""
    found = grid.find(name, rounds)
    if json_file is not None:
        places.check_output(json_file)
    if plot_file is not None:
        drawing.check_file(plot_file)
    sites.chosen(sites.topology(cpus), nodes)
    cpus = cpus or sites.default_cpus(nodes, os.cpu_count() or 1)
    run.check_tools()
    setting = run.setting(nodes, cpus)
    if report_only and not results.exists():
        raise BeowireError(f"There is no {results}.", "Name the file of results by --results.")
    kept = Results(results, setting)
    if not report_only and not _measure(found, kept, dry_run):
        return
    _show(report.evaluate(found, kept), setting, json_file, plot_file)


def _measure(wanted: grid.Grid, kept: Results, dry_run: bool) -> bool:
    """Runs what is missing; whether the results are to be shown."""
    if all(each in kept.done() for each in wanted.runs()):
        note(f"all runs of grid {wanted.name} stand in {kept.path} already")
        return not dry_run
    with (
        up.termination_raises(),
        sites.made(kept.setting.nodes, kept.setting.cpus) as lab,
    ):
        model = run.calibrated(lab, kept, note)
        missing = [each for each in wanted.runs() if each not in kept.done()]
        left = run.duration(model.grid_s(wanted, kept.done()))
        note(
            f"grid {wanted.name}: {len(missing)} runs of {len(list(wanted.runs()))} to do, "
            f"about {left} ({model})"
        )
        if dry_run:
            for number, point in missing:
                out().print(
                    f"{model.run_s(point):8.1f} s  round {number}  {point}", highlight=False
                )
            return False
        try:
            run.sweep(lab, wanted, kept, model, note)
        except (KeyboardInterrupt, SystemExit):
            note(f"what is measured stands in {kept.path}; the same command goes on from there")
            raise
    return True


def _show(report: Report, setting: Setting, json_file: Path | None, plot_file: Path | None) -> None:
    told = (
        f"{setting.nodes} nodes at two sites, one rank and {setting.cpus:g} processors each "
        f"(limits by control groups), {setting.library}, {setting.machine}"
    )
    if json_file is not None:
        whole = {"setting": setting.as_json(), "order": "A B A B, A is TCP", **report.as_json()}
        places.write_json(json_file, result_file.stamped("wan", whole))
    if drawing.wanted(plot_file):
        plot.draw(report, plot_file)
    for name in dict.fromkeys(row.sweep for row in report.rows):
        out().print(_table(name, [row for row in report.rows if row.sweep == name], report))
    for text in report.notes:
        out().print(text, highlight=False)
    out().print(told, highlight=False)
    invalid = {str(row.point): row.invalid for row in report.rows if row.invalid}
    for point, reasons in invalid.items():
        out().print(f"* {point}: the emulator says: {'; '.join(reasons)}", highlight=False)


def _table(name: str, rows: list[Row], report: Report) -> Table:
    """Relative performance of both transports side by side."""
    table = Table("N", "block", "ms", "Mbit/s", title=f"sweep over {name}", title_justify="left")
    for heading in ("TCP s", "relative", "Beowire s", "relative", "time, Beowire/TCP", "paper"):
        table.add_column(heading, justify="right")
    cases = dict.fromkeys((row.point.problem, row.point.line) for row in rows)
    for problem, line in cases:
        cells = []
        paper = ""
        for transport in grid.TRANSPORTS:
            row = next(
                (each for each in rows if each.point == grid.Point(transport, problem, line)),
                None,
            )
            cells += _cells(row)
            if row is not None and row.paper is not None:
                paper = f"{row.paper:.2f}"
        over = report.over_tcp.get(f"{problem}, {line}")
        table.add_row(
            str(problem.size),
            str(problem.block),
            f"{line.delay_ms:g}",
            f"{line.rate_mbit:g}",
            *cells,
            _ratio(over, max((row.rounds for row in rows), default=0)),
            paper,
        )
    return table


def _cells(row: Row | None) -> list[str]:
    """Time and relative performance; a star where the emulator objects, a circle where nothing
    watched."""
    if row is None:
        return ["-", "-"]
    mark = "*" if row.invalid else ("" if row.judged else "°")
    return [f"{row.time_s:.2f}{mark}", _ratio(row.relative, row.rounds)]


def _ratio(ratio: Ratio | None, rounds: int) -> str:
    """One round tells nothing of an interval, which need not be said in each row."""
    if ratio is None:
        return "-"
    return str(ratio) if rounds > 1 else f"{ratio.value:.2f}"
