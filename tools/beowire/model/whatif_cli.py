# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire model what-if`."""

from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from beowire import drawing, places
from beowire.errors import BeowireError
from beowire.model import loggp, report, runs, whatif
from beowire.model.whatif import Prediction
from beowire.terminal import note, out
from beowire.topology.keys import parse_bytes

_STEPS = 200


def run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="As for model fit.")],
    latency: Annotated[str, typer.Option(help="Of the network: x0.5, or 20us.")] = "",
    rate: Annotated[str, typer.Option(help="Of the network: x10, or 10G.")] = "",
    cpu: Annotated[str, typer.Option(help="Speed of the processors: x2.")] = "",
    message: Annotated[str, typer.Option(help="Bytes of a typical message: 8k.")] = "",
    pingpong: Annotated[
        Path | None, typer.Option(help="The network now: a report of bench pingpong.")
    ] = None,
    transport: Annotated[
        Literal["beowire", "tcp"], typer.Option(help="Of that report.")
    ] = "beowire",
    network: Annotated[
        str,
        typer.Option(
            help="The network now: latency, overhead, rate, and the rate that the processors "
            "manage if it is known: 30us,2us,1G,3G."
        ),
    ] = "",
    against: Annotated[
        Path | None, typer.Option(help="Runs measured after the change, to compare with.")
    ] = None,
    per_node: Annotated[
        int, typer.Option(min=0, help="Use the runs with that many ranks per node; 0: all.")
    ] = 0,
    noise: Annotated[
        float, typer.Option(min=0, max=1, help="Of a run as a share of its time, if known.")
    ] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", help="Draw to this file (.png, .svg, .pdf).")
    ] = None,
) -> None:
    """What a program's speedup would be on another network or with other processors."""
    if json_file is not None:
        places.check_output(json_file)
    if plot_file is not None:
        drawing.check_file(plot_file)
    known = _network(pingpong, transport, network)
    change = whatif.parse(latency, rate, cpu, known)
    if change == whatif.Change():
        raise BeowireError("Nothing is changed.", "Give --latency, --rate or --cpu.")
    size = parse_bytes(message) if message else 0
    measured = runs.read(files, per_node)
    for line in measured.told():
        note(line)
    later = runs.read([against], per_node) if against is not None else None
    now = whatif.unchanged(measured, noise)
    if known is not None and not size and whatif.counted(measured.runs):
        found = [whatif.predict_counted(measured, change, known, noise)]
    elif now.fit is None:
        raise BeowireError(now.remarks[0], "Count the traffic, with which no law is needed.")
    else:
        found = whatif.predict(now.fit, change, known, size)
    if json_file is not None:
        told: dict[str, Any] = {
            "now": now.as_json(),
            "network": known.as_json() if known else None,
            "change": str(change),
            "predictions": [each.as_json() for each in found],
        }
        if later is not None:
            told["errors"] = [whatif.errors(each, later) for each in found]
        places.write_json(json_file, told)
    if drawing.wanted(plot_file):
        _draw(now, found, measured, plot_file)
    if known is not None:
        shares = known.shares(size) if size else {}
        split = ", ".join(f"{part} {100 * share:.0f} %" for part, share in shares.items())
        out().print(f"network now: {known}{f'; a message: {split}' if split else ''}")
    if len(found) > 1:
        out().print(
            "The size of a message and the network are not both known (--message, --pingpong): "
            "between these two."
        )
    out().print(_table(now, change, found))
    nodes = sorted({run.nodes for run in measured.runs})
    out().print(_times(now, found, nodes))
    if later is not None:
        out().print(_errors(found, later))
    for each in (now, *found):
        for line in each.remarks:
            out().print(f"{each.name}: {line}", highlight=False)


def _network(pingpong: Path | None, transport: str, network: str) -> loggp.LogGP | None:
    if pingpong is not None and network:
        raise BeowireError("--pingpong and --network both tell the network.", "Give one.")
    if pingpong is not None:
        return loggp.from_pingpong(pingpong, transport)
    return loggp.parse(network) if network else None


def _table(now: Prediction, change: whatif.Change, found: list[Prediction]) -> Table:
    table = Table("", "now", *(f"{change}; {each.name}" for each in found))
    laws = [each.fit for each in (now, *found)]
    rows = [report.words(law) if law else ("-",) * 4 for law in laws]
    for place, name in enumerate(("a", "n", "N_opt", "S(N_opt)")):
        table.add_row(name, *(row[place] for row in rows))
    return table


def _times(now: Prediction, found: list[Prediction], nodes: list[int]) -> Table:
    """Time at each N that was measured, as a share of the time now."""
    table = Table("N", *(str(each) for each in nodes), title="time to that now")
    for each in found:
        base = now if each.medians else replace(now, medians={})
        shares = [(each.time(number) or 0) / (base.time(number) or 1) for number in nodes]
        table.add_row(each.name, *(f"{share:.2f}" for share in shares))
    return table


def _errors(found: list[Prediction], later: runs.Runs) -> Table:
    """How far the predictions are off, at each N."""
    nodes = sorted({run.nodes for run in later.runs})
    table = Table("N", *map(str, nodes), "median", title="predicted above measured, %")
    for each in found:
        off = whatif.errors(each, later)
        cells = [f"{100 * off[number]:+.0f}" if number in off else "-" for number in nodes]
        middle = median(abs(share) for share in off.values()) if off else float("nan")
        table.add_row(each.name, *cells, f"{100 * middle:.0f}")
    return table


def _draw(now: Prediction, found: list[Prediction], measured: runs.Runs, file: Path | None) -> None:
    """Speed, one node now being 1: measured, fitted and predicted."""
    import numpy as np

    figure = drawing.figure(8, 6)
    axes = figure.subplots()
    nodes = measured.nodes()
    alone = now.time(1) or max(now.medians.values())
    across = np.linspace(1, 1.5 * float(nodes.max()), _STEPS)
    axes.plot(nodes, alone / measured.times(), "k.", label="measured")
    for each, line in zip((now, *found), ("k", *["--"] * len(found)), strict=True):
        if each.fit is not None:
            axes.plot(across, alone / each.fit.time(across), line, label=each.name)
        if each is not now and each.medians:
            speeds = [alone / time for time in each.medians.values()]
            axes.plot(list(each.medians), speeds, "+", label=f"{each.name}, medians")
    axes.set_xlabel("N")
    axes.set_ylabel("speed, one node now = 1")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
    drawing.save(figure, file)
