# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Keeps of the fixes what helps: each is tried with a peer, off and on in turn, and what shows no
gain goes back.

The undo file has each change before it is made, so that whatever ends a trial can be undone.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from beowire.bench.samples import CONFIDENCE, Ratio, paired
from beowire.doctor import fix, journal
from beowire.doctor.examine import Outcome
from beowire.doctor.fix import Result, Step
from beowire.doctor.journal import Entry, Journal
from beowire.doctor.node import Goal, Node
from beowire.doctor.series import NAMES, Key, Measurer, Series, Transport, Turn
from beowire.doctor.setting import same
from beowire.doctor.source import Source

_SHORT_BYTES = 8
_LONG_BYTES = 1 << 16


@dataclass(frozen=True)
class Trial:
    """What became of fixes that were tried together."""

    names: tuple[str, ...]
    steps: tuple[Step, ...]
    factors: dict[str, Ratio]
    """How many times faster, by what was measured."""
    kept: bool

    def said(self) -> str:
        told = ", ".join(f"{name} {each}" for name, each in self.factors.items())
        return told or "; ".join(step.said for step in self.steps) or "nothing was changed"


def turns(goal: Goal) -> list[Turn]:
    """What a node for this goal has to do well."""
    both: tuple[Transport, ...] = ("tcp", "beowire")
    if goal is Goal.LATENCY:
        return [Turn("latency", "block", _SHORT_BYTES, both)]
    return [Turn("bandwidth", "block", _LONG_BYTES, both, back=back) for back in (False, True)]


def name_of(key: Key) -> str:
    """What was measured, for people."""
    way = ", to here" if key.back else ""
    return f"{NAMES[key.transport]} {'latency' if key.mode == 'latency' else 'bulk'}{way}"


def together(outcomes: Iterable[Outcome], by: str) -> list[list[Outcome]]:
    """The fixes that are tried at once: each check alone, a group of checks, or all."""
    found: dict[str, list[Outcome]] = {}
    for each in outcomes:
        name = {"check": each.subject, "group": each.check.group, "all": ""}[by]
        found.setdefault(name, []).append(each)
    return list(found.values())


def attempt(
    source: Source,
    node: Node,
    lots: Iterable[list[Outcome]],
    log: Journal,
    measurer: Measurer,
    usable: list[Turn],
    rounds: int,
    tell: Callable[[str], None],
) -> Iterator[Trial]:
    """Tries each lot of fixes on top of those that were kept before."""
    for lot in lots:
        names = tuple(each.subject for each in lot)
        first = len(journal.read(log.path).entries)
        try:
            tell(f"trying {', '.join(names)}")
            steps = tuple(fix.apply(source, node, lot, log))
            made = _made(log, first)
            factors = _compared(source, made, measurer, usable, rounds) if made else {}
        except BaseException:
            with contextlib.suppress(OSError):
                _switch(source, _made(log, first), on=False)
            raise
        kept = helped(factors.values())
        _switch(source, made, on=kept)
        yield Trial(names, steps, factors, kept)


def helped(factors: Iterable[Ratio]) -> bool:
    """Something is faster beyond doubt, and nothing is slower beyond doubt."""
    every = list(factors)
    return any(each.low > 1 for each in every) and not any(each.high < 1 for each in every)


def _made(log: Journal, first: int) -> list[Entry]:
    """The changes since the first so many that took effect."""
    entries = journal.read(log.path).entries[first:]
    return [each for each in entries if each.became is not None and not same(each.old, each.became)]


def _switch(source: Source, entries: list[Entry], *, on: bool) -> None:
    """Makes the changes, or takes them back, the last first."""
    for each in entries if on else reversed(entries):
        assert each.became is not None
        each.setting.write(source, each.became if on else each.old)


def _compared(
    source: Source, made: list[Entry], measurer: Measurer, usable: list[Turn], rounds: int
) -> dict[str, Ratio]:
    """With the changes against without, round by round; the order turns each time."""
    found: dict[bool, dict[Key, list[float]]] = {False: {}, True: {}}
    for number in range(rounds):
        for on in (False, True) if number % 2 else (True, False):
            _switch(source, made, on=on)
            for turn in usable:
                for key, value in measurer.run(turn).items():
                    found[on].setdefault(key, []).append(value)
    confidence = 1 - (1 - CONFIDENCE) / len(found[True])
    factors = {}
    for key, with_ in found[True].items():
        without = found[False][key]
        slow, fast = (without, with_) if key.mode == "latency" else (with_, without)
        factors[name_of(key)] = paired(slow, fast, confidence)
    return factors


def refused(trial: Trial) -> bool:
    """The kernel or the driver did not take all of it."""
    return any(step.result is Result.REFUSED for step in trial.steps)


def prepared(measurer: Measurer, goal: Goal, series: Series) -> list[Turn]:
    """The turns that work with this peer; what does not is told in the series' troubles."""
    return measurer.usable(turns(goal), series)
