# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Estimates with the uncertainty that belongs to them, through sums, quotients and minima.

A quantity is an array of values that it could have: medians of rounds drawn with replacement, the
same rounds for all quantities of a measurement. Arithmetic on arrays keeps what they have in
common; percentiles of the result are its interval (Efron and Tibshirani, 1993, the bootstrap).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from beowire.bench.samples import CONFIDENCE

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Draws = NDArray[float64]

COUNT = 4000
_SEED = 1


@dataclass(frozen=True)
class Estimate:
    """A value and the interval that holds it with 95 % confidence."""

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float]:
        return asdict(self)

    def scaled(self, factor: float) -> "Estimate":
        return Estimate(self.value * factor, self.low * factor, self.high * factor)


def of_rounds(rounds: Sequence[float]) -> "Draws":
    """The median of rounds; the first value is that of all rounds as they are."""
    import numpy as np

    values = np.asarray(rounds, dtype=float)
    generator = np.random.default_rng(_SEED)
    chosen = generator.integers(0, values.size, size=(COUNT, values.size))
    chosen[0] = np.arange(values.size)
    result: Draws = np.median(values[chosen], axis=1)
    return result


def between(low: float, high: float, salt: int) -> "Draws":
    """What is only known to lie between two values; the first is their middle. Quantities with
    another salt are independent of this one."""
    import numpy as np

    result: Draws = np.random.default_rng((_SEED, salt)).uniform(low, high, COUNT)
    result[0] = (low + high) / 2
    return result


def estimate(draws: "Draws") -> Estimate:
    """The value and its interval."""
    import numpy as np

    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = (float(each) for each in np.percentile(draws, (tail, 100 - tail)))
    value = float(draws[0])
    return Estimate(value, min(low, value), max(high, value))
