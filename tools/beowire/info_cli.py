# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire info`: what this host can use, as libbeowire itself sees it."""

import os
from typing import Annotated

import typer

from beowire import places


def info(
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    peer: Annotated[str | None, typer.Option(help="Which link reaches this host, and why.")] = None,
) -> None:
    """Show the links usable here, and why the others are not."""
    program = str(places.product("hosts/user/beowire-info"))
    arguments = [program]
    if as_json:
        arguments.append("--json")
    if peer is not None:
        arguments += ["--peer", peer]
    os.execv(program, arguments)
