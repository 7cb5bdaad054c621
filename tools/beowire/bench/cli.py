# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench`."""

import re
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from beowire import drawing, places, tabular
from beowire.bench import (
    activation_cli,
    compare_cli,
    exchange,
    exchange_plot,
    exchange_tables,
    idle_cli,
    kernel_cli,
    line_cli,
    overlap,
    pingpong,
    result_file,
    sockets_cli,
    start_cli,
    stripe_cli,
)
from beowire.bench.apps import cli as apps_cli
from beowire.bench.load import cli as load_cli
from beowire.bench.matrix import cli as matrix_cli
from beowire.errors import BeowireError
from beowire.run import options
from beowire.run.job import check_settings
from beowire.terminal import note, out
from beowire.topology.keys import parse_rate
from beowire.wan import bench_cli

app = typer.Typer(help="Compare transports.", no_args_is_help=True)


def parse_names(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the known names that a list with commas holds, in their own order."""
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    names = tuple(name for name in known if name in wanted)
    if not names or len(names) != len(set(wanted)):
        raise BeowireError(f"{option} {text}?", f"Choose among {', '.join(known)}.")
    return names


def check_sizes(text: str) -> None:
    """Sizes are read by the program; what it would refuse is refused before anything is started."""
    for each in text.split(",") if text else []:
        if not re.fullmatch(r"\d+[kmgKMG]?", each.strip()):
            raise BeowireError(f"--sizes {text}?", "Give sizes in bytes, such as 8,1k,1m.")


app.command("activation")(activation_cli.run)
app.command("apps")(apps_cli.run)
app.command("compare")(compare_cli.run)
app.command("idle")(idle_cli.run)
app.command("kernel")(kernel_cli.run)
app.command("line")(line_cli.run)
app.command("load")(load_cli.run)
app.command("matrix")(matrix_cli.run)
app.command("sockets")(sockets_cli.run)
app.command("start")(start_cli.run)
app.command("stripe")(stripe_cli.run)
app.command("wan")(bench_cli.run_)


@app.command("overlap")
def overlap_(
    rate: Annotated[str, typer.Option(help="Of the port between the nodes.")] = "50mbit",
    rounds: Annotated[int, typer.Option(min=1, help="Of transfer, computing, and both.")] = 7,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    kernel: Annotated[
        str, typer.Option(help="Release of the kernel, such as 6.1.0-30-amd64; default: stock.")
    ] = "",
) -> None:
    """MPI_Isend of 4 MiB, computing, MPI_Wait over the kernel module, in a guest."""
    parse_rate(rate)
    if json_file is not None:
        places.check_output(json_file)
    told = overlap.measure(rate, rounds, kernel)
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("overlap", told.as_json()))
    table = Table("", "ms", title=f"{told.bytes:,} bytes at {rate}, {told.library}")
    table.columns[1].justify = "right"
    for name, ns in (
        ("transfer", told.transfer_ns),
        ("computing", told.compute_ns),
        ("both at once", told.both_ns),
    ):
        table.add_row(name, f"{ns / 1e6:,.2f}")
    table.add_row("both to the longer of the two", str(told.ratio))
    out().print(table)


@app.callback()
def bench_() -> None:
    """Compare transports."""


@app.command("pingpong")
def pingpong_(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    mode: Annotated[str, typer.Option(help="latency, bandwidth, rate; with commas.")] = ",".join(
        pingpong.MODES
    ),
    sizes: Annotated[str, typer.Option(help="Message sizes: 8,1k,1m.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of TCP and Beowire.")] = 5,
    iterations: Annotated[
        int, typer.Option("--iters", min=0, help="Round trips or windows per run and size.")
    ] = 0,
    window: Annotated[int, typer.Option(min=1, help="Messages in flight.")] = 64,
    bind: Annotated[Literal["none", "core"], typer.Option(help="Pin ranks to cores.")] = "core",
    mpi: options.Mpi = "openmpi",
    baseline: Annotated[
        Literal["fastest", "native", "ofi", "ucx"], typer.Option(help="Which TCP to compare with.")
    ] = "fastest",
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
    chosen: tabular.Chosen = "table",
) -> None:
    """Ping-pong over TCP and over Beowire in turn: percentiles, ratios and their intervals."""
    where = options.choose_cluster(lab, hosts, hostfile, ssh, network)
    check_sizes(sizes)
    plan = pingpong.Plan(
        modes=tuple(
            each for each in pingpong.MODES if each in parse_names("--mode", mode, pingpong.MODES)
        ),
        sizes=sizes,
        rounds=rounds,
        iterations=iterations,
        window=window,
        bind=bind,
        mpi=mpi,
        baseline=baseline,
    )
    if json_file is not None:
        places.check_output(json_file)
    check_settings(where)
    report = pingpong.compare(plan, where, note)
    result = report.as_json()
    if json_file is not None:
        told = {**result, "lab": options.described_lab(where)}
        places.write_json(json_file, result_file.stamped("pingpong", told))
    rows = [tabular.flat(each) for each in result["figures"]]
    tabular.tell(chosen, rows, lambda: _show_pingpong(report))


def _show_pingpong(report: pingpong.Report) -> None:
    out().print(figures_table(report.figures))
    for name, stack in report.baseline.items():
        out().print(f"TCP for {name}: {stack}. {report.commands[f'{name} tcp']}")


@app.command("exchange")
def exchange_(
    lab: options.Lab = None,
    hosts: options.Hosts = None,
    hostfile: options.HostFile = None,
    pattern: Annotated[
        Literal["pair", "scatter", "gather"],
        typer.Option(help="Two ranks of one node; the first node to the others; or from them."),
    ] = "pair",
    calls: Annotated[str, typer.Option(help="blocking, nonblocking; with commas.")] = ",".join(
        exchange.CALLS
    ),
    types: Annotated[
        str, typer.Option(help="byte, double, vector, struct; with commas.")
    ] = ",".join(exchange.TYPES),
    sizes: Annotated[str, typer.Option(help="Message sizes: 1k,64k,1m.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="How often the settings take turns.")] = 5,
    iterations: Annotated[
        int, typer.Option("--iters", min=0, help="Turns for each size; 0: by size.")
    ] = 0,
    window: Annotated[
        int, typer.Option(min=1, help="Messages in flight for each node: scatter, gather.")
    ] = 16,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw rate against size: FILE.svg, .png or .pdf.")
    ] = None,
    bind: Annotated[Literal["none", "core"], typer.Option(help="Pin ranks to cores.")] = "core",
    mpi: options.Mpi = "openmpi",
    tcp_stack: Annotated[
        Literal["native", "ofi", "ucx"], typer.Option(help="Which software speaks TCP.")
    ] = "native",
    ssh: options.Ssh = "ssh",
    network: options.Network = "",
    chosen: tabular.Chosen = "table",
) -> None:
    """Rates inside a node, or of one node with all others, by size, MPI type and calls."""
    where = options.choose_cluster(lab, hosts, hostfile, ssh, network)
    check_sizes(sizes)
    plan = exchange.Plan(
        pattern=pattern,
        calls=parse_names("--calls", calls, exchange.CALLS),
        types=parse_names("--types", types, exchange.TYPES),
        sizes=sizes,
        rounds=rounds,
        iterations=iterations,
        window=window,
        bind=bind,
        mpi=mpi,
        tcp_stack=tcp_stack,
    )
    exchange.check(plan, where)
    if plot is not None:
        drawing.check_file(plot)
    if json_file is not None:
        places.check_output(json_file)
    check_settings(where)
    report = exchange.measure(plan, where, note)
    result = report.as_json()
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("exchange", result))
    if drawing.wanted(plot):
        exchange_plot.draw(report, plot)
    rows = [tabular.flat(each) for each in result["figures"]]
    tabular.tell(chosen, rows, lambda: _show_exchange(report))


def _show_exchange(report: exchange.Report) -> None:
    for table in exchange_tables.tables(report):
        out().print(table)
    for setting, command in report.commands.items():
        out().print(f"{setting}: {command}")


def figures_table(figures: list[pingpong.Figure]) -> Table:
    """Medians of all samples and the bad one per cent: of times the longest, of rates the lowest.
    Beside them the ratio of each round's medians, which need not be that of all."""
    table = Table("figure", "bytes", "unit")
    for heading in ("TCP p50", "worst 1 %", "Beowire p50", "worst 1 %", "ratio of rounds [95 %]"):
        table.add_column(heading, justify="right")
    for each in figures:
        tail = "p99" if each.lower_is_better else "p1"
        table.add_row(
            each.mode,
            f"{each.size_bytes:,}",
            each.unit,
            f"{each.tcp['p50']:,.2f}",
            f"{each.tcp[tail]:,.2f}",
            f"{each.beowire['p50']:,.2f}",
            f"{each.beowire[tail]:,.2f}",
            str(each.ratio),
        )
    return table
