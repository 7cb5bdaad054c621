# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire replicate`."""

import os
import signal
import subprocess
from typing import Annotated, Literal

import typer

from beowire import signals
from beowire.replicate import command, keeper
from beowire.terminal import note


def run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...")],
    pages: Annotated[
        Literal["auto", "small", "huge"],
        typer.Option(help="Of text: large ones where they fit (auto, huge), or never."),
    ] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be copied; do not run the program.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="A line for each file: what was copied, and where.")
    ] = False,
) -> None:
    """Run a program from copies of its text and constants on the NUMA node where it runs."""
    command.check(program[0])
    variables = {"BEOWIRE_REPLICATE": "dry" if dry_run else "on"}
    if explain:
        variables["BEOWIRE_REPLICATE_EXPLAIN"] = "on"
    if dry_run:
        words = command.line(program, pages, **variables)
        os.execvp(words[0], words)
    with keeper.keeping() as (kept, path):
        variables["BEOWIRE_REPLICATE_KEEPER"] = str(path)
        status = _run(command.line(program, pages, **variables), kept)
        if explain:
            note(
                f"processes asked {kept.asked} times for copies; {len(kept.copies)} are shared, "
                f"and were given {kept.given} times"
            )
    raise typer.Exit(status if status >= 0 else 128 - status)


def _run(words: list[str], kept: keeper.Keeper) -> int:
    """The status of the command. What would end us ends it."""
    with subprocess.Popen(words) as child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it gets that itself
        for number in signals.ENDING - {signal.SIGINT}:
            signal.signal(number, lambda number, _: child.send_signal(number))
        descriptor = os.pidfd_open(child.pid)
        try:
            kept.serve(descriptor)
        finally:
            os.close(descriptor)
        return child.wait()
