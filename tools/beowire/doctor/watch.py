# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Examines again and again, and tells what has changed: findings that came and went, and frames
that were lost or damaged since the last look."""

from collections.abc import Iterator
from dataclasses import dataclass

from beowire.doctor.examine import Examination, Outcome, State

_LOSSES = {
    "link.damage": ("rx_crc_errors", "rx_frame_errors", "rx_length_errors", "tx_carrier_errors"),
    "rings.lost": ("rx_missed_errors", "rx_fifo_errors", "rx_over_errors"),
}
"""Counters of interfaces by the check that explains them. Since the start of the node a check asks
for a share of all frames; while one watches each counts."""


@dataclass(frozen=True)
class Event:
    """Something that is otherwise than at the last look."""

    kind: str
    """new, changed, gone, unseen (it cannot be judged any more), lost"""
    subject: str
    said: str


def first(done: Examination) -> list[Event]:
    """The findings of the first look."""
    return [Event("found", each.subject, _said(each)) for each in done.findings()]


def between(before: Examination, now: Examination) -> list[Event]:
    """What came, went and changed from one look to the next."""
    old = {each.subject: each for each in before.findings()}
    new = {each.subject: each for each in now.findings()}
    events = [Event("new", name, _said(each)) for name, each in new.items() if name not in old]
    looked = {each.subject: each for each in now.outcomes}
    events += [_ended(looked.get(name), name) for name in old if name not in new]
    here = {each.name for each in now.node.interfaces}
    events += [
        Event("unseen", each.name, "the interface is not here any more, or not in use")
        for each in before.node.interfaces
        if each.name not in here
    ]
    events += [
        Event("changed", name, _said(each))
        for name, each in new.items()
        if name in old and each.said != old[name].said
    ]
    return [*events, *_losses(before, now)]


def _ended(now: Outcome | None, name: str) -> Event:
    """A finding that is none any more: it is good now, or what it was about is not seen."""
    if now is None or now.state is not State.GOOD:
        return Event("unseen", name, f"{now.state}: {now.said}" if now else "it is not judged")
    return Event("gone", name, now.said)


def _said(outcome: Outcome) -> str:
    good = outcome.bad.good if outcome.bad else ""
    return f"{outcome.said}; good is {good}"


def _losses(before: Examination, now: Examination) -> Iterator[Event]:
    links = {each.name: each.link["counters"] for each in before.node.interfaces}
    for each in now.node.interfaces:
        for check, names in _LOSSES.items():
            counters = each.link["counters"]
            grown = {
                name: more
                for name in names
                if (more := counters.get(name, 0) - links.get(each.name, {}).get(name, 0)) > 0
            }
            if each.name in links and grown:
                said = ", ".join(f"{more} {name}" for name, more in grown.items())
                yield Event("lost", f"{check} {each.name}", said)
