# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs checks on a node. One that cannot be judged is named with its reason; the rest goes on."""

import enum
import errno
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from beowire.doctor.check import Bad, Check, Good, NotApplicable, Weight
from beowire.doctor.node import Interface, Malformed, Node, has_address
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


_OTHER_FORM = (
    AttributeError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    ZeroDivisionError,
)
_FOR_OTHERS = {"bridge", "bond", "team", "dummy", "ifb"}
"""Kinds that are nothing without an address or others' frames."""


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
    """Sets the node's interfaces: those wanted, or all that carry a cluster's messages or did so:
    NICs with an address, up or down, and those with a link that have lost theirs; where there is
    none, any such interface. Returns what is wrong with the names wanted."""
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
    used = [each for each in every if _is_used(node, each)]
    node.interfaces = tuple([each for each in used if each.physical] or used)
    return []


def _is_used(node: Node, interface: Interface) -> bool:
    """It has an address, or has carried frames and is not there for others' alone. One that fell
    out of use must not fall out of the verdict."""
    link = interface.link
    carried = bool(link["counters"].get("rx_packets"))
    if has_address(node, interface):
        return bool(link["up"]) or carried or interface.physical
    if link["master"] or interface.kind in _FOR_OTHERS:
        return False
    return carried and (not link["up"] or link["carrier"] != 0)


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
    except (AttributeError, KeyError, TypeError, ValueError, Malformed) as error:
        raise BeowireError(
            f"What is told of the interfaces has another form: {error}.",
            "A recorded tree may be damaged; make it again: beowire doctor --record",
            code=2,
        ) from error
    chosen = [check for check in checks if node.goal in check.goals]
    if not node.interfaces and not done.troubles and any(check.look_at for check in chosen):
        done.troubles.append("There is no Ethernet interface in use, so none was examined.")
    for check in chosen:
        if check.look is not None:
            done.outcomes.append(judge(check, node, None))
        else:
            done.outcomes += [judge(check, node, each) for each in node.interfaces]
    done.troubles += _unprobed(done)
    return done


def _unprobed(done: Examination) -> list[str]:
    """The peer was asked for: where its path cannot be judged, that is no good end."""
    return [
        f"The path to {done.node.peer} cannot be judged ({each.subject}): {each.said}."
        for each in done.outcomes
        if done.node.peer and each.check.of_peer and each.state not in (State.GOOD, State.BAD)
    ]


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
    except _OTHER_FORM as error:
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
