# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a fitted program would do on another network or with other processors.

Of N T = c0 + c1 N + c2 N^3 the computing, c0 and c1, is divided by the processors' factor. The
communication, c2, has three parts by LogGP: latency, overhead (the processors' work for a message)
and bytes; each follows its own factor. As all changes are factors of the coefficients, the changed
program is a fit like the first, with intervals. n = c2 / (c0 + c1), so faster processors raise it.

The parts follow from the size of a typical message. Where that is not known, what holds for sure
are the extremes: all communication is one part.
"""

from dataclasses import dataclass, replace
from typing import Any

from beowire.errors import BeowireError
from beowire.model_fit import Fit
from beowire.model_loggp import PARTS, LogGP, Part, parse_rate, parse_time


@dataclass(frozen=True)
class Change:
    """Factors; 1 is no change."""

    latency: float = 1.0
    """Of the network's latency; below 1 is faster."""
    rate: float = 1.0
    """Of the network's rate; above 1 is faster."""
    cpu: float = 1.0
    """Of the processors' speed; above 1 is faster."""

    def of_part(self, part: Part) -> float:
        """What becomes of the time of this part of a message."""
        return {"latency": self.latency, "overhead": 1 / self.cpu, "bandwidth": 1 / self.rate}[part]

    def of_communication(self, shares: dict[Part, float]) -> float:
        """What becomes of c2, by how a message's time divides."""
        return sum(share * self.of_part(part) for part, share in shares.items())

    def __str__(self) -> str:
        words = (("latency", self.latency), ("rate", self.rate), ("processors", self.cpu))
        return ", ".join(f"{name} x{value:g}" for name, value in words if value != 1)


@dataclass(frozen=True)
class Prediction:
    """The program, changed."""

    name: str
    """How communication was divided."""
    communication: float
    """Factor of c2."""
    fit: Fit

    def as_json(self) -> dict[str, Any]:
        told = self.fit.as_json()
        return {"split": self.name, "communication_factor": self.communication, "fit": told}


def parse(latency: str, rate: str, cpu: str, network: LogGP | None) -> Change:
    """Factors (x0.5), or a time and a rate (20us, 10G), which need to know the network."""
    return Change(
        latency=_factor("--latency", latency, network.latency if network else None, parse_time),
        rate=_factor("--rate", rate, network.rate_bits if network else None, parse_rate),
        cpu=_factor("--cpu", cpu, None, None),
    )


def _factor(option: str, text: str, now: float | None, read: Any) -> float:
    if not text:
        return 1.0
    if text.startswith("x") or read is None:
        try:
            value = float(text.removeprefix("x"))
        except ValueError:
            value = 0.0
        if not 0 < value < 1e6:
            raise BeowireError(f"{option} {text}?", "Write a factor such as x0.5 or x2.")
        return value
    wanted: float = read(option, text)
    if not now:
        raise BeowireError(
            f"{option} {text} needs to know what it is now.",
            "Give the network (--pingpong or --network), or a factor: x2.",
        )
    return wanted / now


def changed(fit: Fit, change: Change, shares: dict[Part, float]) -> Fit:
    """The fit of the changed program."""
    import numpy as np

    computing = 1 / change.cpu
    factors = np.array([computing, computing, change.of_communication(shares)])
    return replace(
        fit,
        coefficients=fit.coefficients * factors,
        covariance=fit.covariance * np.outer(factors, factors),
    )


def predict(
    fit: Fit, change: Change, network: LogGP | None, message_bytes: int
) -> list[Prediction]:
    """One prediction where the network and the size of a message are known (above 0); else the
    least and the greatest communication that any division gives."""
    if network is not None and message_bytes:
        splits = {f"messages of {message_bytes:,} bytes": network.shares(message_bytes)}
    else:
        extremes = sorted(PARTS, key=change.of_part)
        splits = {f"all is {part}": {part: 1.0} for part in (extremes[0], extremes[-1])}
    return [
        Prediction(name, change.of_communication(shares), changed(fit, change, shares))
        for name, shares in splits.items()
    ]
