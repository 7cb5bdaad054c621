# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The doctor's commands that change the node: fix, undo, confirm, persist."""

import contextlib
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from beowire.doctor.measured import Trials, measured
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
from beowire.doctor.probe_cli import From, Lab, Ssh, To, enter
from beowire.doctor.words import counted
from beowire.errors import BeowireError
from beowire.terminal import note, out, printable

if TYPE_CHECKING:
    from beowire.doctor.examine import Outcome
    from beowire.doctor.fix import Step
    from beowire.doctor.journal import Past
    from beowire.doctor.node import Node

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("fix")(fix_)
    app.command("undo")(undo_)
    app.command("confirm")(confirm_)
    app.command("persist")(persist_)


def fix_(
    goal: Goal = "latency",
    interface: Interface = None,
    round_trip_ms: RoundTrip = None,
    peer: Peer = "",
    only: Only = None,
    root: Root = None,
    interrupting: Annotated[
        bool,
        typer.Option(
            "--interrupting",
            help="The fixes that interrupt a link, instead of those that do not.",
        ),
    ] = False,
    within: Annotated[
        float,
        typer.Option(
            min=1, help="Seconds after which those are taken back, unless it is confirmed."
        ),
    ] = 60.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="Try each fix with the peer; keep what helps.")
    ] = False,
    by: Annotated[
        Literal["check", "group", "all"],
        typer.Option(help="What is tried at once: a check's fix, a group's, or all."),
    ] = "check",
    rounds: Annotated[
        int, typer.Option(min=8, help="How often off and on take turns in a trial.")
    ] = 9,
    lab: Lab = None,
    from_: From = "node1",
    to: To = "node2",
    ssh: Ssh = "ssh",
) -> None:
    """Fix what can be fixed. Old values go into an undo file first."""
    from beowire.doctor import examine, fix

    _check_measure(measure, interrupting, root, peer or lab)
    enter(lab, from_, to, peer)
    node = make_node(goal, round_trip_ms, peer, root)
    done = examine.examine(node, checks(only), interface or ())
    for trouble in done.troubles:
        note(trouble)
    outcomes = fix.fixable(done, interrupting=interrupting)
    others = len(fix.fixable(done, interrupting=not interrupting))
    if others:
        kind = "does not interrupt" if interrupting else "interrupts"
        how = "without" if interrupting else "by"
        many = counted(others, "fix", "fixes")
        note(f"left to a run {how} --interrupting, which {kind} the link: {many}")
    beyond = fix.left_to_the_machine(done, interrupting=interrupting)
    if beyond:
        names = ", ".join(each.check.name for each in beyond)
        note(f"settings of the whole machine, to be fixed outside this network namespace: {names}")
    if outcomes:
        _show(outcomes)
    elif beyond:
        raise BeowireError(
            "What could be fixed are settings of the whole machine; nothing was changed.",
            "Run it outside this network namespace, where its undo file can be found again.",
        )
    else:
        print("There is nothing that this could fix.")
    if outcomes and not dry_run:
        if interrupting:
            _check_quiet(node)
        _ask("Try this, and keep what helps?" if measure else "Change this?", yes)
        if measure:
            measured(node, outcomes, Trials(peer, ssh, by, rounds))
        elif interrupting and root is None:
            _apply_guarded(node, outcomes, within, yes)
        else:
            _apply(node, outcomes)
    if done.troubles:
        raise typer.Exit(TROUBLE)


def _check_measure(measure: bool, interrupting: bool, root: Path | None, peer: str | None) -> None:
    if not measure:
        return
    if interrupting or root is not None:
        what = "--interrupting" if interrupting else "--root"
        raise BeowireError(
            f"{what} and --measure do not go together: a trial switches a fix off and on.",
            "Leave one out; doctor probe before and after tells as much.",
            TROUBLE,
        )
    if not peer:
        raise BeowireError("It takes two to measure.", "Give --peer NODE, or --lab NAME.", TROUBLE)


def _show(outcomes: Iterable["Outcome"]) -> None:
    from beowire.doctor import report

    for each in outcomes:
        assert each.bad is not None
        print(printable(f"{each.subject}: {each.said}; good is {each.bad.good}"))
        for change in each.bad.changes:
            for line in report.change_lines(change):
                print(printable(f"    {line}"))


def _ask(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise BeowireError(
            "There is nobody to ask; nothing was changed.", "Say --yes to change it.", TROUBLE
        )
    if not typer.confirm(question):
        raise BeowireError("Nothing was changed.", code=TROUBLE)


def _check_quiet(node: "Node") -> None:
    from beowire.doctor.processes import jobs

    running = jobs(node)
    if running:
        names = ", ".join(f"{each.name} ({each.pid})" for each in running[:5])
        raise BeowireError(
            f"Jobs run here: {names}. The link is not interrupted; nothing was changed.",
            "Drain the node first, or wait until they have ended.",
            TROUBLE,
        )


def _apply(node: "Node", outcomes: list["Outcome"]) -> Path:
    """Applies; prints each step; the undo file."""
    from beowire.doctor import fix, journal

    log = journal.Journal(node.source, "fix")
    refused = False
    try:
        for step in fix.apply(node.source, node, outcomes, log):
            refused = _tell(step) or refused
    finally:
        log.close()
    note(f"undo file: {log.path}; back again: beowire doctor undo")
    if refused:
        raise typer.Exit(1)
    return log.path


def _tell(step: "Step") -> bool:
    """Prints a step; whether it was refused."""
    from beowire.doctor.fix import Result

    out().print(f"{step.result}: {step.what}: {step.said}")
    return step.result is Result.REFUSED


def _apply_guarded(node: "Node", outcomes: list["Outcome"], within: float, yes: bool) -> None:
    from beowire.doctor import fix, guard, journal

    log = journal.Journal(node.source, "fix --interrupting")
    guard.start(log.path, within)
    deadline = time.monotonic() + within
    refused = False
    try:
        for step in fix.apply(node.source, node, outcomes, log):
            refused = _tell(step) or refused
    finally:
        log.close()
    if not log.path.exists():
        return
    past = journal.read(log.path)
    changed = not all(each.refused for each in past.entries)
    if (not changed or _reached(node, past, deadline, yes)) and journal.confirm(log.path):
        what = "the changes stay" if changed else "nothing was changed"
        note(f"{what}; undo file: {log.path}; back again: beowire doctor undo")
        if refused:
            raise typer.Exit(1)
        return
    left = deadline - time.monotonic()
    when = f"in {left:.0f} s all is taken back" if left > 0 else "all is taken back"
    note(f"not confirmed in time: {when}")
    raise typer.Exit(1)


def _reached(node: "Node", past: "Past", deadline: float, yes: bool) -> bool:
    """Whether the node is still reached after these changes: its peer answers, or a person says
    so."""
    if node.peer:
        return _answered(node, past, deadline)
    if yes or not sys.stdin.isatty():
        note("confirm from a connection over that link: beowire doctor confirm")
        return _confirmed(past, deadline)
    return typer.confirm("Does this connection go over the link, and does it still work?")


def _answered(node: "Node", past: "Past", deadline: float) -> bool:
    """Whether the peer answers in time, also to packets of a new MTU, or somebody confirms."""
    from beowire.doctor import journal, probe
    from beowire.doctor.setting import LinkSetting

    settings = [each.setting for each in past.entries]
    new_mtu = any(isinstance(each, LinkSetting) and each.name == "mtu" for each in settings)
    told = False
    while time.monotonic() < deadline - 1:
        if journal.is_confirmed(past.path):
            return True
        with contextlib.suppress(OSError):
            if probe.echo(node.peer, 64, tries=1):
                path = node.source.path_to(node.peer, node.round_trip_s) if new_mtu else {}
                if not path or path["passes"] == path["mtu"] > 0:
                    return True
                if not told:
                    told = True
                    note(
                        f"{node.peer} answers, but not to packets of the MTU {path['mtu']}: of "
                        f"{path['passes']} bytes they pass. Set it there as well, or, if it is "
                        f"to stay all the same: beowire doctor confirm"
                    )
        time.sleep(0.2)
    return False


def _confirmed(past: "Past", deadline: float) -> bool:
    """Whether somebody confirms in time, by another command."""
    from beowire.doctor import journal

    while time.monotonic() < deadline:
        if journal.is_confirmed(past.path):
            return True
        time.sleep(0.1)
    return False


def undo_(
    dry_run: DryRun = False,
    every: Annotated[bool, typer.Option("--all", help="All undo files, the latest first.")] = False,
    force: Annotated[
        bool, typer.Option(help="Also what someone else has changed since then.")
    ] = False,
    root: Root = None,
) -> None:
    """Put back what the last fix (or persist) changed."""
    from beowire.doctor import fix, journal
    from beowire.doctor.source import Recorded, Source

    source = Recorded(root) if root else Source()
    pasts = journal.pending()
    unreadable = journal.unreadable()
    for each in unreadable:
        note(str(each))
    mine = [each for each in pasts if journal.is_of(each, source)]
    if others := len(pasts) - len(mine):
        note(f"of other network namespaces or trees: {counted(others, 'undo file')}")
    refused = bool(unreadable)
    if not mine:
        print("There is nothing to undo." if not unreadable else "Nothing can be undone.")
    looked = 0
    for past in mine:
        looked += 1
        print(printable(f"{past.what} of {past.started} ({past.path})"))
        if dry_run:
            _show_undo(past)
            undone = True
        else:
            left = []
            for step in fix.undo(source, past, force=force):
                refused = _tell(step) or refused
                left.append(step.result is fix.Result.LEFT)
            undone = not any(left)  # else it stays, and those before it are not to wait for that
        if undone and not every:
            break
    if looked < len(mine):
        more = counted(len(mine) - looked, "earlier undo file")
        note(f"{more} can be undone: run it again, or with --all")
    if refused:
        raise typer.Exit(1)


def _show_undo(past: "Past") -> None:
    for entry in reversed(past.entries):
        print(printable(f"    {entry.setting.command(entry.old)}"))


def confirm_() -> None:
    """Say that the node is reached: what interrupted its link may stay."""
    from beowire.doctor import journal

    waiting = [
        each
        for each in journal.pending()
        if each.what == "fix --interrupting" and not journal.is_confirmed(each.path)
    ]
    if not waiting:
        raise BeowireError(
            "Nothing waits to be confirmed.",
            "If it was taken back already, run beowire doctor fix --interrupting again.",
        )
    for each in waiting:
        if journal.confirm(each.path):
            print(f"The changes in {each.path} stay.")
        else:
            raise BeowireError(
                f"The changes in {each.path} have been taken back.",
                "Run beowire doctor fix --interrupting again.",
            )


def persist_(
    prefix: Annotated[
        Path | None, typer.Option(help="Write below this folder, as for a node's image.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make what was fixed outlive a reboot: sysctl.d, .link files, TuneD or tmpfiles.d."""
    from beowire.doctor import journal, persist
    from beowire.doctor.node import Goal as Goals
    from beowire.doctor.node import Node
    from beowire.doctor.source import Source

    source = Source()
    held = persist.in_force(source, journal.pending())
    for each in journal.unreadable():
        note(str(each))
    if not held:
        raise BeowireError(
            "Nothing that the doctor fixed here is in force.", "First run: beowire doctor fix", 1
        )
    if prefix is None and not Node(source, Goals.LATENCY).in_first_network:
        raise BeowireError(
            "What lasts would hold for the whole machine, not for this network namespace.",
            "Run it outside, or let --prefix name an image's folder.",
            TROUBLE,
        )
    base = str(prefix.resolve()) if prefix else ""
    made = persist.plan(source, held, base)
    for path, text in made.files.items():
        print(f"{base}{path}:")
        print(printable("".join(f"    {line}\n" for line in text.splitlines())), end="")
    if made.left:
        print("No file holds these; let the node's start-up run them:")
        print(printable("".join(f"    {line}\n" for line in made.left)), end="")
    if dry_run or not made.files:
        return
    _ask("Write these files?", yes)
    log = journal.Journal(source, "persist")
    refused = False
    try:
        for step in persist.write(source, made, log, base):
            refused = _tell(step) or refused
    finally:
        log.close()
    for text in made.notes:
        note(text)
    if refused:
        raise typer.Exit(1)
