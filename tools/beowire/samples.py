# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers out of samples: percentiles, and ratios with the uncertainty that belongs to them.

Two transports are compared by runs that alternate (A B A B). The samples inside a run are not
independent of one another, the rounds are; so a ratio's interval is drawn by resampling rounds,
both runs of a round together. (numpy is imported where it is used: it would cost every start
of the command a tenth of a second.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

PERCENTILES = (1, 50, 90, 99)
CONFIDENCE = 0.95
_RESAMPLES = 4000
_SEED = 1


@dataclass(frozen=True)
class Ratio:
    """A quotient of medians and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def percentiles(samples: Sequence[float]) -> dict[str, float]:
    """The median and other percentiles by nearest rank, as {"p50": ...}, with the extremes and
    the count."""
    import numpy as np

    values = np.asarray(samples, dtype=float)
    if values.size == 0:
        raise ValueError("no samples")
    ranked = np.percentile(values, PERCENTILES, method="inverted_cdf")
    result = {f"p{each}": float(value) for each, value in zip(PERCENTILES, ranked, strict=True)}
    return {**result, "min": float(values.min()), "max": float(values.max()), "count": values.size}


def ratio(over: Sequence[float], under: Sequence[float]) -> Ratio:
    """The median of `over` divided by that of `under`, one number from each run; `over[i]` and
    `under[i]` come from the same round. With one round the interval is the value alone."""
    import numpy as np

    upper = np.asarray(over, dtype=float)
    lower = np.asarray(under, dtype=float)
    if upper.size != lower.size or upper.size == 0:
        raise ValueError("as many numbers above as below, and at least one")
    if (upper <= 0).any() or (lower <= 0).any():
        raise ValueError("a ratio needs numbers above zero")
    value = float(np.median(upper) / np.median(lower))
    drawn = _resampled_ratios(upper, lower)
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = (float(each) for each in np.percentile(drawn, (tail, 100 - tail)))
    return Ratio(value, min(low, value), max(high, value))


def _resampled_ratios(upper: "NDArray[float64]", lower: "NDArray[float64]") -> "NDArray[float64]":
    """Ratios of medians over rounds drawn with replacement; the seed is fixed, so that the same
    samples give the same interval."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    rounds = generator.integers(0, upper.size, size=(_RESAMPLES, upper.size))
    result: NDArray[float64] = np.median(upper[rounds], axis=1) / np.median(lower[rounds], axis=1)
    return result


def paired(over: Sequence[float], under: Sequence[float], confidence: float = CONFIDENCE) -> Ratio:
    """The median of over[i] / under[i], and the order statistics that hold the true one: how many
    ratios lie below it is binomial, whatever their distribution. With too few rounds for the
    confidence nothing is excluded."""
    if len(over) != len(under) or not over:
        raise ValueError("as many numbers above as below, and at least one")
    ratios = sorted(a / b for a, b in zip(over, under, strict=True))
    count, middle = len(ratios), len(ratios) // 2
    value = ratios[middle] if count % 2 else (ratios[middle - 1] + ratios[middle]) / 2
    place = 0
    outside = 0.0
    while place < middle:
        outside += 2 * math.comb(count, place) / 2**count
        if outside > 1 - confidence:
            break
        place += 1
    if place == 0:
        return Ratio(value, 0.0, math.inf)
    return Ratio(value, ratios[place - 1], ratios[count - place])
