# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire info`: what this host can use, as libbeowire itself sees it."""

import os
from typing import Annotated

import typer

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import out


def info(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    peer: Annotated[str | None, typer.Option(help="Which link reaches this host, and why.")] = None,
    listen: Annotated[
        bool, typer.Option("--listen", help="Be a peer for --peer, until interrupted.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="The port to listen on.")] = None,
    mpi: Annotated[
        bool, typer.Option("--mpi", help="Which transport each MPI here would choose, and why.")
    ] = False,
) -> None:
    """Show the links usable here, and why the others are not."""
    if mpi and (peer is not None or listen or port is not None):
        raise BeowireError("--mpi is asked alone.", "Leave out --peer, --listen and --port.")
    if mpi:
        _tell_of_mpi(as_json)
        return
    program = str(places.product("programs/beowire-info"))
    arguments = [program]
    if as_json:
        arguments.append("--json")
    if peer is not None:
        arguments += ["--peer", peer]
    if listen:
        arguments.append("--listen")
    if port is not None:
        arguments += ["--port", str(port)]
    os.execv(program, arguments)


def _tell_of_mpi(as_json: bool) -> None:
    from beowire.info.mpi import choices

    found = choices()
    if as_json:
        out().print(places.json_text([each.as_json() for each in found]), end="", soft_wrap=True)
        return
    if not found:
        out().print("There is no MPI on the search path.")
    for each in found:
        out().print(f"{each.mpi} ({each.launcher}): {each.transport}", soft_wrap=True)
        out().print(f"  why:    {each.why}", soft_wrap=True)
        out().print(f"  change: {each.change}", soft_wrap=True)
