# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What spoils figures, and must be told with them: senders that did not keep to their schedule,
processors that were the limit and not the line, a bulk transfer that ended too soon."""

from collections.abc import Sequence

from beowire.bench.load.plan import AROUND, Plan
from beowire.bench.load.runs import CARRIERS, TOLD, Carrier, Phase
from beowire.bench.load.slowdown import loaded
from beowire.bench.load.store import Round

REACHED_LEAST = 0.95
"""Of the bytes due in the measured time, those that came in it."""
BEHIND_MOST_S = 0.5
"""After the last message was due, until all were there: the longest message's time, with room."""
AWAY_MOST = 0.05
"""Of a rank's time, in which others had its processor for a millisecond or more at a time."""
INSIDE_MOST = 0.05
"""The same, in which it was in a call of MPI."""
LATE_SHARE = 0.1
"""Of the tail of short messages' times, what their sender's own lateness may be."""


def complaints(rounds: Sequence[Round], plan: Plan) -> list[str]:
    """One for each transport, load and kind, of all rounds together."""
    found = []
    for position in range(len(plan.gaps_ns)):
        for carrier in CARRIERS:
            phases = [loaded(measured[carrier])[position] for measured in rounds]
            name = _told(carrier, plan, position)
            found += [f"{name}: {each}" for each in _of_load(phases, plan)]
    return found


def _told(carrier: Carrier, plan: Plan, position: int) -> str:
    if plan.pattern != "mixed":
        return TOLD[carrier]
    return f"{TOLD[carrier]} at {plan.loads[position]:.0%}"


def _of_load(phases: Sequence[Phase], plan: Plan) -> list[str]:
    found = []
    if held := sum(int(phase["held"]) for phase in phases):
        found.append(
            f"did not keep up: {held:,} messages were held because too many were outstanding at "
            "their sender (their times count from when they were due)"
        )
    reached = sum(phase["reached_bytes"] for phase in phases)
    due = sum(phase["due_bytes"] for phase in phases)
    behind_s = max(_behind_s(phase, plan) for phase in phases)
    if plan.pattern == "mixed" and reached < REACHED_LEAST * due and behind_s > BEHIND_MOST_S:
        found.append(
            f"fell behind: {reached / due:.0%} of the bytes that were due in the measured time came"
            f" in it, and up to {behind_s:.1f} s were needed for the rest: its tail is that of a "
            "queue that grows, and depends on --seconds"
        )
    if plan.pattern == "beside" and (short := _uncovered(phases, plan)):
        found.append(
            f"the bulk transfer ended before the messages in {short} of {len(phases)} rounds: the "
            "line is faster than --rate says"
        )
    return found + _of_processors(phases)


def _behind_s(phase: Phase, plan: Plan) -> float:
    """What was needed after the last message was due."""
    return float(phase["end_ns"]) / 1e9 - AROUND * plan.seconds


def _uncovered(phases: Sequence[Phase], plan: Plan) -> int:
    """Rounds whose bulk transfer did not last as long as messages were measured."""
    measured_to_s = plan.seconds * (1 + (AROUND - 1) / 2)
    return sum(phase["bulk_ns"] < 1e9 * measured_to_s for phase in phases)


def _of_processors(phases: Sequence[Phase]) -> list[str]:
    """Whether ranks did not get the processors when they wanted them, or waited in a call."""
    late_ns = max(float(phase["late_p99_ns"]) for phase in phases)
    tails = [_tail_ns(phase) for phase in phases if phase["ns"]]
    away = max(float(phase["away_share"]) for phase in phases)
    inside = max(float(phase["inside_share"]) for phase in phases)
    found = []
    if inside > INSIDE_MOST:
        found.append(
            f"a rank was busy for {inside:.0%} of its time in calls of MPI that took a millisecond "
            "or more each, and looked after nothing else meanwhile"
        )
    late = late_ns > LATE_SHARE * max(tails, default=0.0)
    if away > AWAY_MOST or (late and not found):
        found.append(
            f"processors were a limit: a rank that would have run did not for {away:.0%} of its "
            f"time (a millisecond or more at once), and 1 % of messages left {late_ns / 1e6:,.2f} "
            "ms late or later although their sender might send; an idle machine, more cores, a "
            "slower line or longer messages help"
        )
    return found


def _tail_ns(phase: Phase) -> float:
    """Of the shorter half of the messages, which wait for others most."""
    import numpy as np

    sizes, ns = np.asarray(phase["bytes"]), np.asarray(phase["ns"], dtype=float)
    return float(np.percentile(ns[sizes <= np.median(sizes)], 99))
