# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire demo`, and how its result is told to a person."""

import os
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench.matrix import tables
from beowire.demo import comparison
from beowire.progress import Progress
from beowire.run import cluster, options
from beowire.terminal import out


def demo_(
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all that was found to this file.")
    ] = None,
    hosts: Annotated[
        str | None, typer.Option(help="Between these real machines, over ssh, instead of a lab.")
    ] = None,
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Show unmodified MPI programs over TCP and over Beowire, on a lab of four nodes."""
    if json_file is not None:
        places.check_output(json_file)
    comparison.check_tools()
    with Progress(comparison.steps(hosts is not None)).shown() as progress:
        if hosts is not None:
            result = comparison.on_hosts(cluster.of_hosts([hosts], ssh, network), progress)
        else:
            result = comparison.on_lab(f"demo{os.getpid()}", progress)
    tell(result, progress.elapsed_s, hosts is not None)
    if json_file is not None:
        places.write_json(json_file, result.as_json())


def tell(result: comparison.Result, elapsed_s: int, hosts: bool) -> None:
    """Prints the result; the table last, where the eye rests."""
    say = out().print
    if result.frames:
        say(f"\n{comparison.FRAMES_SHOWN} of the frames, as tshark decodes them:\n", style="bold")
        say(result.frames)
    say("\nWhat the programs are", style="bold")
    say(f"MPI library: {result.library}")
    for file, checksum in result.stock.items():
        say(f"{checksum}  {file} (before and after)")
    say("\nHow they were started", style="bold")
    for transport in comparison.TRANSPORTS:
        say(result.commands[f"pi over {transport}"])
    say("\nWhat carried the messages", style="bold")
    say(_carried_table(result))
    if result.lossy is not None:
        say(
            f"With {result.lossy.loss:.0%} of the frames lost ({result.lossy.frames_lost:,} of "
            f"{result.lossy.frames:,}; {result.lossy.retransmits:,} sent again) "
            f"{' and '.join(result.lossy.programs)} computed identical results."
        )
    if result.killed is not None:
        killed = result.killed
        say(
            f"Rank {killed.rank} was killed: the job ended {killed.reported_after_s:.1f} s later, "
            f"exit status {killed.exit_status}: {killed.report}",
        )
    for missing in result.left_out:
        say(f"Left out: {missing}")
    say(f"\nBoth transports, in turn, one cluster, {elapsed_s} s in all", style="bold")
    say(_rows_table(result.rows))
    say(
        "A ratio is Beowire's figure over TCP's in the same round, their geometric mean with its "
        "95 % interval: below 1 is better for times, above 1 for MB/s."
    )
    if result.cells:
        say(
            "\nBeowire's figure to that of the fastest software here that speaks TCP, two ranks, "
            f"MTU {result.cells[0].key.mtu}",
            style="bold",
        )
        say(tables.by_size(result.cells))
        say("The whole matrix: ./beowire bench matrix --quick")
    if not hosts:
        say(
            "The nodes' links are virtual. Between real machines a NIC's interrupts and the wire "
            "add the same to both sides, and ratios shrink towards 1."
        )


def _carried_table(result: comparison.Result) -> Table:
    table = Table("runs over")
    for heading in ("payload by Beowire, B", "raw frames on the wire, B", "TCP on the wire, B"):
        table.add_column(heading, justify="right")
    for transport, sums in result.carried.items():
        table.add_row(
            transport,
            f"{sums['payload_bytes']:,}",
            f"{sums['raw_bytes']:,}",
            f"{sums['tcp_bytes']:,}",
        )
    return table


def _rows_table(rows: list[comparison.Row]) -> Table:
    table = Table("program", "", "unit")
    for heading in ("TCP", "Beowire", "ratio [95 %]"):
        table.add_column(heading, justify="right")
    table.add_column("answers")
    for row in rows:
        table.add_row(
            row.name,
            row.about,
            row.unit,
            f"{median(row.tcp):,.3g}" if row.lower_is_better else f"{median(row.tcp):,.0f}",
            f"{median(row.beowire):,.3g}" if row.lower_is_better else f"{median(row.beowire):,.0f}",
            str(row.ratio),
            "identical" if row.answers_agree else "-",
        )
    return table
