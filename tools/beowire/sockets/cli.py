# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire sockets`: a program with the preload library of adapters/sockets."""

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from beowire import places, signals
from beowire.errors import BeowireError
from beowire.lab import jobs
from beowire.lab import lab as labs

LIBRARY = "adapters/sockets/libbeowire-sockets.so"
STATS = "BEOWIRE_SOCKETS_STATS"
_COUNTS = (
    "connections",
    "switched",
    "tx_bytes",
    "rx_bytes",
    "tx_beowire",
    "rx_beowire",
    "switches",
    "returns",
    "lost",
    "offers_refused",
)


def run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM ARGS...")],
    lab: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run it on a node of this lab.")
    ] = None,
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Which node of it.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="A line for each connection: which way, and why.")
    ] = False,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what was counted there.")
    ] = None,
) -> None:
    """Run a program whose TCP connections use Beowire where both ends have it."""
    if (lab is None) != (node is None):
        raise BeowireError("--lab and --node belong together.", "Give both, or neither.")
    if json_file is not None:
        places.check_output(json_file)
    variables = preload()
    if explain:
        variables["BEOWIRE_SOCKETS_EXPLAIN"] = "on"
    words = where(lab, node)
    if json_file is None:
        line = [*words, *command(program, variables)]
        os.execvp(line[0], line)
    with tempfile.TemporaryDirectory(prefix="beowire-sockets-") as directory:
        variables[STATS] = directory
        status = _run([*words, *command(program, variables)])
        places.write_json(json_file, gathered(Path(directory)))
    raise typer.Exit(status if status >= 0 else 128 - status)


def _run(words: list[str]) -> int:
    """The status of the command. What would end us ends it, and what it counted is kept."""
    with subprocess.Popen(words) as child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it gets that itself
        for number in signals.ENDING - {signal.SIGINT}:
            signal.signal(number, lambda number, _: child.send_signal(number))
        return child.wait()


def preload() -> dict[str, str]:
    """The variables that load the library, before others that are loaded already."""
    library = str(places.product(LIBRARY))
    others = [each for each in os.environ.get("LD_PRELOAD", "").split(":") if each]
    return {"LD_PRELOAD": ":".join([library, *(each for each in others if each != library)])}


def command(program: list[str], variables: dict[str, str]) -> list[str]:
    """The program with these variables: neither a shell nor env(1) before it has them."""
    return ["env", *(f"{name}={value}" for name, value in variables.items()), *program]


def where(lab: str | None, node: str | None) -> list[str]:
    """What stands before a command to run it on that node."""
    if lab is None or node is None:
        return []
    made = labs.load_ready(lab)
    made.check_node(node)
    jobs.join(made.directory)
    return ["/bin/sh", str(made.enter_path(node))]


def gathered(directory: Path) -> dict[str, Any]:
    """What all processes counted: sums, and each connection."""
    told = [json.loads(file.read_text()) for file in sorted(directory.glob("sockets-*.json"))]
    sums: dict[str, Any] = {name: sum(each[name] for each in told) for name in _COUNTS}
    each = [connection for process in told for connection in process["each"]]
    return {"processes": len(told), **sums, "each": each}
