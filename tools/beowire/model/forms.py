# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Other laws for the same data, compared by AICc: does communication grow as the thesis says?

For N T all are sums of functions of N with coefficients that are not negative, fitted to log T by
least squares (noise in proportion to the time), so that their likelihoods can be compared. The
universal scalability law of Gunther, N T = T1 (1 + s (N - 1) + k N (N - 1)), is a sum of 1, N and
N^2, with k = c2 / T1 and s = (c1 + c2) / T1: the form N^2 written otherwise, and told with it.
AICc is the information criterion corrected for few runs (Hurvich and Tsai, 1989).
"""

from dataclasses import asdict, dataclass
from math import exp, inf, log
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]

Name = Literal["thesis", "Amdahl", "N log N", "N^2 (USL)"]

NAMES: tuple[Name, ...] = ("thesis", "Amdahl", "N log N", "N^2 (USL)")
FORMULAS: dict[Name, str] = {
    "thesis": "c0 + c1 N + c2 N^3",
    "Amdahl": "c0 + c1 N",
    "N log N": "c0 + c1 N + c2 N log N",
    "N^2 (USL)": "c0 + c1 N + c2 N^2",
}
LIKELY = 4.0
"""A form whose AICc is less than this above the best one's is not refuted (Burnham and Anderson,
2002: beyond 4 to 7 there is considerably less support)."""


@dataclass(frozen=True)
class Form:
    """One law, fitted."""

    name: Name
    coefficients: tuple[float, ...]
    noise: float
    """What the form leaves unexplained, as a share of a time."""
    aicc: float | None
    """None: too few runs for it."""
    above: float | None = None
    """AICc above the best form's."""
    weight: float | None = None
    """The share of evidence for it among these forms."""

    def time(self, nodes: "Array") -> "Array":
        """T(N) by this form."""
        import numpy as np

        result: Array = _columns(self.name, nodes) @ np.array(self.coefficients) / nodes
        return result

    def as_json(self) -> dict[str, Any]:
        told = asdict(self) | {"formula": FORMULAS[self.name]}
        if self.name == "N^2 (USL)":
            told |= usl(self)
        return told


def usl(form: Form) -> dict[str, float]:
    """Contention s and coherency k of the universal scalability law, from the form N^2."""
    c0, c1, c2 = form.coefficients
    whole = c0 + c1 + c2
    return {"contention": (c1 + c2) / whole, "coherency": c2 / whole}


def _columns(name: Name, nodes: "Array") -> "Array":
    import numpy as np

    third = {
        "thesis": lambda: nodes**3,
        "N log N": lambda: nodes * np.log(nodes),
        "N^2 (USL)": lambda: nodes**2,
    }
    parts = [np.ones_like(nodes), nodes] + ([third[name]()] if name in third else [])
    return np.stack(parts, axis=1)


def compare(nodes: "Array", times: "Array") -> list[Form]:
    """All forms, the likeliest first."""
    forms = [_fitted(name, nodes, times) for name in NAMES]
    told = [form.aicc for form in forms if form.aicc is not None]
    if len(told) < len(forms):
        return sorted(forms, key=lambda form: form.noise)
    least = min(told)
    total = sum(exp((least - each) / 2) for each in told)
    forms = [
        Form(
            form.name,
            form.coefficients,
            form.noise,
            aicc,
            aicc - least,
            exp((least - aicc) / 2) / total,
        )
        for form, aicc in zip(forms, told, strict=True)
    ]
    return sorted(forms, key=lambda form: form.above or 0)


def _fitted(name: Name, nodes: "Array", times: "Array") -> Form:
    import numpy as np
    from scipy import optimize

    x = _columns(name, nodes)
    scale = x.max(axis=0)
    scale[scale == 0] = 1
    part, y = x / scale, nodes * times
    start = optimize.nnls(part / y[:, None], np.ones_like(y))[0]
    least = 1e-12 * float(y.max())

    def residuals(c: "Array") -> "Array":
        result: Array = np.log(np.maximum(part @ c, least) / y)
        return result

    found = optimize.least_squares(
        residuals, np.maximum(start, least), bounds=(0, np.inf), x_scale=float(y.mean())
    )
    # Exact data leave rounding only; it must not decide.
    square = max(float(np.mean(residuals(found.x) ** 2)), (64 * float(np.finfo(float).eps)) ** 2)
    free = len(found.x) + 1
    runs = len(nodes)
    aicc = None
    if runs > free + 1:
        aicc = runs * log(square) + 2 * free + 2 * free * (free + 1) / (runs - free - 1)
    coefficients = tuple(float(each) for each in found.x / scale)
    return Form(name, coefficients, square**0.5, aicc)


def likely(forms: list[Form]) -> list[Form]:
    """Those that the data do not refute; all of them where AICc cannot be told."""
    return [form for form in forms if (form.above if form.above is not None else -inf) < LIKELY]
