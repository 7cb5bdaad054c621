# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire vm`."""

from pathlib import Path
from typing import Annotated

import typer

from beowire import places, vm
from beowire.errors import BeowireError
from beowire.terminal import note


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD ARGS...")],
    kernel: Annotated[
        str, typer.Option(help="Release of the kernel, such as 6.1.0-30-amd64; default: stock.")
    ] = "",
    cpus: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Processors of the guest; default: 2, with --icount 1."),
    ] = None,
    memory: Annotated[int, typer.Option(min=256, help="Memory of the guest, MiB.")] = 1024,
    timeout: Annotated[float, typer.Option(min=1, help="Longest run, seconds.")] = 600,
    share: Annotated[
        list[Path] | None, typer.Option(help="Directory that the guest may write to.")
    ] = None,
    modules: Annotated[
        bool, typer.Option("--modules", help="Build Beowire's kernel modules and load them.")
    ] = False,
    icount: Annotated[
        bool, typer.Option("--icount", help="Each instruction takes a nanosecond: for counting.")
    ] = False,
    load: Annotated[
        list[str] | None, typer.Option(help="Module of the kernel to load before the command.")
    ] = None,
    bare: Annotated[
        bool, typer.Option("--bare", help="No files of the host but the command's and --file.")
    ] = False,
    file: Annotated[
        list[Path] | None, typer.Option(help="A file that a bare guest sees, with its libraries.")
    ] = None,
    console: Annotated[
        Path | None, typer.Option(help="Write the guest kernel's messages to this file.")
    ] = None,
) -> None:
    """Run a command under a stock kernel: vm -- CMD ARGS. Files are the host's, to be read only."""
    for directory in share or []:
        if not directory.is_dir():
            raise BeowireError(f"{directory} is no directory.", "Name an existing one by --share.")
    if console is not None:
        places.check_output(console)
    guest = vm.Guest(
        command=command,
        kernel=kernel,
        cpus=cpus or (1 if icount else 2),
        memory_mb=memory,
        limit_s=timeout,
        shares=[directory.resolve() for directory in share or []],
        modules=modules,
        icount=icount,
        load=load or [],
        bare=bare,
        files=file or [],
    )
    outcome = vm.run(guest)
    if console is not None:
        places.write_output(console, outcome.console)
    for line in outcome.complaints:
        note(f"the guest's kernel: {line}")
    if outcome.exit_status == vm.BROKEN and outcome.console:
        note("the end of its messages:\n" + "\n".join(outcome.console.splitlines()[-15:]))
    raise typer.Exit(outcome.exit_status or (1 if outcome.complaints else 0))
