# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire info`: what this host can use, as libbeowire itself sees it."""

import json
import os
import subprocess
from typing import Annotated, Any

import typer

from beowire import places, tabular
from beowire.errors import BeowireError
from beowire.info import support as supported
from beowire.info.mpi import Choice, choices
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
    support: Annotated[
        bool, typer.Option("--support", help="What Beowire was tested on, and what not.")
    ] = False,
    chosen: tabular.Chosen = "table",
) -> None:
    """Show the links usable here, and why the others are not."""
    if support:
        if mpi or as_json or peer is not None or listen or port is not None:
            raise BeowireError(
                "--support is asked alone, or with --format.", "Leave out the rest.", 2
            )
        found = supported.read()
        tabular.tell(chosen, [each.as_json() for each in found], lambda: supported.show(found))
        return
    if mpi and (peer is not None or listen or port is not None):
        raise BeowireError("--mpi is asked alone.", "Leave out --peer, --listen and --port.")
    if chosen != "table" and (as_json or peer is not None or listen):
        raise BeowireError("--format is asked alone, or with --mpi.", "Leave out the others.", 2)
    if mpi:
        _tell_of_mpi(as_json, chosen)
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
    if chosen != "table":
        _tell_rows(program, chosen)
        return
    os.execv(program, arguments)


def _tell_rows(program: str, chosen: tabular.Format) -> None:
    done = subprocess.run([program, "--json"], stdout=subprocess.PIPE, check=False)
    if done.stdout:
        tabular.tell(chosen, rows(json.loads(done.stdout)), lambda: None)
    if done.returncode:
        raise typer.Exit(done.returncode)


def rows(told: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each interface, link and setting: what it is called, how it stands, and why."""
    found: list[dict[str, Any]] = []
    for each in told["interfaces"]:
        state = "down" if not each["up"] else "up" if each["carrier"] else "no carrier"
        about = ", ".join(
            [f"MTU {each['mtu']}", *filter(None, [each["driver"]]), *each["addresses"]]
        )
        row = {"kind": "interface", "name": each["name"], "state": state}
        found.append({**row, "chosen": each["chosen"], "about": about})
    for name, each in told["links"].items():
        row = {"kind": "link", "name": name, "state": "usable" if each["usable"] else "not usable"}
        found.append({**row, "chosen": None, "about": each["why"]})
    for name, each in told["settings"].items():
        where = f"{each['from']}:{each['line']}" if each["line"] else each["from"]
        row = {"kind": "setting", "name": name, "state": each["value"]}
        found.append({**row, "chosen": None, "about": where})
    return found


def _tell_of_mpi(as_json: bool, chosen: tabular.Format) -> None:
    found = choices()
    if as_json:
        out().print(places.json_text([each.as_json() for each in found]), end="")
        return
    tabular.tell(chosen, [each.as_json() for each in found], lambda: _show_mpi(found))


def _show_mpi(found: list[Choice]) -> None:
    if not found:
        out().print("There is no MPI on the search path.")
    for each in found:
        out().print(f"{each.mpi} ({each.launcher}): {each.transport}")
        out().print(f"  why:    {each.why}")
        out().print(f"  change: {each.change}")
