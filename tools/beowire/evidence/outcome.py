# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What came of an entry, and how it is judged from figures."""

from dataclasses import dataclass, replace
from typing import Any

from beowire.evidence.entry import Entry
from beowire.evidence.figures import Figures, MissingError, decode

AGREES, DIFFERS, CANNOT, FAILED = "agrees", "differs", "cannot", "failed"
OUTCOMES = (AGREES, DIFFERS, CANNOT, FAILED)


@dataclass(frozen=True)
class Outcome:
    """Of one entry."""

    id: str
    outcome: str
    why: str
    ours: Figures | None
    """None: nothing was measured."""
    seconds: float
    """What measuring took; nothing where another entry had measured it already."""
    commit: str = ""
    load: tuple[float, float] | None = None
    """Of an entry that was measured anew, later than the others of its file: its own commit, and
    the least and the largest load of the machine."""

    def as_json(self, entry: Entry) -> dict[str, Any]:
        anew = {} if self.load is None else {"commit": self.commit, "load": list(self.load)}
        return {
            "id": self.id,
            "label": entry.label,
            "title": entry.title,
            "outcome": self.outcome,
            "paper": {
                "where": entry.paper.where,
                "says": entry.paper.says,
                **entry.paper.values.as_json(),
            },
            "ours": self.ours.as_json() if self.ours is not None else None,
            "criterion": entry.criterion.text(),
            "why": self.why,
            "seconds": round(self.seconds, 1),
            **anew,
        }


def read(told: Any) -> Outcome:
    """What `as_json` gave. Raises ValueError, KeyError, TypeError or AttributeError for other."""
    outcome = str(told["outcome"])
    if outcome not in OUTCOMES:
        raise ValueError(f"outcome {outcome}")
    ours = decode(told["ours"]) if told["ours"] is not None else None
    found = Outcome(str(told["id"]), outcome, str(told["why"]), ours, float(told["seconds"]))
    if "load" not in told:
        return found
    low, high = told["load"]
    return replace(found, commit=str(told["commit"]), load=(float(low), float(high)))


def judge(entry: Entry, ours: Figures, more: Figures | None, seconds: float) -> Outcome:
    """By the entry's criterion; where that does not hold its explanation is tested, of which `more`
    are the figures if they are not the entry's own."""
    try:
        found = entry.criterion.judge(ours)
    except MissingError as missing:
        return Outcome(entry.id, CANNOT, f"not measured: {missing}", ours, seconds)
    if found.holds:
        return Outcome(entry.id, AGREES, found.why, ours, seconds)
    why = f"{found.why}. {_explained(entry, ours if more is None else more)}"
    return Outcome(entry.id, DIFFERS, why, ours, seconds)


def _explained(entry: Entry, figures: Figures) -> str:
    if entry.explanation is None:
        return "No explanation was tested."
    try:
        tested = entry.explanation.criterion.judge(figures)
    except MissingError as missing:
        return f"Not tested, for want of {missing}: {entry.explanation.says}"
    verdict = "Tested, and it holds" if tested.holds else "Tested, and it does not hold"
    return f"{verdict} ({tested.why}): {entry.explanation.says}"
