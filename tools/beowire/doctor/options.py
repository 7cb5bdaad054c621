# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What several of the doctor's commands take, and what becomes of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beowire.errors import BeowireError

if TYPE_CHECKING:
    from beowire.doctor.check import Check
    from beowire.doctor.node import Node

TROUBLE = 2
"""The exit status when the node could not be examined, or not as asked."""

Goal = Annotated[str, typer.Option(help="What the node is for: latency, throughput or wan.")]
Interface = Annotated[
    list[str] | None,
    typer.Option("--interface", "-i", help="Look at this one; may be given several times."),
]
RoundTrip = Annotated[
    float | None, typer.Option(help="Round trip between nodes in ms, if it is known.")
]
Peer = Annotated[str, typer.Option(help="Another node, to which the path is probed.")]
Only = Annotated[
    list[str] | None, typer.Option(help="Only this check or group; may be given several times.")
]
Root = Annotated[Path | None, typer.Option(help="Examine a recorded tree instead of this node.")]


def make_node(
    goal: str,
    round_trip_ms: float | None,
    peer: str,
    root: Path | None = None,
    record: Path | None = None,
) -> "Node":
    """The node that the options speak of; errors name the option."""
    from beowire.doctor.node import Goal as Goals
    from beowire.doctor.node import Node
    from beowire.doctor.source import Recorded, Recorder, Source

    if goal not in list(Goals):
        raise BeowireError(
            f"There is no goal {goal}.", f"Name one of {', '.join(Goals)}.", code=TROUBLE
        )
    if round_trip_ms is not None and not 0 < round_trip_ms < 1e6:
        raise BeowireError(
            f"--round-trip-ms {round_trip_ms} is no time of a round trip.",
            "Give milliseconds above 0.",
            code=TROUBLE,
        )
    if root is not None and record is not None:
        raise BeowireError("A recorded tree is not recorded again.", "Leave one out.", TROUBLE)
    source = Source()
    if root is not None:
        if not root.is_dir():
            raise BeowireError(
                f"There is no tree at {root}.", "beowire doctor --record makes one.", TROUBLE
            )
        source = Recorded(root)
    if record is not None:
        if record.exists():
            raise BeowireError(f"{record} is there already.", "Name a new folder.", TROUBLE)
        source = Recorder(record)
    round_trip_s = None if round_trip_ms is None else round_trip_ms / 1000
    return Node(source, Goals(goal), round_trip_s=round_trip_s, peer=peer)


def checks(only: list[str] | None) -> list["Check"]:
    """The checks of these names and groups, or all."""
    from beowire.doctor.registry import ALL, find

    if not only:
        return list(ALL.values())
    chosen: dict[str, Check] = {}
    for name in only:
        group = {each.name: each for each in ALL.values() if each.group == name}
        chosen |= group or {name: find(name)}
    return list(chosen.values())
