# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench start`."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import result_file, start
from beowire.bench.start import Plan, Report
from beowire.lab import up
from beowire.run import options
from beowire.run.cluster import Cluster
from beowire.terminal import note, out

_RANKS = ",".join(map(str, start.RANKS))


def run(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    ranks: Annotated[str, typer.Option(help="Of the jobs; with commas.")] = _RANKS,
    rounds: Annotated[int, typer.Option(min=1, help="Of TCP and Beowire, both ways.")] = 11,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    mpi: options.Mpi = "openmpi",
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
) -> None:
    """Jobs that only start, meet once and end, over TCP and Beowire; by default on an own lab."""
    plan = Plan(start.parse_ranks(ranks), rounds, mpi)
    if json_file is not None:
        places.check_output(json_file)
    with up.termination_raises(), contextlib.ExitStack() as made:
        if lab is None and hosts is None and hostfile is None:
            where: Cluster = made.enter_context(start.own_lab())
        else:
            where = options.choose_cluster(lab, hosts, hostfile, ssh, network)
        report = start.measure(plan, where, note)
        described = options.described_lab(where)
    if json_file is not None:
        told = {**report.as_json(), "lab": described}
        places.write_json(json_file, result_file.stamped("start", told))
    _show(report)


def _show(report: Report) -> None:
    table = Table("ranks", "started by", "TCP, s", "Beowire, s", "ratio [95 %]")
    for column in (0, 2, 3, 4):
        table.columns[column].justify = "right"
    for each in report.figures:
        tcp_s, beowire_s = start.medians(each)
        table.add_row(
            str(each.ranks), each.way, f"{tcp_s:.3f}", f"{beowire_s:.3f}", str(each.ratio)
        )
    out().print(table)
    before, after = report.load
    out().print(
        f"Medians of {report.plan.rounds} rounds in turn. Load of the machine: {before:.1f} "
        f"before, {after:.1f} afterwards."
    )
