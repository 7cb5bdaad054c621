# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a fitted program would do on another network or with other processors.

By LogGP communication has three parts: latency, overhead (the processors' work for a message) and
bytes; each follows its own factor, computing follows the processors'.

Where the traffic of the busiest rank was counted, communication is that: each run's time is changed
by what its messages and bytes would take less or more, and the changed times are fitted. This finds
communication wherever it is, also in c0 and c1.

Where it was not, communication is c2 of N T = c0 + c1 N + c2 N^3 alone, and computing c0 and c1. As
all changes are then factors of the coefficients, the changed program is a fit like the first, with
its intervals. n = c2 / (c0 + c1), so faster processors raise it. The parts follow from the size of
a typical message; where that is not known, what holds for sure are the extremes: all is one part.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from beowire.errors import BeowireError
from beowire.model.fit import Fit, fit
from beowire.model.loggp import PARTS, LogGP, Part, parse_rate, parse_time
from beowire.model.runs import Run, Runs

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Array = NDArray[float64]


@dataclass(frozen=True)
class Change:
    """Factors; 1 is no change."""

    latency: float = 1.0
    """Of the network's latency; below 1 is faster."""
    rate: float = 1.0
    """Of the network's rate; above 1 is faster."""
    cpu: float = 1.0
    """Of the processors' speed; above 1 is faster."""

    def of_part(self, part: Part, network: LogGP | None = None) -> float:
        """What becomes of the time of this part of a message. A faster network brings no more than
        the processors manage, if the network says what that is."""
        if part == "bandwidth" and network is not None:
            after = max(network.byte / self.rate, network.byte_overhead / self.cpu)
            return after / network.per_byte
        return {"latency": self.latency, "overhead": 1 / self.cpu, "bandwidth": 1 / self.rate}[part]

    def of_communication(self, shares: dict[Part, float], network: LogGP | None = None) -> float:
        """What becomes of c2, by how a message's time divides."""
        return sum(share * self.of_part(part, network) for part, share in shares.items())

    def __str__(self) -> str:
        words = (("latency", self.latency), ("rate", self.rate), ("processors", self.cpu))
        return ", ".join(f"{name} x{value:g}" for name, value in words if value != 1)


@dataclass(frozen=True)
class Prediction:
    """The program, changed."""

    name: str
    """How communication was found and divided."""
    communication: float | None
    """Factor of c2; None: by the traffic of each run."""
    fit: Fit | None
    """None: no law can be fitted to its times, which a remark tells."""
    remarks: tuple[str, ...] = ()
    medians: dict[int, float] = field(default_factory=dict)
    """By N, of the times of the runs; empty where only the law was changed."""

    def time(self, nodes: int) -> float | None:
        """The time at N: of its runs if there are any, else by the law."""
        import numpy as np

        if nodes in self.medians or self.fit is None:
            return self.medians.get(nodes)
        return float(self.fit.time(np.array([float(nodes)]))[0])

    def as_json(self) -> dict[str, Any]:
        return {
            "split": self.name,
            "communication_factor": self.communication,
            "fit": self.fit.as_json() if self.fit else None,
            "median_times": self.medians,
            "remarks": list(self.remarks),
        }


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
    if now == 0:
        raise BeowireError(
            f"{option} {text}: it is 0 now, no factor of that.",
            "By the ping-pong all of it is overhead; give the network by --network.",
        )
    if now is None:
        raise BeowireError(
            f"{option} {text} needs to know what it is now.",
            "Give the network (--pingpong or --network), or a factor: x2.",
        )
    return wanted / now


def changed(
    now: Fit, change: Change, shares: dict[Part, float], network: LogGP | None = None
) -> Fit:
    """The fit of the changed program."""
    import numpy as np

    computing = 1 / change.cpu
    factors = np.array([computing, computing, change.of_communication(shares, network)])
    return replace(
        now,
        coefficients=now.coefficients * factors,
        covariance=now.covariance * np.outer(factors, factors),
    )


def counted(runs: list[Run]) -> bool:
    """The traffic of all runs is known."""
    return all(run.messages is not None and run.bytes is not None for run in runs)


def changed_time(run: Run, change: Change, network: LogGP) -> tuple[float, bool]:
    """The time of a run whose traffic was counted, changed; and whether its messages, one after
    another, would take no longer than it took. Times in seconds."""
    messages, size = run.messages or 0.0, run.bytes or 0.0
    parts: dict[Part, float] = {
        "latency": messages * network.latency,
        "overhead": messages * 2 * network.overhead,
        "bandwidth": size * network.per_byte,
    }
    whole = sum(parts.values())
    share = min(1.0, run.time / whole) if whole else 1.0
    after = sum(share * part * change.of_part(name, network) for name, part in parts.items())
    return (run.time - share * whole) / change.cpu + after, whole <= run.time


def predict_counted(runs: Runs, change: Change, network: LogGP, noise: float) -> Prediction:
    """By the traffic of each run."""
    import numpy as np

    found = [changed_time(run, change, network) for run in runs.runs]
    times = np.array([time for time, _ in found])
    remarks = []
    if overlapped := sorted(
        {run.nodes for run, (_, fits) in zip(runs.runs, found, strict=True) if not fits}
    ):
        remarks.append(
            f"At N = {', '.join(map(str, overlapped))} the messages one after another would take "
            "longer than the run: some are under way at once, and the gain is overestimated."
        )
    law, remark = _fitted(runs.nodes(), times, noise)
    medians = _medians(runs.nodes(), times)
    return Prediction("by counted traffic", None, law, (*remarks, *remark), medians)


def _fitted(nodes: "Array", times: "Array", noise: float) -> tuple[Fit | None, tuple[str, ...]]:
    """The law, or why there is none: a program that only gets slower has times all the same."""
    try:
        return fit(nodes, times, noise), ()
    except BeowireError as error:
        return None, (error.what,)


def _medians(nodes: "Array", times: "Array") -> dict[int, float]:
    import numpy as np

    return {int(each): float(np.median(times[nodes == each])) for each in np.unique(nodes)}


def unchanged(runs: Runs, noise: float) -> Prediction:
    """The program as it is."""
    law, remarks = _fitted(runs.nodes(), runs.times(), noise)
    return Prediction("now", 1.0, law, remarks, _medians(runs.nodes(), runs.times()))


def errors(prediction: Prediction, measured: Runs) -> dict[int, float]:
    """By N: how far the prediction is above the median of what was then measured, as a share."""
    medians = _medians(measured.nodes(), measured.times())
    told = {nodes: prediction.time(nodes) for nodes in medians}
    return {nodes: time / medians[nodes] - 1 for nodes, time in told.items() if time is not None}


def predict(
    now: Fit, change: Change, network: LogGP | None, message_bytes: int
) -> list[Prediction]:
    """One prediction where the network and the size of a message are known (above 0); else the
    least and the greatest communication that any division gives."""
    if network is not None and message_bytes:
        splits = {f"messages of {message_bytes:,} bytes": network.shares(message_bytes)}
    else:
        extremes = sorted(PARTS, key=change.of_part)
        splits = {f"all is {part}": {part: 1.0} for part in (extremes[0], extremes[-1])}
    return [
        Prediction(
            name,
            change.of_communication(shares, network),
            changed(now, change, shares, network),
        )
        for name, shares in splits.items()
    ]
