# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comes of the rounds: for each figure of an application, at a number of ranks and nodes, the
ratio of times and a verdict."""

from dataclasses import dataclass, field
from typing import Any

from beowire.bench.apps.place import Shape
from beowire.bench.matrix.cells import VERDICTS, Verdict, has_interval, judged, middle
from beowire.bench.samples import Ratio, ratio


@dataclass(frozen=True)
class Key:
    """Names a cell."""

    figure: str
    shape: Shape


@dataclass
class Cell:
    """A figure's times, round by round; at least one round."""

    key: Key
    application: str
    unit: str
    tcp: list[float] = field(default_factory=list)
    beowire: list[float] = field(default_factory=list)

    def add(self, tcp: float, beowire: float) -> None:
        self.tcp.append(tcp)
        self.beowire.append(beowire)

    @property
    def ratio(self) -> Ratio:
        """Beowire's time to TCP's."""
        return ratio(self.beowire, self.tcp)

    @property
    def verdict(self) -> Verdict:
        return judged(self.ratio, lower_is_better=True)

    @property
    def badness(self) -> tuple[int, float]:
        """The worst cells sort first."""
        return VERDICTS.index(self.verdict), -self.ratio.value

    def as_json(self) -> dict[str, Any]:
        """The keys are described in docs/apps.md, and stay."""
        found = self.ratio
        known = has_interval(found)
        return {
            "application": self.application,
            "figure": self.key.figure,
            "ranks": self.key.shape.ranks,
            "nodes": self.key.shape.nodes,
            "ratio": found.value,
            "low": found.low if known else None,
            "high": found.high if known else None,
            "verdict": self.verdict,
            "unit": self.unit,
            "tcp": middle(self.tcp),
            "beowire": middle(self.beowire),
            "rounds": len(self.tcp),
            "values": {"tcp": self.tcp, "beowire": self.beowire},
        }
