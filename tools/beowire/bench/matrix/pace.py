# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a matrix takes: beforehand by what runs cost on an idle machine, then by its
own pace."""

from collections.abc import Iterable, Mapping, Sequence

from beowire.progress import Progress

JOB_S = 1.3
"""What a job takes beside its cells; this and what follows measured on two cores."""
_CELL_SHARE = 2.2
"""What a cell takes in its job, to the time for which it is measured: search, checks."""
_BYTE_S = 30e-9
"""The same for each byte of its messages: the least number of them, at a GB/s or so."""


def job_s(cell_ms: int, measured: Mapping[str, Sequence[int]]) -> float:
    """What a job of these sizes, by figure, takes on an idle machine."""
    sizes = [size for row in measured.values() for size in row]
    return JOB_S + sum(_CELL_SHARE * cell_ms / 1e3 + _BYTE_S * size for size in sizes)


def told(seconds: float) -> str:
    """A duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


class Pace:
    """Tells each job when it begins, and how long all that is left will take by now."""

    def __init__(self, progress: Progress, planned_s: Iterable[float]) -> None:
        self._progress = progress
        self._planned_s = list(planned_s)
        self._done = 0

    def left_s(self, elapsed_s: float) -> float:
        """As slow as the planned time has passed until now, the rest will pass."""
        before, left = sum(self._planned_s[: self._done]), sum(self._planned_s[self._done :])
        return left * (elapsed_s / before if before else 1.0)

    def begin(self, text: str) -> None:
        left = told(self.left_s(self._progress.elapsed_s))
        self._progress.begin(f"{text} (about {left} left)")
        self._done += 1
