# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waves of an incast: how much of the line they fill, and how unevenly messages end.

A wave lasts from when its messages were due until the last one is there. Its *share* is what that
is of the line's rate, in payload, without what an idle line of a lab lets through at once. A
message's *fair time* is what the whole wave takes at the
line's rate: all would end then if all got the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beowire.bench.load.plan import Plan
from beowire.bench.load.runs import CARRIERS, Carrier, Phase
from beowire.bench.load.slowdown import loaded, ratio_of_rounds
from beowire.bench.load.store import Round
from beowire.bench.matrix.cells import has_interval
from beowire.bench.samples import Ratio

SHARE_WANTED = 0.95
FAIR_TIMES_WANTED = 3.0


@dataclass(frozen=True)
class Waves:
    """Those of one transport."""

    carrier: Carrier
    waves: int
    messages: int
    share: float
    """The median of all waves."""
    least_share: float
    longest: float
    """Of all messages, in fair times."""
    rounds: tuple[float, ...]
    """Each one's median share."""

    @property
    def good(self) -> bool:
        """As is wanted of Beowire."""
        return self.share >= SHARE_WANTED and self.longest <= FAIR_TIMES_WANTED


@dataclass(frozen=True)
class Incast:
    """Both transports, and the ratio of their shares."""

    beowire: Waves
    tcp: Waves
    ratio: Ratio

    def as_json(self) -> dict[str, Any]:
        known = has_interval(self.ratio)
        return {
            **{
                name: {**vars(each), "good": each.good}
                for name, each in (("beowire", self.beowire), ("tcp", self.tcp))
            },
            "ratio": self.ratio.value,
            "low": self.ratio.low if known else None,
            "high": self.ratio.high if known else None,
        }


def shares(phase: Phase, full_ns: float, senders: int) -> list[float]:
    """Of each wave of a phase that was measured as a whole; `full_ns` is a share of 1."""
    import numpy as np

    due, ns = np.asarray(phase["due_ns"]), np.asarray(phase["ns"], dtype=float)
    longest = [ns[due == each].max() for each in np.unique(due) if (due == each).sum() == senders]
    return [full_ns / each for each in longest]


def found(rounds: Sequence[Round], plan: Plan) -> Incast:
    """Out of the rounds. ValueError if there is no whole wave in one."""
    told = {carrier: _waves(rounds, carrier, plan) for carrier in CARRIERS}
    beowire, tcp = told["beowire"], told["tcp"]
    return Incast(beowire, tcp, ratio_of_rounds(beowire.rounds, tcp.rounds))


def _waves(rounds: Sequence[Round], carrier: Carrier, plan: Plan) -> Waves:
    import numpy as np

    phases = [loaded(measured[carrier])[0] for measured in rounds]
    by_round = [shares(phase, plan.full_ns, plan.senders) for phase in phases]
    if not all(by_round):
        raise ValueError("a round without a wave")
    every = [share for row in by_round for share in row]
    return Waves(
        carrier=carrier,
        waves=len(every),
        messages=sum(len(phase["ns"]) for phase in phases),
        share=float(np.median(every)),
        least_share=min(every),
        longest=max(max(phase["ns"]) for phase in phases) / plan.fair_ns,
        rounds=tuple(float(np.median(row)) for row in by_round),
    )
