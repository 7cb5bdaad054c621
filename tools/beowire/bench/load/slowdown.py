# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slowdowns: the time of a message under load to that of one as long with nothing else moving.

There is one denominator for both transports: of each size the shorter of both transports' medians,
in the best round, straight lines between sizes. So a transport that is slow alone is slow here too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beowire.bench.load.runs import Carrier, Phase
from beowire.bench.load.store import Round
from beowire.bench.matrix.cells import Verdict, has_interval, judged
from beowire.bench.samples import Ratio, ratio

if TYPE_CHECKING:
    from numpy.typing import NDArray

PERCENTILES = {"p50": (500, 10), "p99": (990, 100), "p99.9": (999, 1000)}
"""In thousandths, and the fewest messages that tell it: ten for a median, else one beyond it."""
ROUNDS_LEAST = 3
"""An interval from fewer is wider than anything it could be compared with."""


@dataclass(frozen=True)
class Alone:
    """What messages take with nothing else moving, by size."""

    bytes: tuple[int, ...]
    ns: tuple[float, ...]

    def at(self, sizes: Sequence[int]) -> "NDArray[Any]":
        import numpy as np

        return np.asarray(np.interp(sizes, self.bytes, self.ns))


@dataclass(frozen=True)
class Figure:
    """A percentile of the messages of one class at one load."""

    load: float
    low_bytes: int
    """Messages of the class are longer than it; 0: from the shortest on."""
    high_bytes: int
    percentile: str
    messages: int
    """Of each transport, in all rounds."""
    beowire: float | None
    """The slowdown of all rounds' messages; None: too few for it."""
    tcp: float | None
    ratio: Ratio | None
    """Of the rounds; without an interval where there are too few of them, or of messages in one."""

    @property
    def verdict(self) -> Verdict | None:
        return None if self.ratio is None else judged(self.ratio, lower_is_better=True)

    def as_json(self) -> dict[str, Any]:
        found = self.ratio
        known = found is not None and has_interval(found)
        return {
            **{name: each for name, each in vars(self).items() if name != "ratio"},
            "ratio": found.value if found else None,
            "low": found.low if found and known else None,
            "high": found.high if found and known else None,
            "verdict": self.verdict,
        }


def alone(rounds: Sequence[Round]) -> Alone:
    """Out of the phases without load."""
    import numpy as np

    best: dict[int, float] = {}
    for measured in rounds:
        for phases in measured.values():
            for phase in phases:
                if phase["phase"] != "idle":
                    continue
                sizes, ns = np.asarray(phase["bytes"]), np.asarray(phase["ns"], dtype=float)
                for size in np.unique(sizes):
                    median = float(np.median(ns[sizes == size]))
                    best[int(size)] = min(best.get(int(size), median), median)
    found = sorted(best.items())
    return Alone(tuple(size for size, _ in found), tuple(ns for _, ns in found))


def loaded(phases: Sequence[Phase]) -> list[Phase]:
    """The phases with load, in the order of the loads."""
    return [phase for phase in phases if phase["phase"] == "load"]


def percentile(values: "NDArray[Any]", name: str) -> float | None:
    """By nearest rank; None if there are too few."""
    import numpy as np

    thousandths, least = PERCENTILES[name]
    if values.size < least:
        return None
    rank = -(-values.size * thousandths // 1000)  # whole numbers: a product may be a bit too much
    return float(np.partition(values, rank - 1)[rank - 1])


def ratio_of_rounds(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """Of one number of each round, without an interval where there are too few rounds."""
    found = ratio(over, under)
    return found if len(over) >= ROUNDS_LEAST else Ratio(found.value, 0.0, math.inf)


def ratio_of(
    beowire: Sequence["NDArray[Any]"], tcp: Sequence["NDArray[Any]"], name: str
) -> Ratio | None:
    """Of the rounds' percentiles, if each round has enough messages for one, else of the
    percentiles of all messages, without an interval."""
    import numpy as np

    over = [percentile(each, name) for each in beowire]
    under = [percentile(each, name) for each in tcp]
    above = [each for each in over if each is not None]
    below = [each for each in under if each is not None]
    if len(above) == len(over) and len(below) == len(under):
        return ratio_of_rounds(above, below)
    one = percentile(np.concatenate(beowire), name)
    other = percentile(np.concatenate(tcp), name)
    return None if one is None or other is None else Ratio(one / other, 0.0, math.inf)


def figures(rounds: Sequence[Round], loads: Sequence[float], bounds: Sequence[int]) -> list[Figure]:
    """Of each load all messages, and those of each class up to its bound."""
    base = alone(rounds)
    found = []
    for position, load in enumerate(loads):
        spans = [(0, bounds[-1])]
        if len(bounds) > 1:
            spans += list(zip([0, *bounds], bounds, strict=False))
        slow = {name: _slowdowns(rounds, name, position, base) for name in ("beowire", "tcp")}
        for low, high in spans:
            ours = _of_class(slow["beowire"], low, high)
            theirs = _of_class(slow["tcp"], low, high)
            found += [_figure(load, low, high, name, ours, theirs) for name in PERCENTILES]
    return found


def _of_class(
    rounds: Sequence[tuple["NDArray[Any]", "NDArray[Any]"]], low: int, high: int
) -> list["NDArray[Any]"]:
    """The slowdowns of messages longer than `low` and no longer than `high`, of each round."""
    return [values[(sizes > low) & (sizes <= high)] for sizes, values in rounds]


def _slowdowns(
    rounds: Sequence[Round], carrier: Carrier, position: int, base: Alone
) -> list[tuple["NDArray[Any]", "NDArray[Any]"]]:
    """Sizes and slowdowns of the messages of each round."""
    import numpy as np

    found = []
    for measured in rounds:
        phase = loaded(measured[carrier])[position]
        sizes = np.asarray(phase["bytes"])
        found.append((sizes, np.asarray(phase["ns"], dtype=float) / base.at(phase["bytes"])))
    return found


def _figure(
    load: float,
    low: int,
    high: int,
    name: str,
    ours: Sequence["NDArray[Any]"],
    theirs: Sequence["NDArray[Any]"],
) -> Figure:
    import numpy as np

    beowire, tcp = np.concatenate(ours), np.concatenate(theirs)
    return Figure(
        load=load,
        low_bytes=low,
        high_bytes=high,
        percentile=name,
        messages=min(beowire.size, tcp.size),
        beowire=percentile(beowire, name),
        tcp=percentile(tcp, name),
        ratio=ratio_of(ours, theirs, name),
    )
