# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a check is, and what it can say.

A check is a value: what it judges, why that matters and by which source, how its fix is applied,
and a function that looks. The function returns a verdict, or raises NotApplicable where the node
has nothing to judge. What it cannot read raises OSError, which the examination tells apart.
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass, field

from beowire.doctor.node import Goal, Interface, Node
from beowire.doctor.setting import Setting


class Weight(enum.IntEnum):
    """How much a finding costs; the worst come first."""

    SLIGHT = 1
    """Some per cent, or only at times."""
    COSTLY = 2
    """A good part of latency or throughput."""
    SEVERE = 3
    """A multiple, or lost frames."""


class Sure(enum.StrEnum):
    """What the good value rests on."""

    MEASURED = "measured"
    """Papers or the lab book show the effect in figures."""
    DOCUMENTED = "documented"
    """A standard or the kernel's documentation says so."""
    RULE = "rule of thumb"
    """Common practice; measure before and after."""


class Fix(enum.StrEnum):
    """What applying the fix does to the node."""

    LIVE = "live"
    """Takes effect at once and disturbs nothing."""
    INTERRUPTS = "interrupts the link"
    """The interface may lose its link for seconds."""
    REBOOT = "after a reboot"
    """The kernel's command line or another kernel."""
    REPORT = "report only"
    """The administrator's own decision, or nothing that software can fix."""


class NotApplicable(Exception):  # noqa: N818
    """The node has nothing that this check could judge; the text says what is missing."""


@dataclass(frozen=True)
class Change:
    """A setting and the value that it should get."""

    setting: Setting
    old: str
    new: str


@dataclass(frozen=True)
class Good:
    """Nothing to complain of; `read` says what was read."""

    read: str


@dataclass(frozen=True)
class Bad:
    """What was read, what would be good, and what fixes it."""

    read: str
    good: str
    changes: tuple[Change, ...] = ()
    """Empty where the doctor fixes nothing itself."""
    advice: str = ""
    """What a person can do where there are no changes."""
    weight: Weight | None = None
    """Where it differs from the check's own."""


Verdict = Good | Bad

ALL_GOALS = frozenset(Goal)
LATENCY = frozenset({Goal.LATENCY})
THROUGHPUT = frozenset({Goal.THROUGHPUT, Goal.WAN})
CLUSTER = frozenset({Goal.LATENCY, Goal.THROUGHPUT})


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that the doctor knows about; exactly one of the two functions is set."""

    name: str
    """group.noun, unique."""
    title: str
    """What holds when all is well."""
    why: str
    """What it costs otherwise."""
    sources: tuple[str, ...]
    """Papers by label, kernel documents by path, RFCs."""
    reads: tuple[str, ...]
    """Files and netlink requests, with IFACE for the interface."""
    sure: Sure
    weight: Weight
    fix: Fix
    goals: frozenset[Goal] = field(default=ALL_GOALS)
    of_peer: bool = False
    """Judges the path to the node's peer; there is nothing to judge without one."""
    look: Callable[[Node], Verdict] | None = None
    """Judges the node as a whole."""
    look_at: Callable[[Node, Interface], Verdict] | None = None
    """Judges one interface."""

    def __post_init__(self) -> None:
        assert (self.look is None) != (self.look_at is None), self.name

    @property
    def group(self) -> str:
        return self.name.partition(".")[0]
