# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench stripe`."""

from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import result_file, stripe
from beowire.bench.stripe import Plan, Report
from beowire.terminal import note, out
from beowire.topology.keys import format_rate, parse_rate


def run(
    rates: Annotated[str, typer.Option(help="Of the links, two or three.")] = "100M,100M",
    mtu: Annotated[int, typer.Option(min=576, max=65535, help="Of all links.")] = 1500,
    messages: Annotated[
        int, typer.Option(min=1, help="Of 1 MiB, on their way at the same time.")
    ] = 4,
    cut: Annotated[
        int, typer.Option(min=0, help="Also cut this link (1: the first) during a transfer.")
    ] = 0,
    seconds: Annotated[float, typer.Option(min=1, help="Of each transfer, measured.")] = 5,
    rounds: Annotated[int, typer.Option(min=1, help="Of all transfers.")] = 5,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
) -> None:
    """One transfer over several links of a node, to what each carries alone [D4]."""
    links = tuple(parse_rate(rate.strip()) for rate in rates.split(","))
    plan = Plan(links, mtu, messages, seconds, rounds, cut)
    stripe.check(plan)
    if json_file is not None:
        places.check_output(json_file)
    report = stripe.measure(plan, note)
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("stripe", report.as_json()))
    _show(report)


def _show(report: Report) -> None:
    plan = report.plan
    table = Table("links", title=f"MTU {plan.mtu_bytes}", title_justify="left")
    table.add_column("Mbit/s", justify="right")
    for link, rate in enumerate(plan.rates_bits):
        alone = median([each[link] for each in report.alone])
        table.add_row(f"link {link + 1} ({format_rate(rate)})", f"{alone / 1e6:.1f}")
    table.add_row("together", f"{median(report.together) / 1e6:.1f}")
    out().print(table)
    out().print(f"Together to the sum: {report.gain}")
    if not report.cuts:
        return
    stall, without, again, returned = (
        median([vars(each)[key] for each in report.cuts])
        for key in ("stall_s", "without_bits", "again_bits", "returned_bits")
    )
    longest = max(each.stall_s for each in report.cuts)
    out().print(
        f"Link {plan.cut} cut while messages of 1 MiB went to and fro: all arrived, one of them "
        f"{stall * 1e3:.0f} ms late (at most {longest * 1e3:.0f}); {without / 1e6:.1f} Mbit/s one "
        f"way without the link, {again / 1e6:.1f} when it was back, {returned / 1e6:.1f} by it."
    )
