# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire info`: what this host can use, as libbeowire itself sees it."""

import os
from typing import Annotated

import typer

from beowire import places


def info(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    peer: Annotated[str | None, typer.Option(help="Which link reaches this host, and why.")] = None,
    listen: Annotated[
        bool, typer.Option("--listen", help="Be a peer for --peer, until interrupted.")
    ] = False,
    port: Annotated[int | None, typer.Option(help="The port to listen on.")] = None,
) -> None:
    """Show the links usable here, and why the others are not."""
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
