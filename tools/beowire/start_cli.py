# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench start`."""

import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import lab_up, places, run_cli, start_bench
from beowire.cluster import Cluster
from beowire.start_bench import Plan, Report
from beowire.terminal import note, out

_RANKS = ",".join(map(str, start_bench.RANKS))


def run(
    lab: run_cli.Lab = None,
    hosts: run_cli.Hosts = None,
    hostfile: run_cli.HostFile = None,
    ranks: Annotated[str, typer.Option(help="Of the jobs; with commas.")] = _RANKS,
    rounds: Annotated[int, typer.Option(min=1, help="Of TCP and Beowire, both ways.")] = 11,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    mpi: run_cli.Mpi = "openmpi",
    ssh: run_cli.Ssh = "ssh",
    network: run_cli.Network = "",
) -> None:
    """Jobs that only start, meet once and end, over TCP and Beowire; by default on an own lab."""
    plan = Plan(start_bench.parse_ranks(ranks), rounds, mpi)
    if json_file is not None:
        places.check_output(json_file)
    with lab_up.termination_raises(), contextlib.ExitStack() as made:
        if lab is None and hosts is None and hostfile is None:
            where: Cluster = made.enter_context(start_bench.own_lab())
        else:
            where = run_cli.choose_cluster(lab, hosts, hostfile, ssh, network)
        report = start_bench.measure(plan, where, note)
        described = run_cli.described_lab(where)
    if json_file is not None:
        places.write_json(json_file, {**report.as_json(), "lab": described})
    _show(report)


def _show(report: Report) -> None:
    table = Table("ranks", "started by", "TCP, s", "Beowire, s", "ratio [95 %]")
    for column in (0, 2, 3, 4):
        table.columns[column].justify = "right"
    for each in report.figures:
        tcp_s, beowire_s = start_bench.medians(each)
        table.add_row(
            str(each.ranks), each.way, f"{tcp_s:.3f}", f"{beowire_s:.3f}", str(each.ratio)
        )
    out().print(table)
    before, after = report.load
    out().print(
        f"Medians of {report.plan.rounds} rounds in turn. Load of the machine: {before:.1f} "
        f"before, {after:.1f} afterwards."
    )
