# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire model graph`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import drawing, places
from beowire.model import graph_file, graph_plot, measure
from beowire.model.graph import Tiers, tiers
from beowire.model.schedule import Schedule, schedule
from beowire.terminal import out

_NAMES_SHOWN = 12
_TIERS_SHOWN = 40


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Tasks with costs: JSON or DOT.")],
    nodes: Annotated[str, typer.Option(help="Schedule on so many nodes: 1,2,4-8.")] = "1,2,4,8",
    communication: Annotated[
        float, typer.Option(min=0, help="Edges cost so many times what they say.")
    ] = 1,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw to this file (.png, .svg, .pdf).")
    ] = None,
) -> None:
    """The tiers of a task graph, its critical path, the bound on speedup, and schedules."""
    numbers = measure.parse_nodes(nodes)
    if json_file is not None:
        places.check_output(json_file)
    if plot_file is not None:
        drawing.check_file(plot_file)
    graph = graph_file.read(file)
    form = tiers(graph)
    schedules = [schedule(graph, each, communication) for each in numbers]
    if json_file is not None:
        told = form.as_json() | {
            "communication": communication,
            "schedules": [
                each.as_json()
                | {"speedup": form.total / each.time, "bound": form.bound(each.nodes)}
                for each in schedules
            ],
        }
        places.write_json(json_file, told)
    if drawing.wanted(plot_file):
        graph_plot.draw(graph, form, schedules[-1], plot_file)
    out().print(_tiers_table(graph.nodes(data="cost"), form))
    for line in _sentences(len(graph), graph.number_of_edges(), form):
        out().print(line, highlight=False)
    out().print(_schedules_table(form, schedules))


def _tiers_table(costs: "dict[str, float]", form: Tiers) -> Table:
    cost = dict(costs)
    table = Table("tier", "tasks", "longest", "together", "names")
    for column in (0, 1, 2, 3):
        table.columns[column].justify = "right"
    for number, row in enumerate(form.tiers[:_TIERS_SHOWN], 1):
        times = [cost[task] for task in row]
        more = f" and {len(row) - _NAMES_SHOWN} others" if len(row) > _NAMES_SHOWN else ""
        names = ", ".join(row[:_NAMES_SHOWN]) + more
        table.add_row(str(number), str(len(row)), f"{max(times):g}", f"{sum(times):g}", names)
    if len(form.tiers) > _TIERS_SHOWN:
        table.add_row("...", "", "", "", f"{len(form.tiers) - _TIERS_SHOWN} more tiers")
    return table


def _sentences(tasks: int, edges: int, form: Tiers) -> list[str]:
    independent = (
        f"; at most {form.independent} tasks are independent of one another"
        if form.independent is not None
        else ""
    )
    path = " -> ".join(form.path[:_NAMES_SHOWN])
    if len(form.path) > _NAMES_SHOWN:
        path += f" -> ... -> {form.path[-1]} ({len(form.path)} tasks)"
    return [
        f"{tasks} tasks, {edges} edges, {len(form.tiers)} tiers, width {form.width}{independent}.",
        f"Critical path: {path}, {form.path_time:g} of {form.total:g} in all.",
        f"Bound on speedup, on any number of nodes and without communication: "
        f"{form.total / form.path_time:.3g}. Tier by tier in lockstep: "
        f"{form.total / form.lockstep:.3g}.",
    ]


def _schedules_table(form: Tiers, schedules: list[Schedule]) -> Table:
    table = Table("N")
    for heading in ("used", "time", "speedup", "bound", "efficiency", "edges paid"):
        table.add_column(heading, justify="right")
    for each in schedules:
        speedup = form.total / each.time
        table.add_row(
            str(each.nodes),
            str(each.used),
            f"{each.time:g}",
            f"{speedup:.3g}",
            f"{form.bound(each.nodes):.3g}",
            f"{100 * speedup / each.nodes:.0f} %",
            f"{each.communication:g}",
        )
    return table
