# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire doctor check` and `diff`: the verdict for machines, and two beside each other."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from beowire import places, tabular
from beowire.doctor.options import (
    TROUBLE,
    Goal,
    Interface,
    Only,
    Peer,
    Root,
    RoundTrip,
    checks,
    make_node,
)
from beowire.terminal import note, out

_FINDINGS = 1
_DIFFERS = 1


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("check")(check_)
    app.command("diff")(diff_)


def check_(
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    peer: Peer = "",
    only: Only = None,
    root: Root = None,
    nhc: Annotated[
        bool, typer.Option("--nhc", help="One line, for a node health check or a job's prolog.")
    ] = False,
    least: Annotated[
        Literal["slight", "costly", "severe"],
        typer.Option(help="What a finding costs at least that counts with --nhc."),
    ] = "severe",
    timeout: Annotated[
        float, typer.Option(min=0, help="Give up after so many seconds; 0: never.")
    ] = 60.0,
    textfile: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write this file for Prometheus.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As beowire doctor --json.")] = False,
    chosen: tabular.Chosen = "table",
) -> None:
    """Examine this node; exit status 0: fit, 1: findings, 2: it could not be examined."""
    from beowire.doctor import health, report
    from beowire.doctor.check import Weight
    from beowire.doctor.examine import examine

    with health.limited(timeout):
        node = make_node(goal, round_trip_ms, peer, root)
        done = examine(node, checks(only), interface or ())
    if textfile is not None:
        health.write_textfile(textfile, done)
    bound = Weight[least.upper()]
    if nhc:
        print(health.line(done, bound))
    elif as_json:
        sys.stdout.write(places.json_text(report.as_json(done)))
    else:
        tabular.tell(chosen, report.rows(done), lambda: out().print(report.verdict(done)))
    if done.troubles:
        for each in done.troubles if not nhc else ():
            note(each)
        raise typer.Exit(TROUBLE)
    if health.unfit(done, bound) if nhc else done.findings():
        raise typer.Exit(_FINDINGS)


def diff_(
    first: Annotated[Path, typer.Argument(metavar="A", help="What --record or --json kept.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Another of these.")],
    goal: Goal = "latency",
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
    chosen: tabular.Chosen = "table",
) -> None:
    """Two nodes, or one at two times; exit status 0: alike, 1: they differ, 2: wrong use."""
    from beowire.doctor import diff

    one, other = (diff.read(each, goal) for each in (first, second))
    found = diff.between(one, other)
    if as_json:
        told = {"a": one.told_of(), "b": other.told_of(), "differences": diff.rows(found)}
        sys.stdout.write(places.json_text(told))
    else:
        tabular.tell(
            chosen,
            diff.rows(found),
            lambda: out().print(diff.text(one, other, found)),
        )
    if found:
        raise typer.Exit(_DIFFERS)
