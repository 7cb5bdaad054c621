# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fits the law of speedup [A10] to measured times, with intervals that hold what they say.

N T = c0 + c1 N + c2 N^3 is linear in its coefficients. A run's noise is a constant share of its
time, so N T has a standard deviation in proportion to its mean: each run is weighted by 1 / (N T)^2
with N T from the fit itself, and the weights are iterated (weights from the measured times would
favour the runs that were fast by chance).

Everything of interest is a quotient of coefficients: a = c1 / (c0 + c1), n = c2 / (c0 + c1), and
1 / N_opt^3 = 2 c2 / c0. Fieller's theorem (1954) gives such a quotient's interval exactly where the
delta method fails, that is where c2 hardly differs from 0: the interval of 1 / N_opt^3 then
reaches down to 0 and that of N_opt has no upper end. The best speedup is no quotient; its interval
is what the joint region of the quotients lets it be (a profile likelihood with the same quantile).
"""

from dataclasses import dataclass
from math import cbrt, inf, nan, pi, sqrt
from typing import TYPE_CHECKING, Any

from beowire.errors import BeowireError

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]

CONFIDENCE = 0.95
COEFFICIENTS = 3
_ROUNDS = 100
_CONVERGED = 1e-10
_DIRECTIONS = 4000
"""On the edge of the joint region; the best speedup's interval is exact to about 1e-6 of itself."""


@dataclass(frozen=True)
class Interval:
    """What holds the truth with 95 % confidence; an end may be infinite."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def within(self, least: float, most: float) -> "Interval":
        """The part that is physically possible; the whole if none is."""
        if self.high < least or self.low > most:
            return self
        return Interval(max(self.low, least), min(self.high, most))

    def as_json(self) -> dict[str, float | None]:
        """An end that is not known is null."""
        return {
            "low": self.low if abs(self.low) < inf else None,
            "high": self.high if abs(self.high) < inf else None,
        }


@dataclass(frozen=True)
class Fit:
    """Coefficients and their precision; times in the unit of the data."""

    coefficients: "Array"
    """c0, c1, c2 of N T."""
    covariance: "Array"
    noise: float
    """Standard deviation of a run as a share of its time."""
    quantile: float
    """Of Student's distribution, for two-sided intervals."""
    freedom: int
    """Runs beyond the three that the coefficients take."""

    @property
    def clear(self) -> bool:
        """Communication is clearly there: c2 > 0 beyond chance. Else there is no point for n, N_opt
        and the best speedup, only bounds."""
        return float(self.coefficients[0]) > 0 and self.inverse_cube.low > 0

    @property
    def alone(self) -> float:
        """The time of the computing alone on one node, c0 + c1."""
        return float(self.coefficients[0] + self.coefficients[1])

    @property
    def a(self) -> float:
        return float(self.coefficients[1]) / self.alone

    @property
    def n(self) -> float:
        return float(self.coefficients[2]) / self.alone

    @property
    def optimum(self) -> float:
        """N_opt; infinite where c2 is not above 0. Show it only if `clear`."""
        c0, _, c2 = (float(each) for each in self.coefficients)
        return cbrt(c0 / (2 * c2)) if c2 > 0 else inf

    @property
    def best(self) -> float:
        """S(N_opt). Show it only if `clear`."""
        c0, c1, _ = (float(each) for each in self.coefficients)
        return self.alone / (c1 + 1.5 * c0 / self.optimum)

    @property
    def a_interval(self) -> Interval:
        """Within what is possible, if the estimate is."""
        whole = self.quotient((0, 1, 0), (1, 1, 0))
        return whole.within(0, 1) if 0 <= self.a <= 1 else whole

    @property
    def n_interval(self) -> Interval:
        return self.quotient((0, 0, 1), (1, 1, 0)).within(0, inf)

    @property
    def inverse_cube(self) -> Interval:
        """Of 1 / N_opt^3."""
        return self.quotient((0, 0, 2), (1, 0, 0))

    @property
    def optimum_interval(self) -> Interval:
        """Without an upper end where c2 is not clearly positive."""
        cube = self.inverse_cube
        low = cbrt(1 / cube.high) if cube.high > 0 else inf
        return Interval(low, cbrt(1 / cube.low) if cube.low > 0 else inf)

    def time(self, nodes: "Array") -> "Array":
        """T(N), as fitted."""
        c0, c1, c2 = self.coefficients
        result: Array = c0 / nodes + c1 + c2 * nodes**2
        return result

    def speedup(self, nodes: float) -> Interval:
        """The interval of S(N)."""
        return self.quotient((nodes, nodes, 0), (1, nodes, nodes**3))

    def quotient(
        self, over: tuple[float, float, float], under: tuple[float, float, float]
    ) -> Interval:
        """Of two sums of coefficients, by Fieller's theorem: all q for which over - q under does
        not differ from 0 beyond chance. Infinite both ways where the lower sum may be 0."""
        import numpy as np

        p, q = np.array(over, dtype=float), np.array(under, dtype=float)
        above, below = float(p @ self.coefficients), float(q @ self.coefficients)
        square = self.quantile**2
        second = below**2 - square * float(q @ self.covariance @ q)
        first = above * below - square * float(p @ self.covariance @ q)
        rest = above**2 - square * float(p @ self.covariance @ p)
        if second <= 0:
            return Interval(-inf, inf)
        half = sqrt(max(first**2 - second * rest, 0.0))
        return Interval((first - half) / second, (first + half) / second)

    @property
    def best_interval(self) -> Interval:
        """Of S(N_opt): its extremes over the joint region of c1 / c0 and c2 / c0, which is an
        ellipse; they lie on its edge, as S falls with both. Where the edge reaches values that
        would give no finite speedup, there is no upper end."""
        import numpy as np

        edge = self._edge()
        if edge is None:
            return Interval(1, inf)
        serial, cube = edge
        under = serial + 1.5 * np.cbrt(2 * cube)
        possible = (under > 0) & (serial > -1)
        if not possible.any():
            return Interval(1, inf)
        speedups = (1 + serial[possible]) / under[possible]
        high = float(speedups.max()) if possible.all() else inf
        return Interval(float(speedups.min()), high)

    def _edge(self) -> "tuple[Array, Array] | None":
        """Points (c1 / c0, c2 / c0) around the joint region: all directions d of coefficients with
        some multiple within `quantile` standard errors. None where the region is not bounded."""
        import numpy as np

        scale = np.sqrt(np.diag(self.covariance))
        c = self.coefficients / scale
        m = np.linalg.inv(self.covariance / np.outer(scale, scale))
        mc = m @ c
        form = np.outer(mc, mc) - (float(c @ mc) - self.quantile**2) * m
        inner = -form[1:, 1:]
        if np.linalg.eigvalsh(inner)[0] <= 0:
            return None
        centre = np.linalg.solve(inner, form[1:, 0])
        radius = float(form[0, 0] + form[1:, 0] @ centre)
        if radius <= 0:
            return None
        angle = np.linspace(0, 2 * pi, _DIRECTIONS, endpoint=False)
        circle = np.stack([np.cos(angle), np.sin(angle)])
        root = np.linalg.cholesky(inner)
        points = centre[:, None] + sqrt(radius) * np.linalg.solve(root.T, circle)
        return points[0] * scale[1] / scale[0], points[1] * scale[2] / scale[0]

    def as_json(self) -> dict[str, Any]:
        c0, c1, c2 = (float(each) for each in self.coefficients)
        return {
            "c0": c0,
            "c1": c1,
            "c2": c2,
            "covariance": self.covariance.tolist(),
            "noise": self.noise,
            "degrees_of_freedom": self.freedom,
            "confidence": CONFIDENCE,
            "communication_is_clear": self.clear,
            "a": {"value": self.a, **self.a_interval.as_json()},
            "n": {"value": self.n if self.clear else None, **self.n_interval.as_json()},
            "optimum_nodes": {
                "value": self.optimum if self.clear else None,
                **self.optimum_interval.as_json(),
            },
            "best_speedup": {
                "value": self.best if self.clear else None,
                **self.best_interval.as_json(),
            },
        }


def columns(nodes: "Array") -> "Array":
    """1, N, N^3 for each run."""
    import numpy as np

    return np.stack([np.ones_like(nodes), nodes, nodes**3], axis=1)


def fit(nodes: "Array", times: "Array", noise: float = 0.0) -> Fit:
    """From runs of at least three numbers of nodes. `noise` as a share of a time, if it is known
    beforehand; else it is told by the residuals, and there must be at least four runs."""
    import numpy as np
    from scipy import stats

    freedom = len(nodes) - COEFFICIENTS
    _check(nodes, freedom, noise)
    x, y = columns(nodes), nodes * times
    scale = np.abs(x).max(axis=0)
    mean, c = y, np.full(COEFFICIENTS, nan)
    for _ in range(_ROUNDS):
        before = c
        weighted = x / scale / mean[:, None]
        c = np.linalg.lstsq(weighted, y / mean, rcond=None)[0]
        mean = np.maximum(x / scale @ c, y / 10)
        if np.allclose(c, before, rtol=_CONVERGED, atol=0):
            break
    found = noise or float(np.sqrt(np.sum((y / mean - 1) ** 2) / freedom))
    # Exact data have no noise; what is left of it is rounding.
    found = max(found, 8 * float(np.finfo(float).eps))
    weighted = x / scale / mean[:, None]
    covariance = found**2 * np.linalg.inv(weighted.T @ weighted) / np.outer(scale, scale)
    if c[0] <= 0 or c[0] / scale[0] + c[1] / scale[1] <= 0:
        raise BeowireError(
            "The times do not fall with N as shared computing does (c0 is not above 0): there is "
            "no speedup to model.",
            "Do all nodes take part in the runs? Is N the number of nodes, and the time that of "
            "one run?",
        )
    tail = (1 + CONFIDENCE) / 2
    quantile = stats.norm.ppf(tail) if noise else stats.t.ppf(tail, freedom)
    return Fit(c / scale, covariance, found, float(quantile), freedom)


def misfit(nodes: "Array", times: "Array", found: Fit) -> float | None:
    """How probable it is by chance that repeated runs agree so much better with one another than
    their means do with the model (F test for lack of fit); None: too few repeats to tell."""
    import numpy as np
    from scipy import stats

    residuals = times / found.time(nodes) - 1
    levels, which = np.unique(nodes, return_inverse=True)
    above, below = len(levels) - COEFFICIENTS, len(nodes) - len(levels)
    if above < 1 or below < 1:
        return None
    means = np.bincount(which, residuals) / np.bincount(which)
    pure = float(np.sum((residuals - means[which]) ** 2))
    lack = float(np.sum(residuals**2)) - pure
    if pure <= 0:
        return None
    return float(stats.f.sf((lack / above) / (pure / below), above, below))


def _check(nodes: "Array", freedom: int, noise: float) -> None:
    different = sorted({float(each) for each in nodes})
    told = ", ".join(f"{each:g}" for each in different) or "none"
    if len(different) < COEFFICIENTS:
        raise BeowireError(
            f"The model has three unknowns, but only {len(different)} different N are measured "
            f"({told}).",
            "Measure at least three, the largest beyond the best speedup if you can.",
        )
    if freedom < 1 and not noise:
        raise BeowireError(
            f"Three runs (N = {told}) and three unknowns: nothing is left that tells the noise.",
            "Measure another N, repeat the runs, or give the noise by --noise (0.02 is 2 %).",
        )
