# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two files of results beside each other: the ratio of the second's numbers to the first's, with
the interval that the files carry, and a verdict."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from beowire.bench.compare_rows import Results, Row
from beowire.bench.samples import CONFIDENCE, Ratio
from beowire.errors import BeowireError

Verdict = Literal["better", "worse", "even", "unknown"]


@dataclass(frozen=True)
class Compared:
    """One number of both files."""

    first: Row
    second: Row
    ratio: Ratio | None
    """The second's to the first's, from 0 to infinity where nothing tells how sure it is; None: one
    of them is zero."""

    @property
    def verdict(self) -> Verdict:
        """The second's, if the whole interval is on one side of 1."""
        if self.ratio is None or not _is_bounded(self.ratio):
            return "unknown"
        if self.ratio.low <= 1 <= self.ratio.high:
            return "even"
        return "better" if (self.ratio.high < 1) == self.first.lower_is_better else "worse"

    def as_json(self) -> dict[str, Any]:
        bounded = self.ratio is not None and _is_bounded(self.ratio)
        return {
            "name": self.first.name,
            "unit": self.first.unit,
            "lower_is_better": self.first.lower_is_better,
            "a": middle(self.first),
            "b": middle(self.second),
            "ratio": self.ratio.value if self.ratio else None,
            "low": self.ratio.low if self.ratio and bounded else None,
            "high": self.ratio.high if self.ratio and bounded else None,
            "verdict": self.verdict,
        }


@dataclass(frozen=True)
class Comparison:
    """All numbers that both files have, and what they do not share."""

    first: Results
    second: Results
    rows: list[Compared]
    only_first: list[str]
    only_second: list[str]
    settings: dict[str, tuple[Any, Any]]
    """What differs in how they came about."""

    def as_json(self) -> dict[str, Any]:
        return {
            "writer": self.first.writer,
            "a": str(self.first.path),
            "b": str(self.second.path),
            "rows": [each.as_json() for each in self.rows],
            "only_a": self.only_first,
            "only_b": self.only_second,
            "settings": {name: list(values) for name, values in self.settings.items()},
        }


def compare(first: Results, second: Results) -> Comparison:
    """Raises BeowireError unless both are of one command and share a number."""
    if first.writer != second.writer:
        raise BeowireError(
            f"{first.path} is of `{first.writer}`, {second.path} of `{second.writer}`.",
            "Compare two files of the same command.",
            2,
        )
    shared = [name for name, row in first.rows.items() if _is_alike(row, second.rows.get(name))]
    if not shared:
        raise BeowireError(
            f"{first.path} and {second.path} have no number in common.",
            "Compare files of the same sizes and figures.",
            2,
        )
    settings = {
        name: (first.setting.get(name), second.setting.get(name))
        for name in sorted({*first.setting, *second.setting})
        if first.setting.get(name) != second.setting.get(name)
    }
    return Comparison(
        first,
        second,
        [Compared(first.rows[each], second.rows[each], _over(first.rows[each], second.rows[each]))
         for each in shared],
        [name for name in first.rows if name not in shared],
        [name for name in second.rows if name not in shared],
        settings,
    )  # fmt: skip


def middle(row: Row) -> float:
    """The number itself: of rounds their geometric mean."""
    if row.value is not None:
        return float(row.value)
    if min(row.rounds) <= 0:
        return 0.0
    return math.exp(math.fsum(map(math.log, row.rounds)) / len(row.rounds))


def _is_alike(row: Row, other: Row | None) -> bool:
    return other is not None and (row.unit, row.lower_is_better) == (
        other.unit,
        other.lower_is_better,
    )


def _is_bounded(found: Ratio) -> bool:
    return found.low > 0 or math.isfinite(found.high)


def _over(first: Row, second: Row) -> Ratio | None:
    below, above = middle(first), middle(second)
    if below <= 0 or above <= 0:
        return None
    value = above / below
    if first.rounds and second.rounds:
        half = _welch(first.rounds, second.rounds)
    else:
        half = _combined(first, second)
    if half is None:
        return Ratio(value, 0.0, math.inf)
    return Ratio(value, value * math.exp(-half), value * math.exp(half))


def _welch(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Half of the interval of the difference of the logarithms' means: the rounds of two files are
    not pairs, and need not scatter alike (Welch, 1947). None: a file has one round only."""
    from scipy import special

    if len(first) < 2 or len(second) < 2:
        return None
    parts = [_variance(each) / len(each) for each in (first, second)]
    whole = sum(parts)
    if whole == 0:
        return 0.0
    counts = (len(first) - 1, len(second) - 1)
    freedom = whole**2 / sum(each**2 / n for each, n in zip(parts, counts, strict=True))
    return float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * math.sqrt(whole)


def _variance(values: Sequence[float]) -> float:
    logs = [math.log(each) for each in values]
    mean = math.fsum(logs) / len(logs)
    return math.fsum((each - mean) ** 2 for each in logs) / (len(logs) - 1)


def _combined(first: Row, second: Row) -> float | None:
    """The same out of the intervals that both numbers have, as those of independent ones."""
    halves = []
    for each in (first, second):
        if each.low is None or each.high is None or each.low <= 0:
            return None
        halves.append(math.log(each.high / each.low) / 2)
    return math.hypot(*halves)
