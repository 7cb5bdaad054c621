# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of the doctor: `beowire doctor [fix|undo|...]`.

What it needs is imported where it is used: netlink takes a while to load.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from beowire.doctor import check_cli, cluster_cli, fix_cli, probe_cli, watch_cli
from beowire.doctor.options import TROUBLE, Goal, Interface, Only, Peer, Root, RoundTrip, make_node
from beowire.doctor.options import checks as chosen_checks
from beowire.errors import BeowireError
from beowire.terminal import note, out

_FINDINGS = 1

app = typer.Typer(help="Find what slows this node down, say why, and fix it.")
fix_cli.add_to(app)
check_cli.add_to(app)
cluster_cli.add_to(app)
watch_cli.add_to(app)
probe_cli.add_to(app)


@app.callback(invoke_without_command=True)
def doctor(
    context: typer.Context,
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    peer: Peer = "",
    only: Only = None,
    root: Root = None,
    record: Annotated[
        Path | None, typer.Option(help="Keep what is read as a tree in this new folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also what is good or not here.")
    ] = False,
    why: Annotated[str | None, typer.Option(metavar="CHECK", help="Explain a check.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="All checks, a line each.")] = False,
) -> None:
    """Examine this node; exit status 0: all is well, 1: findings, 2: it could not be examined."""
    if context.invoked_subcommand is not None:
        _refuse_options_of(context, context.invoked_subcommand)
        return
    from beowire.doctor import report
    from beowire.doctor.registry import ALL, find

    if why is not None:
        print(report.explained(find(why)))
        return
    if list_all:
        for check in ALL.values():
            print(f"{check.name:<28} {check.title}")
        return
    from beowire.doctor.examine import examine

    node = make_node(goal, round_trip_ms, peer, root, record)
    done = examine(node, chosen_checks(only), interface or ())
    if as_json:
        print(json.dumps(report.as_json(done), indent=2))
    else:
        out().print(report.verdict(done, verbose=verbose))
    if done.troubles:
        for each in done.troubles:
            note(each)
        raise typer.Exit(TROUBLE)
    if done.findings():
        raise typer.Exit(_FINDINGS)


def _refuse_options_of(context: typer.Context, command: str) -> None:
    """Options of the examination do not pass to a command behind them."""
    given = [
        name
        for name in context.params
        if (source := context.get_parameter_source(name)) and source.name == "COMMANDLINE"
    ]
    if given:
        raise BeowireError(
            f"The options before {command} say nothing to it.",
            f"Write them behind it: beowire doctor {command} --...",
            code=TROUBLE,
        )
