# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire doctor watch`: a line for each thing that changes on the node."""

import json
import time
from typing import Annotated

import typer

from beowire.doctor.options import Goal, Interface, Only, Peer, RoundTrip, checks, make_node
from beowire.errors import BeowireError
from beowire.terminal import note


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("watch")(watch_)


def watch_(
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    peer: Peer = "",
    only: Only = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 10.0,
    looks: Annotated[int, typer.Option(min=0, help="Look so many times; 0: without end.")] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="For machines: one JSON object a line.")
    ] = False,
) -> None:
    """Tell findings as they come and go, and frames as they are lost. Ctrl-C ends it."""
    from beowire.doctor import watch
    from beowire.doctor.examine import examine

    chosen = checks(only)
    before = None
    count = 0
    while True:
        node = make_node(goal, round_trip_ms, peer)
        try:
            done = examine(node, chosen, interface or ())
        finally:
            node.source.close()
        events = watch.between(before, done) if before else watch.first(done)
        for trouble in done.troubles if before is None else ():
            note(trouble)
        if before is None and done.troubles and not node.interfaces:
            raise BeowireError("There is nothing to watch.", "Name an interface that is here.", 2)
        for event in events:
            stamp = time.strftime("%H:%M:%S")
            if as_json:
                print(json.dumps({"time": stamp, **vars(event)}), flush=True)
            else:
                print(f"{stamp} {event.kind:<8}{event.subject}: {event.said}", flush=True)
        before = done
        count += 1
        if looks and count >= looks:
            return
        time.sleep(every)
