# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thesis's law of speedup with communication, as formulas [A10].

T(N) / T(1) = a + (1 - a) / N + n N^2, with `a` the serial share, N nodes and `n` the communication
parameter: faster processors raise it, a faster network lowers it. T(1) here is the time of the
computing alone. N may be any real number of at least 1, also an array.
"""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Real = TypeVar("Real", float, NDArray[float64])
else:
    Real = TypeVar("Real")


def speedup(a: float, n: float, nodes: "Real") -> "Real":
    """S(N) = N / ((1 - a) + a N + n N^3); n = 0 is Amdahl's law."""
    return nodes / ((1 - a) + a * nodes + n * nodes**3)


def optimum(a: float, n: float) -> float:
    """N_opt = ((1 - a) / (2 n))^(1/3), where S is largest; n > 0."""
    return float(((1 - a) / (2 * n)) ** (1 / 3))


def best_speedup(a: float, n: float) -> float:
    """S(N_opt) = 1 / (a + 3 (1 - a) / (2 N_opt)); n > 0."""
    return 1 / (a + 1.5 * (1 - a) / optimum(a, n))


def parameter(a: float, optimum_nodes: float) -> float:
    """The n whose optimum lies at that many nodes: (1 - a) / (2 N_opt^3)."""
    return (1 - a) / (2 * optimum_nodes**3)
