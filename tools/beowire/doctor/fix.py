# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Applies fixes, each change only after the journal has it, and undoes them."""

import contextlib
import enum
import errno
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from beowire.doctor import journal
from beowire.doctor.check import Change, Fix
from beowire.doctor.examine import Examination, Outcome, State, choose, judge
from beowire.doctor.journal import Entry, Journal, Past
from beowire.doctor.node import Node
from beowire.doctor.setting import ConfigurationSetting, FileSetting, same
from beowire.doctor.source import Source

_VANISHED = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO}
"""What reading a setting ends with whose interface or driver is not here any more."""


class Result(enum.StrEnum):
    """What became of a change, or of undoing one."""

    DONE = "done"
    REFUSED = "refused"
    """The kernel or the driver did not take it."""
    LEFT = "left"
    """Someone changed it since; it is left as it is."""
    GONE = "gone"
    """It ended by itself: a reboot, or its interface is not here any more."""


@dataclass(frozen=True)
class Step:
    """One change, made or undone."""

    what: str
    result: Result
    said: str


def fixable(done: Examination, *, interrupting: bool) -> list[Outcome]:
    """The findings that the doctor can fix itself: live ones, or those that interrupt a link."""
    return [each for each in _changing(done, interrupting) if not _beyond(done, each)]


def left_to_the_machine(done: Examination, *, interrupting: bool) -> list[Outcome]:
    """Those that it could fix if it ran in the machine's first network namespace. In another one,
    such as a lab's node, a change of the whole machine would outlive the namespace, and its undo
    file would not be found outside."""
    return [each for each in _changing(done, interrupting) if _beyond(done, each)]


def _changing(done: Examination, interrupting: bool) -> list[Outcome]:
    wanted = Fix.INTERRUPTS if interrupting else Fix.LIVE
    return [
        each
        for each in done.findings()
        if each.bad and each.bad.changes and each.check.fix is wanted
    ]


def _beyond(done: Examination, outcome: Outcome) -> bool:
    changes = outcome.bad.changes if outcome.bad else ()
    of_machine = any(each.setting.of_machine for each in changes)
    return of_machine and not done.node.in_first_network


def apply(source: Source, node: Node, outcomes: Iterable[Outcome], log: Journal) -> Iterator[Step]:
    """Fixes findings of a node one by one. Each is judged anew just before, since an earlier fix
    may have touched the same setting."""
    names = [each.name for each in node.interfaces]
    for outcome in outcomes:
        again = _judge_anew(source, node, names, outcome)
        if again.bad is None:
            fixed = again.state is State.GOOD
            said = f"{'already fixed' if fixed else again.state}: {again.said}"
            yield Step(outcome.subject, Result.DONE if fixed else Result.GONE, said)
            continue
        for change in again.bad.changes:
            yield _apply_one(source, outcome, change, log)


def _judge_anew(source: Source, node: Node, names: list[str], outcome: Outcome) -> Outcome:
    fresh = Node(source, node.goal, round_trip_s=node.round_trip_s, peer=node.peer)
    choose(fresh, names)
    if not outcome.interface:
        return judge(outcome.check, fresh, None)
    for interface in fresh.interfaces:
        if interface.name == outcome.interface:
            return judge(outcome.check, fresh, interface)
    return Outcome(outcome.check, outcome.interface, State.ABSENT, "the interface is gone")


def _apply_one(source: Source, outcome: Outcome, change: Change, log: Journal) -> Step:
    log.before(change)
    what = f"{outcome.subject}: {change.setting}"
    try:
        change.setting.write(source, change.new)
        now = change.setting.read(source)
    except OSError as error:
        with contextlib.suppress(OSError):
            log.after(change.setting.read(source))
        return Step(what, Result.REFUSED, _refusal(error))
    log.after(now)
    if journal.unchanged(change.old, change.new, now):
        return Step(what, Result.REFUSED, f"it still reads {' '.join(now.split())}")
    shown = [" ".join(text.split()) for text in (change.old, now)]
    return Step(what, Result.DONE, f"{shown[0]} -> {shown[1]}")


def _refusal(error: OSError) -> str:
    said = (error.strerror or str(error)).lower()
    if isinstance(error, PermissionError):
        return f"{said}: run it as root; in a container or namespace it may be read-only"
    return f"the kernel or the driver does not take it: {said}"


def undo(source: Source, past: Past, *, force: bool = False) -> Iterator[Step]:
    """Puts back what a journal changed, the last change first. The journal is history afterwards,
    unless something was refused, or left. A fix still at work is an error."""
    with journal.held(past.path, wait=False):
        yield from put_back(source, journal.read(past.path), force=force)


def put_back(source: Source, past: Past, *, force: bool) -> Iterator[Step]:
    """What undo() does once nobody else has the journal."""
    rebooted = bool(past.boot) and past.boot != journal.boot_of(source)
    whole = True
    first = {entry.setting: entry.old for entry in reversed(past.entries)}
    for entry in reversed(past.entries):
        if entry.refused:
            continue
        if rebooted and not isinstance(entry.setting, ConfigurationSetting):
            yield Step(str(entry.setting), Result.GONE, "the node was rebooted since")
            continue
        step = _undo_one(source, entry, first[entry.setting], force)
        whole = whole and step.result not in (Result.REFUSED, Result.LEFT)
        yield step
    if whole:
        journal.set_undone(past.path)


def _undo_one(source: Source, entry: Entry, first: str, force: bool) -> Step:
    """Undoes one change of a setting, whose value before all of the journal's was `first`."""
    setting, what = entry.setting, str(entry.setting)
    try:
        now = setting.read(source)
    except OSError as error:
        if error.errno in _VANISHED:
            return Step(what, Result.GONE, error.strerror or str(error))
        return Step(what, Result.REFUSED, _refusal(error))
    if now in (entry.old, first):
        return Step(what, Result.DONE, "it has its old value")
    if entry.became is not None and now != entry.became and not force:
        shown = " ".join(now.split())[:60]
        return Step(what, Result.LEFT, f"changed since to {shown}; --force puts it back too")
    try:
        setting.write(source, entry.old)
        now = setting.read(source)
    except OSError as error:
        return Step(what, Result.REFUSED, _refusal(error))
    if now != entry.old and not (isinstance(setting, FileSetting) and same(now, entry.old)):
        return Step(what, Result.REFUSED, f"it reads {' '.join(now.split())[:60]}")
    shown = "absent" if entry.old == "\0" else " ".join(entry.old.split())[:60]
    return Step(what, Result.DONE, f"back to {shown}")
