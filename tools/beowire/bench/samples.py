# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Numbers out of samples: percentiles, and ratios with the uncertainty that belongs to them.

Two transports are compared by runs that alternate (A B A B). The samples inside a run are not
independent of one another, the rounds are; so a ratio and its interval come from the ratios of
rounds. Resampling a handful of rounds would not do: of 2 it draws intervals that hold the true
ratio half of the time. (numpy is imported where it is used: it would cost every start of the
command a tenth of a second.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

PERCENTILES = (1, 50, 90, 99)
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """A quotient and the interval that holds it with 95 % confidence; from 0 to infinity where
    there were too few rounds for one."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if self.low <= 0 and math.isinf(self.high):
            return f"{self.value:.2f} (too few rounds for an interval)"
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
    """The geometric mean of over[i] / under[i], which come from the same round, one number from
    each run; and Student's interval of the logarithms' mean. That holds for ratios that scatter
    about evenly on a logarithmic scale, from two rounds on, though it is wide then. One round
    excludes nothing."""
    import numpy as np

    upper = np.asarray(over, dtype=float)
    lower = np.asarray(under, dtype=float)
    if upper.size != lower.size or upper.size == 0:
        raise ValueError("as many numbers above as below, and at least one")
    if (upper <= 0).any() or (lower <= 0).any():
        raise ValueError("a ratio needs numbers above zero")
    logs = np.log(upper) - np.log(lower)
    middle = float(logs.mean())
    if upper.size == 1:
        return Ratio(math.exp(middle), 0.0, math.inf)
    half = _student(upper.size - 1) * float(logs.std(ddof=1)) / math.sqrt(upper.size)
    with np.errstate(over="ignore"):
        low, value, high = (float(np.exp(each)) for each in (middle - half, middle, middle + half))
    return Ratio(value, low, high)


def _student(freedom: int) -> float:
    """What Student's t exceeds in size with a probability of 1 - CONFIDENCE. The probability that
    it does not is a finite sum in the angle whose tangent is t / sqrt(freedom) (Abramowitz and
    Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4), and grows with that."""
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _within(middle, freedom) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return math.sqrt(freedom) * math.tan(low)


def _within(angle: float, freedom: int) -> float:
    first = 2 + freedom % 2
    term = math.sin(angle) * (math.cos(angle) if freedom % 2 else 1)
    found = 0.0
    for number in range(first, freedom + 1, 2):
        found += term
        term *= (number - 1) / number * math.cos(angle) ** 2
    return (found + angle) * 2 / math.pi if freedom % 2 else found


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
