# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire bench idle`."""

from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from beowire import places
from beowire.bench import idle, result_file
from beowire.bench.idle import Plan, Report
from beowire.errors import BeowireError
from beowire.terminal import note, out


def run(
    numbers: Annotated[
        str, typer.Option("--idle", help="Idle endpoints on each node, with commas.")
    ] = "64",
    links: Annotated[str, typer.Option(help="packet, udp; with commas.")] = "packet,udp",
    mtu: Annotated[int, typer.Option(min=576, max=65535, help="Of the lab.")] = 9000,
    iterations: Annotated[int, typer.Option("--iters", min=1, help="Round trips a time.")] = 20000,
    rounds: Annotated[int, typer.Option(min=1, help="Of all numbers and links.")] = 7,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write every figure to this file.")
    ] = None,
) -> None:
    """8 B between two nodes beside idle endpoints on both, to the time without them."""
    plan = Plan(_numbers(numbers), _links(links), mtu, iterations, rounds)
    idle.check(plan)
    if json_file is not None:
        places.check_output(json_file)
    report = idle.measure(plan, note)
    if json_file is not None:
        places.write_json(json_file, result_file.stamped("idle", report.as_json()))
    _show(report)


def _numbers(text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() for word in words):
        raise BeowireError(f"--idle {text}?", "Give numbers with commas, such as 4,16,64.")
    return tuple(int(word) for word in words)


def _links(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    if not set(words) <= set(idle.LINKS):
        raise BeowireError(f"--links {text}?", f"Choose among {', '.join(idle.LINKS)}.")
    return words


def _show(report: Report) -> None:
    table = Table("link", title="8 B one way", title_justify="left")
    for heading in ("idle", "us", "to none [95 %]"):
        table.add_column(heading, justify="right")
    for link in report.plan.links:
        for number in report.plan.numbers:
            cost = str(report.cost(link, number)) if number else ""
            table.add_row(link, str(number), f"{median(report.times_us[link][number]):.2f}", cost)
    out().print(table)
