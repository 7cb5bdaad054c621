# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which point to measure next: where one more run narrows the optimum's interval most, and where
the forms that are still likely differ most.

The variance of 1 / N_opt^3 after another run at N follows from the fit alone, as a run's noise is a
known share of its time (an optimal design for one function of the coefficients).
"""

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from beowire.model.fit import CONFIDENCE, Fit, columns
from beowire.model.forms import Form

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]

GOOD = 0.1
"""An optimum known to within a tenth is good enough to buy nodes by."""
_MOST_RUNS = 100


@dataclass(frozen=True)
class Advice:
    """The next run, and what it would bring."""

    nodes: int
    """Where one more run narrows the optimum's interval most."""
    width: float | None
    """How far the upper end of the optimum's interval lies above it, as a share of it, with that
    run; None: it would still have no upper end."""
    runs: int | None
    """So many runs there bring that below GOOD; None: a hundred do not."""
    apart: int | None
    """Where the likely forms differ most; None: only one is likely."""
    apart_sigmas: float
    """By how many standard deviations of a run they differ there."""


def advise(fit: Fit, nodes: "Array", forms: list[Form], most: int) -> Advice:
    """`most` is the largest N that could be measured; `forms` those not refuted."""
    candidates = sorted({*range(1, min(most, 64) + 1), *_spread(most)})
    rated = [(_width(fit, nodes, each, 1), each) for each in candidates]
    _, best = min(rated)
    width = _off(fit, nodes, best, 1)
    runs = next(
        (
            number
            for number in range(1, _MOST_RUNS + 1)
            if (off := _off(fit, nodes, best, number)) is not None and off < GOOD
        ),
        None,
    )
    apart, sigmas = _apart(fit, candidates, forms)
    return Advice(best, width, runs, apart, sigmas)


def _spread(most: int) -> list[int]:
    """Up to 64 numbers in equal steps."""
    return [round(most * step / 64) or 1 for step in range(1, 65)]


def _gradient(fit: Fit) -> "Array":
    """Of 2 c2 / c0 by the coefficients; where c2 is not positive, taken at 0."""
    import numpy as np

    c0, _, c2 = (float(each) for each in fit.coefficients)
    return np.array([-2 * max(c2, 0.0) / c0**2, 0.0, 2 / c0])


def _width(fit: Fit, nodes: "Array", there: int, runs: int) -> float:
    """The standard error of 1 / N_opt^3 with so many more runs there."""
    import numpy as np

    at = np.concatenate([nodes, np.full(runs, float(there))])
    mean = at * fit.time(at)
    # An outlier can bend the law below 0 somewhere, where it tells no weight.
    mean = np.maximum(mean, 1e-3 * np.abs(mean).max())
    x = columns(at)
    scale = np.abs(x).max(axis=0)
    weighted = x / scale / mean[:, None]
    covariance = fit.noise**2 * np.linalg.inv(weighted.T @ weighted) / np.outer(scale, scale)
    gradient = _gradient(fit)
    return float(np.sqrt(gradient @ covariance @ gradient))


def _off(fit: Fit, nodes: "Array", there: int, runs: int) -> float | None:
    """How far the upper end of the optimum's interval, the farther one, lies above it as a share of
    it, if the estimate stayed."""
    from scipy import stats

    if fit.coefficients[2] <= 0:
        return None
    cube = float(2 * fit.coefficients[2] / fit.coefficients[0])
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, fit.freedom + runs))
    error = quantile * _width(fit, nodes, there, runs)
    if error >= cube:
        return None
    return float((1 - error / cube) ** (-1 / 3) - 1)


def _apart(fit: Fit, candidates: list[int], forms: list[Form]) -> tuple[int | None, float]:
    """Where any two forms differ most, in standard deviations of a run's noise."""
    import numpy as np

    if len(forms) < 2:
        return None, 0.0
    at = np.array(candidates, dtype=float)
    differ = np.zeros_like(at)
    for one, other in combinations(forms, 2):
        differ = np.maximum(differ, np.abs(np.log(one.time(at) / other.time(at))))
    place = int(differ.argmax())
    return candidates[place], float(differ[place]) / fit.noise
