# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench line`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import line, line_flow, result_file
from beowire.bench.line import Plan, Report
from beowire.bench.samples import Ratio
from beowire.errors import BeowireError
from beowire.terminal import note, out
from beowire.topology.keys import (
    format_rate,
    format_time,
    parse_bytes,
    parse_rate,
    parse_share,
    parse_time,
)
from beowire.topology.topology import Model


def run(
    rate: Annotated[str, typer.Option(help="Of the line.")] = "100M",
    delay: Annotated[str, typer.Option(help="One way; an answer takes it twice.")] = "25ms",
    loss: Annotated[str, typer.Option(help="Share of frames lost by chance.")] = "0",
    queue: Annotated[
        str, typer.Option(help="Bytes of room before the line; 0: 10 ms of its rate.")
    ] = "0",
    flows: Annotated[
        str,
        typer.Option(help="Taken in turn: beowire and TCP's controls, such as cubic,bbr."),
    ] = "",
    beside: Annotated[
        str, typer.Option(help="A TCP flow with this control shares the line all the time.")
    ] = "",
    ping: Annotated[
        bool, typer.Option("--ping", help="Measure a TCP ping-pong beside each flow.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=1, help="Of each flow that are measured.")] = 10,
    rounds: Annotated[int, typer.Option(min=1, help="Of all flows.")] = 5,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
) -> None:
    """Bulk over a long line: Beowire and TCP in turn, alone or beside a TCP flow."""
    plan = Plan(
        Model(
            rate_bits=parse_rate(rate),
            delay_ns=parse_time(delay),
            loss=parse_share(loss),
            queue_bytes=parse_bytes(queue),
        ),
        _flows(flows),
        beside,
        ping,
        seconds,
        rounds,
    )
    line.check(plan)
    if json_file is not None:
        places.check_output(json_file)
    report = line.measure(plan, note)
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("line", report.as_json()))
    _show(report)


def _flows(text: str) -> tuple[str, ...]:
    """Beowire and those of the two usual controls that the kernel has, if none is named."""
    if not text:
        return (line_flow.BEOWIRE, *(x for x in ("cubic", "bbr") if x in line_flow.controls()))
    names = tuple(each.strip() for each in text.split(","))
    if not all(names) or len(names) != len(set(names)):
        raise BeowireError(f"--flows {text}?", "Name each flow once, such as beowire,cubic.")
    return names


def _show(report: Report) -> None:
    plan = report.plan
    title = f"{format_rate(plan.line.rate_bits)}, {format_time(plan.line.delay_ns)} one way"
    if plan.line.loss:
        title += f", {plan.line.loss:.2%} lost"
    if plan.beside:
        title += f", beside TCP {plan.beside}"
    table = Table("flow", title=title, title_justify="left")
    headings = ["Mbit/s", "Beowire to it"]
    headings += ["the one beside", "share of both"] if plan.beside else []
    headings += ["ping p50 us", "p99 us", "p99 beside Beowire to it"] if plan.ping else []
    for heading in headings:
        table.add_column(heading, justify="right")
    for flow in plan.flows:
        table.add_row(*_row(report, flow))
    out().print(table)
    for run in report.runs:
        if not run.valid:
            out().print(f"* {run.flow}: the emulator says: {'; '.join(run.reasons)}")


def _row(report: Report, flow: str) -> list[str]:
    runs = report.of(flow)
    mark = "" if all(run.valid for run in runs) else " *"
    rates = sorted(run.bits for run in runs)
    cells = [flow, f"{rates[len(rates) // 2] / 1e6:.1f}{mark}", _told(report.over(flow))]
    if report.plan.beside:
        others = sorted(run.beside_bits for run in runs)
        shares = sorted(run.bits / (run.bits + run.beside_bits) for run in runs)
        cells += [f"{others[len(others) // 2] / 1e6:.1f}", f"{shares[len(shares) // 2]:.2f}"]
    if report.plan.ping:
        for key in ("p50", "p99"):
            values = sorted(run.ping_us[key] for run in runs if run.ping_us)
            cells.append(f"{values[len(values) // 2]:,.0f}")
        cells.append(_told(report.ping_over(flow)))
    return cells


def _told(found: Ratio | None) -> str:
    return str(found) if found is not None else "-"
