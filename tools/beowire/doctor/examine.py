# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs checks on a node. One that cannot be judged is named with its reason; the rest goes on."""

import enum
import errno
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from beowire.doctor.check import Bad, Check, Good, NotApplicable, Weight
from beowire.doctor.node import Interface, Malformed, Node
from beowire.doctor.setting import same
from beowire.errors import BeowireError

_DENIED = {errno.EPERM, errno.EACCES}
_ABSENT = {
    errno.ENOENT,
    errno.EOPNOTSUPP,
    errno.ENODEV,
    errno.ENOTDIR,
    errno.ENODATA,
    errno.EINVAL,
    errno.ENXIO,
}


class State(enum.StrEnum):
    """What became of a check."""

    GOOD = "good"
    BAD = "bad"
    ABSENT = "not here"
    DENIED = "needs root"
    FAILED = "cannot be judged"


@dataclass(frozen=True)
class Outcome:
    """One check on one interface, or on the node as a whole."""

    check: Check
    interface: str
    """Empty: the node."""
    state: State
    said: str
    """What was read, or why nothing was."""
    bad: Bad | None = None

    @property
    def weight(self) -> Weight:
        return (self.bad and self.bad.weight) or self.check.weight

    @property
    def subject(self) -> str:
        return f"{self.check.name} {self.interface}".strip()


@dataclass
class Examination:
    """All that one examination found."""

    node: Node
    outcomes: list[Outcome] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    """What was asked for and cannot be had, such as an interface that is not here."""

    def of(self, state: State) -> list[Outcome]:
        return [each for each in self.outcomes if each.state is state]

    def findings(self) -> list[Outcome]:
        """The worst first, else by name."""
        return sorted(self.of(State.BAD), key=lambda each: (-each.weight, each.subject))


def choose(node: Node, wanted: Iterable[str]) -> list[str]:
    """Sets the node's interfaces: those wanted, or all that can carry a cluster's messages: NICs
    that are up with an address, and where there is none, any such interface. Returns what is wrong
    with the names wanted."""
    every = node.all_interfaces()
    by_name = {each.name: each for each in every}
    names = list(dict.fromkeys(wanted))
    if names:
        here = ", ".join(sorted(by_name)) or "none"
        node.interfaces = tuple(by_name[name] for name in names if name in by_name)
        return [
            f"There is no Ethernet interface {name} here; there are: {here}."
            for name in names
            if name not in by_name
        ]
    used = [each for each in every if each.link["up"] and _has_address(node, each)]
    node.interfaces = tuple([each for each in used if each.physical] or used)
    return []


def _has_address(node: Node, interface: Interface) -> bool:
    """It has an address of a network (not of the link alone), or its bond or bridge has."""
    above = interface.link["master"]
    masters = [each for each in node.answer("links") if above and each["index"] == above]
    return any(
        not address.startswith("fe80:")
        for link in (interface.link, *masters)
        for address in link["addresses"]
    )


def examine(node: Node, checks: Iterable[Check], wanted: Iterable[str] = ()) -> Examination:
    """Judges the node by those of the checks that its goal is concerned with."""
    done = Examination(node)
    try:
        done.troubles += choose(node, wanted)
    except OSError as error:
        raise BeowireError(
            f"The interfaces cannot be listed: {error.strerror}.",
            "A recorded tree needs answers/links.json: beowire doctor --record makes one.",
            code=2,
        ) from error
    for check in checks:
        if node.goal not in check.goals:
            continue
        if check.look is not None:
            done.outcomes.append(judge(check, node, None))
        else:
            done.outcomes += [judge(check, node, each) for each in node.interfaces]
    return done


def judge(check: Check, node: Node, interface: Interface | None) -> Outcome:
    """One check's outcome, whatever happens."""
    name = interface.name if interface else ""
    try:
        if interface is None:
            assert check.look is not None
            verdict = check.look(node)
        else:
            assert check.look_at is not None
            verdict = check.look_at(node, interface)
    except NotApplicable as reason:
        return Outcome(check, name, State.ABSENT, str(reason))
    except Malformed as error:
        return Outcome(check, name, State.FAILED, str(error))
    except OSError as error:
        return Outcome(check, name, *_unread(error))
    except (KeyError, IndexError, ValueError, TypeError, ZeroDivisionError) as error:
        return Outcome(check, name, State.FAILED, f"what it reads has another form: {error!r}")
    if isinstance(verdict, Good):
        return Outcome(check, name, State.GOOD, verdict.read)
    needed = tuple(each for each in verdict.changes if not same(each.old, each.new))
    verdict = replace(verdict, changes=needed)
    return Outcome(check, name, State.BAD, verdict.read, verdict)


def _unread(error: OSError) -> tuple[State, str]:
    where = f"{error.filename}: " if error.filename else ""
    said = f"{where}{error.strerror}"
    if error.errno in _DENIED:
        return State.DENIED, said
    if error.errno in _ABSENT:
        return State.ABSENT, said
    return State.FAILED, said
