# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Do the intervals of a fit hold the truth as often as they say? Made-up runs of a known program.

Each trial draws one run for every N from 1 to a share of the optimum, with noise in proportion to
the time, fits it, and looks whether the truth lies in the intervals of a, n, N_opt and S(N_opt).
The seed is fixed: the same trials each time.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from beowire.model import law
from beowire.model.fit import Fit, Interval, fit

SHARES = (0.02, 0.2)
"""Serial shares a."""
REACHES = (0.5, 1.0, 1.5)
"""The largest N measured, by N_opt."""
NAMES = ("a", "n", "N_opt", "S(N_opt)")
_SEED = 1


@dataclass(frozen=True)
class Case:
    """One made-up program and what of it is measured."""

    a: float
    reach: float
    optimum: float
    noise: float

    @property
    def truth(self) -> tuple[float, float, float, float]:
        """a, n, N_opt and S(N_opt)."""
        n = law.parameter(self.a, self.optimum)
        return self.a, n, self.optimum, law.best_speedup(self.a, n)


@dataclass(frozen=True)
class Coverage:
    """How the intervals of a case did."""

    case: Case
    trials: int
    runs: int
    """In each trial."""
    held: dict[str, float]
    """By quantity: the share of trials whose interval holds the truth."""
    width: dict[str, float | None]
    """The median width of the interval as a share of the truth; None: without an upper end."""
    bound: dict[str, float]
    """The median lower end as a share of the truth."""
    clear: float
    """The share of trials that gave a point for N_opt; the others only bounds."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def cases(optimum: float, noise: float) -> Iterator[Case]:
    """The programs that are tried."""
    for a in SHARES:
        for reach in REACHES:
            yield Case(a, reach, optimum, noise)


def intervals(found: Fit) -> tuple[Interval, Interval, Interval, Interval]:
    """Of a, n, N_opt and S(N_opt)."""
    return found.a_interval, found.n_interval, found.optimum_interval, found.best_interval


def cover(case: Case, trials: int) -> Coverage:
    """Tries one case."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    a, n, *_ = case.truth
    truth = np.array(case.truth)
    nodes = np.arange(1, round(case.reach * case.optimum) + 1, dtype=float)
    times = nodes / law.speedup(a, n, nodes) / nodes
    lows, highs = np.empty((trials, 4)), np.empty((trials, 4))
    clear = 0
    for trial in range(trials):
        noise = 1 + case.noise * generator.standard_normal(len(nodes))
        found = fit(nodes, times * noise)
        clear += found.clear
        for place, interval in enumerate(intervals(found)):
            lows[trial, place], highs[trial, place] = interval.low, interval.high
    held = ((lows <= truth) & (truth <= highs)).mean(axis=0)
    # A lower end may be infinite too (no optimum at all): its interval has no width.
    width = np.median((highs - np.where(np.isinf(lows), 0, lows)) / truth, axis=0)
    return Coverage(
        case,
        trials,
        len(nodes),
        dict(zip(NAMES, map(float, held), strict=True)),
        {
            name: float(each) if np.isfinite(each) else None
            for name, each in zip(NAMES, width, strict=True)
        },
        dict(zip(NAMES, map(float, np.median(lows, axis=0) / truth), strict=True)),
        clear / trials,
    )
