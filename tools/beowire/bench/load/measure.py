# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The order of runs: round by round, TCP and Beowire in turn (A B A B).

A round counts when both have been measured, and is kept at once. Both send the same messages at
the same times in a round, others in the next.
"""

from collections.abc import Callable

from beowire.bench.load.runs import CARRIERS, TOLD, Carrier, Phase
from beowire.bench.load.store import Round, Store

Runner = Callable[[Carrier, int], list[Phase]]
"""Measures a transport in a round."""


def steps(store: Store, rounds: int) -> int:
    """How many runs are left."""
    return len(CARRIERS) * max(rounds - len(store.rounds), 0)


def sweep(store: Store, rounds: int, run: Runner, begin: Callable[[str], None]) -> None:
    """Measures the rounds that the store lacks; `begin` hears of each run before it is made."""
    for number in range(len(store.rounds) + 1, rounds + 1):
        measured: Round = {}
        for carrier in CARRIERS:
            begin(f"round {number} of {rounds}, {TOLD[carrier]}")
            measured[carrier] = run(carrier, number)
        store.add(measured)
