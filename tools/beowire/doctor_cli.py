# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of the doctor: `beowire doctor [fix|undo|...]`.

What it needs is imported where it is used: netlink takes a while to load.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beowire.errors import BeowireError
from beowire.terminal import note, out

if TYPE_CHECKING:
    from beowire.doctor.check import Check
    from beowire.doctor.node import Node

_FINDINGS = 1
_TROUBLE = 2

app = typer.Typer(help="Find what slows this node down, say why, and mend it.")

Goal = Annotated[str, typer.Option(help="What the node is for: latency, throughput or wan.")]
Interface = Annotated[
    list[str] | None,
    typer.Option("--interface", "-i", help="Look at this one; may be given several times."),
]
RoundTrip = Annotated[
    float | None, typer.Option(help="Round trip between nodes in ms, if it is known.")
]
Only = Annotated[
    list[str] | None, typer.Option(help="Only this check or group; may be given several times.")
]
Root = Annotated[Path | None, typer.Option(help="Examine a recorded tree instead of this node.")]


@app.callback(invoke_without_command=True)
def doctor(
    context: typer.Context,
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    only: Only = None,
    root: Root = None,
    record: Annotated[
        Path | None, typer.Option(help="Keep what is read as a tree in this new folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    verbose: Annotated[bool, typer.Option(help="Also what is good or not here.")] = False,
    why: Annotated[str | None, typer.Option(metavar="CHECK", help="Explain a check.")] = None,
    list_all: Annotated[bool, typer.Option("--list", help="All checks, a line each.")] = False,
) -> None:
    """Examine this node; exit status 0: all is well, 1: findings, 2: it could not be examined."""
    if context.invoked_subcommand is not None:
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

    node = _node(goal, round_trip_ms, root, record)
    done = examine(node, _checks(only), interface or ())
    if as_json:
        print(json.dumps(report.as_json(done), indent=2))
    else:
        out().print(report.verdict(done, verbose=verbose), markup=False, soft_wrap=True)
    if done.troubles:
        for each in done.troubles:
            note(each)
        raise typer.Exit(_TROUBLE)
    if done.findings():
        raise typer.Exit(_FINDINGS)


def _node(
    goal: str, round_trip_ms: float | None, root: Path | None, record: Path | None = None
) -> "Node":
    from beowire.doctor.node import Goal as Goals
    from beowire.doctor.check import Check
    from beowire.doctor.node import Node
    from beowire.doctor.source import Recorded, Recorder, Source

    if goal not in list(Goals):
        raise BeowireError(
            f"There is no goal {goal}.", f"Name one of {', '.join(Goals)}.", code=_TROUBLE
        )
    if round_trip_ms is not None and not 0 < round_trip_ms < 1e6:
        raise BeowireError(
            f"--round-trip-ms {round_trip_ms} is no time of a round trip.",
            "Give milliseconds above 0.",
            code=_TROUBLE,
        )
    if root is not None and record is not None:
        raise BeowireError("A recorded tree is not recorded again.", "Leave one out.", _TROUBLE)
    source = Source()
    if root is not None:
        if not root.is_dir():
            raise BeowireError(
                f"There is no tree at {root}.", "beowire doctor --record makes one.", _TROUBLE
            )
        source = Recorded(root)
    if record is not None:
        if record.exists():
            raise BeowireError(f"{record} is there already.", "Name a new folder.", _TROUBLE)
        source = Recorder(record)
    round_trip_s = None if round_trip_ms is None else round_trip_ms / 1000
    return Node(source, Goals(goal), round_trip_s=round_trip_s)


def _checks(only: list[str] | None) -> list["Check"]:
    from beowire.doctor.registry import ALL, find

    if not only:
        return list(ALL.values())
    chosen = {}
    for name in only:
        group = {each.name: each for each in ALL.values() if each.group == name}
        chosen |= group or {name: find(name)}
    return list(chosen.values())
