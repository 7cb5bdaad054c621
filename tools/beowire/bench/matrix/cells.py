# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comes of the rounds: for each cell the ratio to the fastest other stack, and a verdict.

The fastest is found in the same rounds, so that it is no choice made beforehand; where two are
about as fast, it is the one that was luckier, which is to Beowire's disadvantage.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from beowire.bench.matrix.figures import FIGURES, Figure
from beowire.bench.matrix.grid import Key
from beowire.bench.samples import Ratio, ratio

Verdict = Literal["ahead", "even", "behind"]
VERDICTS: tuple[Verdict, ...] = ("behind", "even", "ahead")
"""The worst first."""


@dataclass
class Cell:
    """A cell's values, round by round, in its figure's unit; at least one round."""

    key: Key
    beowire: list[float] = field(default_factory=list)
    others: dict[str, list[float]] = field(default_factory=dict)
    """By stack, of the same rounds."""

    @property
    def figure(self) -> Figure:
        return FIGURES[self.key.figure]

    @property
    def rounds(self) -> int:
        return len(self.beowire)

    def add(self, beowire: float, others: dict[str, float]) -> None:
        """One more round. Other stacks than before make the rounds before it worthless."""
        if set(others) != set(self.others):
            self.beowire, self.others = [], {stack: [] for stack in others}
        self.beowire.append(beowire)
        for stack, value in others.items():
            self.others[stack].append(value)

    @property
    def stack(self) -> str:
        """The fastest of the others."""
        best = min if self.figure.lower_is_better else max
        return best(self.others, key=lambda stack: middle(self.others[stack]))

    @property
    def ratio(self) -> Ratio:
        """Beowire's to that of the fastest of the others."""
        return ratio(self.beowire, self.others[self.stack])

    @property
    def advantage(self) -> float:
        """The ratio, turned over where less is better: above 1 Beowire is ahead."""
        value = self.ratio.value
        return 1 / value if self.figure.lower_is_better else value

    @property
    def verdict(self) -> Verdict:
        return judged(self.ratio, lower_is_better=self.figure.lower_is_better)

    @property
    def badness(self) -> tuple[int, float]:
        """The worst cells sort first: what is behind for sure, by how much, then the others."""
        return VERDICTS.index(self.verdict), self.advantage

    def as_json(self) -> dict[str, Any]:
        """The keys are described in docs/matrix.md, and stay."""
        found = self.ratio
        known = has_interval(found)
        return {
            **vars(self.key),
            "ratio": found.value,
            "low": found.low if known else None,
            "high": found.high if known else None,
            "verdict": self.verdict,
            "unit": self.figure.unit,
            "lower_is_better": self.figure.lower_is_better,
            "beowire": middle(self.beowire),
            "tcp": middle(self.others[self.stack]),
            "stack": self.stack,
            "rounds": self.rounds,
            "values": {"beowire": self.beowire, **self.others},
        }


def middle(values: list[float]) -> float:
    """The geometric mean, whose quotients are the ratios told."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def has_interval(found: Ratio) -> bool:
    """Whether the rounds could carry one."""
    return found.low > 0 or math.isfinite(found.high)


def judged(found: Ratio, *, lower_is_better: bool) -> Verdict:
    """Ahead or behind only if the whole interval is on that side of 1."""
    if found.low <= 1 <= found.high:
        return "even"
    return "ahead" if (found.high < 1) == lower_is_better else "behind"


def of_json(told: dict[str, Any]) -> Cell:
    """The cell out of what as_json() gave. KeyError, TypeError or ValueError if it is none."""
    names = ("figure", "bytes", "link", "mtu", "mpi")
    key = Key(**{name: told[name] for name in names})
    FIGURES[key.figure]
    values = {stack: [float(each) for each in row] for stack, row in told["values"].items()}
    cell = Cell(key, values.pop("beowire"), values)
    rows = [cell.beowire, *cell.others.values()]
    if not cell.others or {len(row) for row in rows} != {cell.rounds} or not cell.rounds:
        raise ValueError("not as many rounds of each stack")
    if not all(value > 0 for row in rows for value in row):
        raise ValueError("a value that is not above zero")
    return cell
