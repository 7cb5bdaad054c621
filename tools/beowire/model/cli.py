# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire model`."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from beowire import drawing, places
from beowire.bench import pingpong
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.model import basis, figures, graph_cli, measure, plot, report, runs, trials, whatif_cli
from beowire.model.results import Results, Setting
from beowire.run import launch
from beowire.terminal import note, out

_RESULTS = Path("beowire-model.jsonl")
_FIGURES = Path("beowire-figures.svg")

app = typer.Typer(help="Speedup: fit it, measure it, bound it.", no_args_is_help=True)

JsonFile = Annotated[Path | None, typer.Option("--json", help="Write every figure to this file.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", help="Draw to this file (.png, .svg, .pdf).")
]


@app.callback()
def model_() -> None:
    """Speedup: fit it, measure it, bound it."""


@app.command()
def fit(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="CSV or JSON: N, time.")],
    per_node: Annotated[
        int, typer.Option(min=0, help="Use the runs with that many ranks per node; 0: all.")
    ] = 0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Of a run as a share of its time, if known.")
    ] = 0,
    most: Annotated[
        int, typer.Option(min=0, help="Nodes that could be measured; 0: twice the largest N.")
    ] = 0,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Fit N T = c0 + c1 N + c2 N^3 to measured times: a, n, N_opt and the best speedup."""
    _check_outputs(json_file, plot_file)
    _fit(files, per_node, noise, most, json_file, plot_file)


def _fit(
    files: list[Path],
    per_node: int,
    noise: float,
    most: int,
    json_file: Path | None,
    plot_file: Path | None,
) -> None:
    measured = runs.read(files, per_node)
    for line in measured.told():
        note(line)
    try:
        found = report.evaluate(measured, noise, most)
    except BeowireError as error:
        if measured.left_out:
            raise BeowireError(
                f"{error.what} (Rows left out: {measured.left_out}.)", error.fix
            ) from error
        raise
    if json_file is not None:
        places.write_json(json_file, found.as_json())
    if drawing.wanted(plot_file):
        plot.draw(found, plot_file)
    show(found)


def show(found: report.Report) -> None:
    """The report, for people."""
    out().print(report.summary(found), highlight=False)
    for told in found.runs.basis:
        out().print(f"processors: {told}", highlight=False)
    out().print(report.parameters(found))
    out().print(report.forms_table(found))
    for line in report.verdict(found):
        out().print(line, highlight=False)


@app.command("trials")
def trials_(
    count: Annotated[int, typer.Option("--trials", min=10, help="Of each case.")] = 1000,
    optimum: Annotated[float, typer.Option(min=8, help="N_opt of the made-up programs.")] = 32,
    noise: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Of a run as a share of its time.")
    ] = 0.02,
    json_file: JsonFile = None,
) -> None:
    """How often the intervals of made-up runs hold the truth, and how wide they are."""
    if json_file is not None:
        places.check_output(json_file)
    title = f"{count} trials, N_opt {optimum:g}, noise {100 * noise:g} %"
    table = Table("a", "N up to", title=title, title_justify="left")
    for name in trials.NAMES:
        table.add_column(f"{name} held, width", justify="right")
    table.add_column("N_opt told", justify="right")
    found = []
    for case in trials.cases(optimum, noise):
        note(f"a = {case.a:g}, N up to {case.reach:g} N_opt")
        told = trials.cover(case, count)
        found.append(told)
        cells = [_covered(told, name) for name in trials.NAMES]
        table.add_row(f"{case.a:g}", f"{case.reach:g} N_opt", *cells, f"{100 * told.clear:.0f} %")
    if json_file is not None:
        written = [each.as_json() for each in found]
        places.write_json(json_file, written)
    out().print(table)
    out().print(
        "Held: of the trials, %, whose 95 % interval has the truth. Width: median, % of it; from: "
        "the median lower end, where there is mostly no upper one.",
        highlight=False,
    )


def _covered(told: trials.Coverage, name: str) -> str:
    width = told.width[name]
    how = f"from {100 * told.bound[name]:.0f}" if width is None else f"{100 * width:.3g}"
    return f"{100 * told.held[name]:.1f}, {how}"


@app.command("measure", context_settings={"allow_interspersed_args": False})
def measure_(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD {N} ...")],
    nodes: Annotated[str, typer.Option(help="Numbers of nodes: 1,2,4-8.")],
    repeats: Annotated[int, typer.Option(min=1, help="Runs at each N.")] = 5,
    results: Annotated[
        Path, typer.Option(help="Keep each run here; what is here is not run again.")
    ] = _RESULTS,
    lab: Annotated[
        str | None, typer.Option(help="The nodes are this lab's, with equal limits of cpus.")
    ] = None,
    node_cores: Annotated[
        int, typer.Option(min=0, help="The nodes are machines with that many cores each.")
    ] = 0,
    waits: Annotated[
        bool, typer.Option("--waits", help="Calibrated waits stand for computing.")
    ] = False,
    per_node: Annotated[int, typer.Option(min=1, help="Ranks on each node.")] = 1,
    clock: Annotated[
        str, typer.Option("--time", help="Expression whose group is the time in the output.")
    ] = "",
    unit: Annotated[
        Literal["s", "ms", "us", "ns"], typer.Option(help="Of the time in the output.")
    ] = "s",
    limit: Annotated[float, typer.Option(min=0, help="Seconds a run may take; 0: any.")] = 0,
    unfit: Annotated[
        bool, typer.Option("--unfit", help="Measure even if the times are not to be fitted.")
    ] = False,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Run a command at several N, in turns and repeated, then fit: -- mpirun -n {ranks} PROGRAM."""
    numbers = measure.parse_nodes(nodes)
    plan = measure.Plan(command, numbers, repeats, per_node, limit, clock, unit)
    measure.check(plan)
    _check_outputs(json_file, plot_file)
    comparable = basis.find(numbers[-1], per_node, lab, node_cores, waits)
    if not comparable.fits and not unfit:
        raise BeowireError(
            f"These runs would say nothing of speedup: {comparable.text}.",
            f"{comparable.fix} --unfit measures them all the same, not to be fitted.",
        )
    note(f"processors: {comparable.text}")
    if waits:
        os.environ.setdefault(launch.YIELD, "0")  # ranks that wait long must not yield in a loop
    told = pingpong.machine()
    kept = Results(
        results,
        Setting(
            command=command,
            ranks_per_node=per_node,
            clock=f"{clock} in {unit}" if clock else "wall clock",
            machine=f"{told['architecture']}, Linux {told['kernel']}",
            basis=comparable.text,
            fits=comparable.fits,
        ),
    )
    try:
        with up.termination_raises():
            failed = measure.sweep(plan, kept, note)
    except (KeyboardInterrupt, SystemExit):
        note(f"what is measured stands in {results}; the same command goes on from there")
        raise
    if not clock:
        note("the times are the whole command's, launcher included; --time reads them from it")
    if comparable.fits:
        _fit([results], 0, 0, 0, json_file, plot_file)
    if failed:
        raise BeowireError(
            f"Runs that failed: {failed} of {len(numbers) * repeats}.",
            "Fix the cause (see above); the same command tries them again.",
        )


def _check_outputs(json_file: Path | None, plot_file: Path | None) -> None:
    if json_file is not None:
        places.check_output(json_file)
    if plot_file is not None:
        drawing.check_file(plot_file)


@app.command("figures")
def figures_(
    file: Annotated[Path, typer.Option("-o", help="Draw to this file.")] = _FIGURES,
) -> None:
    """The thesis's three figures of speedup, drawn again from its formulas."""
    drawing.check_file(file)
    figures.draw(file)
    note(f"drawn: {file}")


app.command("graph")(graph_cli.run)
app.command("what-if")(whatif_cli.run)
