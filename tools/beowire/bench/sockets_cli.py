# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench sockets`."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import result_file, sockets
from beowire.bench.sockets import Report
from beowire.bench.sockets_figures import NAMES
from beowire.lab import up
from beowire.terminal import note, out


def run(
    lab: Annotated[
        str | None, typer.Option(metavar="NAME", help="This lab, instead of one of its own.")
    ] = None,
    figures: Annotated[str, typer.Option(help="With commas.")] = ",".join(NAMES),
    rounds: Annotated[int, typer.Option(min=1, help="Of TCP and Beowire.")] = 5,
    mtu: Annotated[int, typer.Option(min=576, max=65000, help="Of its own lab.")] = 9000,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
) -> None:
    """Unmodified socket programs over TCP and by `beowire sockets`, in turn."""
    wanted = sockets.chosen(figures)
    if json_file is not None:
        places.check_output(json_file)
    with up.termination_raises(), contextlib.ExitStack() as made:
        name = lab or made.enter_context(sockets.own_lab(mtu))
        report = sockets.measure(wanted, name, rounds, note)
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("sockets", report.as_json()))
    _show(report)


def _show(report: Report) -> None:
    table = Table("", "", "unit", "TCP", "Beowire", "ratio [95 %]")
    for column in (3, 4, 5):
        table.columns[column].justify = "right"
    for each in report.figures:
        tcp, beowire = sockets.both(each)
        table.add_row(
            each.figure.name,
            each.figure.says,
            each.figure.unit,
            f"{tcp:,.4g}",
            f"{beowire:,.4g}",
            str(each.ratio),
        )
    out().print(table)
    for name, why in report.missing.items():
        note(f"{name} was not measured: {why}")
    before, after = report.load
    out().print(
        f"Geometric means of {report.rounds} rounds in turn; a ratio is Beowire's by TCP's. "
        f"Load of the machine: {before:.1f} before, {after:.1f} afterwards."
    )
