# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire doctor probe`: what a pair of nodes does, and how much faster it could be."""

import json
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from beowire import places
from beowire.doctor.options import TROUBLE, Goal, Only, checks, make_node
from beowire.errors import BeowireError
from beowire.progress import Progress
from beowire.terminal import note, out

if TYPE_CHECKING:
    from beowire.doctor.draws import Estimate
    from beowire.doctor.gain import Gain
    from beowire.doctor.probing import Probe

Lab = Annotated[
    str | None, typer.Option("--lab", help="Between two nodes of this lab, --from and --to.")
]
From = Annotated[str, typer.Option("--from", help="The lab's node that does it.")]
To = Annotated[str, typer.Option("--to", help="Its peer in the lab.")]
Peer = Annotated[str, typer.Option(help="The other node, which ssh reaches.")]
Ssh = Annotated[str, typer.Option(help="The command that reaches the peer.")]


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("probe")(probe_)


def probe_(
    peer: Peer = "",
    lab: Lab = None,
    from_: From = "node1",
    to: To = "node2",
    ssh: Ssh = "ssh",
    goal: Goal = "latency",
    only: Only = None,
    rounds: Annotated[int, typer.Option(min=3, help="Everything takes turns so often.")] = 7,
    turn_ms: Annotated[
        float, typer.Option(min=1, help="About how long a run of short messages takes.")
    ] = 100.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="Latency and bulk alone, one size, blocking.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Measure this node and a peer: TCP, bare frames and Beowire; tell what they could do."""
    enter(lab, from_, to, peer)
    from beowire.doctor import pair, probing
    from beowire.doctor.node import Goal as Goals
    from beowire.lab.up import termination_raises

    if not peer:
        raise BeowireError("Between which nodes?", "Give --peer NODE, or --lab NAME.", TROUBLE)
    make_node(goal, None, "")
    plan = probing.Plan(goal=Goals(goal), rounds=rounds, turn_s=turn_ms / 1000)
    if quick:
        plan = probing.Plan(
            goal=Goals(goal),
            sizes=plan.sizes[:1],
            bulk_sizes=plan.bulk_sizes[:1],
            waits=("block",),
            rounds=rounds,
            turn_s=turn_ms / 1000,
            calls=False,
            files=False,
        )
    chosen = checks(only)
    progress = Progress(plan.steps())
    with termination_raises(), progress.shown():
        found = probing.probe(pair.find(peer, ssh), plan, chosen, progress.begin)
    if as_json:
        print(json.dumps(found.as_json(), indent=1))
    else:
        _show(found)
    for each in found.troubles:
        note(each)
    if found.troubles:
        raise typer.Exit(TROUBLE)


def enter(lab: str | None, from_: str, to: str, peer: str) -> None:
    """Where a lab is named: becomes this command on the node, with the other one as its peer."""
    if lab is None:
        return
    from beowire.lab.lab import load_ready

    if peer:
        raise BeowireError("--lab and --peer name two peers.", "Give one of them.", TROUBLE)
    made = load_ready(lab)
    for each in (from_, to):
        made.check_node(each)
    if from_ == to or made.mode == "loopback":
        why = f"lab {lab} is on loopback addresses" if from_ != to else f"{to} is both ends"
        raise BeowireError(
            f"There is nothing between the two: {why}.", "Name two nodes that a link joins."
        )
    command = [*places.module("beowire"), *_without_lab(sys.argv[1:]), "--peer", to]
    sys.stdout.flush()
    os.execv("/bin/sh", ["sh", str(made.enter_path(from_)), *command])


def _without_lab(words: list[str]) -> list[str]:
    """The command's words without the options that chose the nodes."""
    left, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("--lab", "--from", "--to"):
            skip = True
        elif not word.startswith(("--lab=", "--from=", "--to=")):
            left.append(word)
    return left


def _show(found: "Probe") -> None:
    from rich.table import Table

    from beowire.doctor.series import NAMES

    plan, peer = found.plan, found.pair.peer
    table = Table(title=f"To {peer} and back, {plan.rounds} rounds, medians", title_justify="left")
    for name in ("mode", "bytes", "wait"):
        table.add_column(name)
    shown = list(plan.transports)
    for transport in shown:
        table.add_column(NAMES[transport], justify="right")
    rows: dict[tuple[str, int, str], dict[str, str]] = {}
    files: list[tuple[int, Estimate]] = []
    for key, value in found.figures():
        if key.buffer or key.size == _file_bytes():
            files.append((key.buffer, value))
            continue
        mode = f"{key.mode} to here" if key.back else key.mode
        rows.setdefault((mode, key.size, key.wait), {})[key.transport] = _figure(key.mode, value)
    for (mode, size, wait), by_name in rows.items():
        table.add_row(mode, f"{size:,}", wait, *(by_name.get(each, "-") for each in shown))
    out().print(table)
    if files:
        _show_files(files)
    for fitted in found.loggp:
        figures = ", ".join(
            f"{name} {_time(value)}"
            for name, value in (
                ("L", fitted.latency),
                ("o_s", fitted.send),
                ("o_r", fitted.receive),
                ("g", fitted.gap),
            )
        )
        rate = f"1/G {8e-9 / fitted.byte.value:.3g} Gbit/s" if fitted.byte.value > 0 else "G ?"
        text = f"LogGP, {NAMES[fitted.transport]}, {fitted.wait}: {figures}, {rate}"
        out().print(text)
    for divided in found.parts:
        cells = ", ".join(f"{name} {_time(value)}" for name, value in divided.parts.items())
        name = NAMES[divided.transport]
        text = f"{name}, {divided.size} bytes, {_time(divided.whole)}: {cells}"
        out().print(text)
    _show_headroom(found)


def _file_bytes() -> int:
    from beowire.doctor.probing import FILE_BYTES

    return FILE_BYTES


def _show_files(files: "list[tuple[int, Estimate]]") -> None:
    from rich.table import Table

    table = Table(title=f"A file of {_file_bytes():,} bytes over TCP", title_justify="left")
    table.add_column("receive buffer")
    table.add_column("seconds", justify="right")
    for buffer, value in files:
        seconds = [_file_bytes() / each for each in (value.value, value.high, value.low)]
        text = f"{seconds[0]:.3g} [{seconds[1]:.3g}, {seconds[2]:.3g}]"
        table.add_row(f"{buffer:,}" if buffer else "the kernel's choice", text)
    out().print(table)


def _show_headroom(found: "Probe") -> None:
    room = found.headroom
    lines = ["", "Headroom"]
    lines += [
        f"  {each.metric}: {_gain(each)}: {each.how}" for each in (*room.hardware, *room.together)
    ]
    for each in room.gains:
        where = "this node" if each.node == "here" else found.pair.peer
        lines.append(f"  {each.check} on {where}, {each.metric}: {_gain(each)}: {each.how}")
    if room.silent:
        names = sorted({check for check, _ in room.silent})
        lines.append(f"  no model speaks of: {', '.join(names)}; fix --measure tells")
    out().print("\n".join(lines))


def _gain(gain: "Gain") -> str:
    factor = gain.factor
    most = "at most " if gain.at_most else ""
    figure = _time if gain.metric == "latency" else _rate
    return (
        f"{most}{factor.value:.2f} [{factor.low:.2f}, {factor.high:.2f}] times faster, "
        f"{figure(gain.before)} -> {figure(gain.after)}"
    )


def _figure(mode: str, value: "Estimate") -> str:
    if mode == "bandwidth":
        return _rate(value)
    if mode == "rate":
        return f"{value.value / 1e3:.4g} [{value.low / 1e3:.4g}, {value.high / 1e3:.4g}] k/s"
    return _time(value)


def _time(value: "Estimate") -> str:
    each = value.scaled(1e6)
    return f"{each.value:.4g} [{each.low:.4g}, {each.high:.4g}] us"


def _rate(value: "Estimate") -> str:
    each = value.scaled(8e-6)
    return f"{each.value:.4g} [{each.low:.4g}, {each.high:.4g}] Mbit/s"
