# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comes of the exchange benchmark's runs: rates, ratios, and the rates beside cache sizes.

A rate is the payload that moved, in whichever direction, divided by rank 0's time, in MB/s (10^6
bytes a second). What is compared took turns: settings by rounds, types within a run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from beowire.bench import samples
from beowire.bench.caches import Cache
from beowire.run.launch import Transport

NAMES: dict[Transport, str] = {"beowire": "Beowire", "tcp": "TCP", "memory": "MPI's memory"}

Reports = Sequence[dict[str, Any]]
"""What the program printed, round by round."""


@dataclass(frozen=True)
class Setting:
    """What carries the messages, and up to which size it does so eagerly (0: its own choice)."""

    transport: Transport
    eager_bytes: int = 0

    @property
    def label(self) -> str:
        name = NAMES[self.transport]
        return f"{name}, eager {self.eager_bytes:,} B" if self.eager_bytes else name


@dataclass(frozen=True)
class Figure:
    """The rate of one setting, kind of calls, type and size."""

    setting: str
    calls: str
    type: str
    size_bytes: int
    """As asked for: a type of several bytes may carry a few less."""
    payload_bytes: int
    span_bytes: int
    """What a message takes in memory, gaps included."""
    mb_per_s: dict[str, float]
    """Percentiles over all rounds, and the extremes."""
    rounds_mb_per_s: list[float]
    """The median of each round."""


@dataclass(frozen=True)
class Comparison:
    """The rates of two settings."""

    calls: str
    type: str
    size_bytes: int
    over: str
    under: str
    ratio: samples.Ratio


@dataclass(frozen=True)
class TypeRatio:
    """A type's rate to that of bytes [D2], over all sizes (geometric mean), and where it is
    lowest."""

    setting: str
    calls: str
    type: str
    ratio: samples.Ratio
    lowest: float
    lowest_bytes: int


@dataclass(frozen=True)
class Edge:
    """The rates on both sides of a cache's size; a side without any size measured is None."""

    cache: str
    cache_bytes: int
    buffers: int
    """How many message buffers lie in this cache."""
    setting: str
    calls: str
    type: str
    fits_bytes: int | None
    fits_mb_per_s: float | None
    exceeds_bytes: int | None
    exceeds_mb_per_s: float | None


def rates(setting: Setting, reports: Reports) -> list[Figure]:
    """The figures of one setting out of the reports of its rounds."""
    figures = []
    for position, first in enumerate(reports[0]["results"]):
        rounds = [_mb_per_s(each["results"][position]) for each in reports]
        figures.append(
            Figure(
                setting=setting.label,
                calls=first["calls"],
                type=first["type"],
                size_bytes=int(first["size_bytes"]),
                payload_bytes=int(first["payload_bytes"]),
                span_bytes=int(first["span_bytes"]),
                mb_per_s=samples.percentiles([each for run in rounds for each in run]),
                rounds_mb_per_s=[samples.percentiles(run)["p50"] for run in rounds],
            )
        )
    return figures


def _mb_per_s(result: dict[str, Any]) -> list[float]:
    return [float(result["turn_bytes"]) * 1e3 / float(each) for each in result["samples_ns"]]


def comparisons(figures: Sequence[Figure], over: Setting, under: Setting) -> list[Comparison]:
    """Rates of `over` divided by those of `under`, alike in all else."""
    lower = {_alike(each): each for each in figures if each.setting == under.label}
    return [
        Comparison(
            each.calls,
            each.type,
            each.size_bytes,
            over.label,
            under.label,
            samples.ratio(each.rounds_mb_per_s, lower[_alike(each)].rounds_mb_per_s),
        )
        for each in figures
        if each.setting == over.label
    ]


def _alike(figure: Figure) -> tuple[str, str, int]:
    """What figures of different settings have in common."""
    return figure.calls, figure.type, figure.size_bytes


def type_ratios(figures: Sequence[Figure]) -> list[TypeRatio]:
    """Of each setting, kind of calls and type but bytes; none where bytes were not measured."""
    groups: dict[tuple[str, str], dict[str, list[Figure]]] = {}
    for each in figures:
        types = groups.setdefault((each.setting, each.calls), {})
        types.setdefault(each.type, []).append(each)
    return [
        _type_ratio(rows, types["byte"])
        for types in groups.values()
        if "byte" in types
        for name, rows in types.items()
        if name != "byte"
    ]


def _type_ratio(rows: Sequence[Figure], byte_rows: Sequence[Figure]) -> TypeRatio:
    singles = [
        (row.mb_per_s["p50"] / byte.mb_per_s["p50"], row.size_bytes)
        for row, byte in zip(rows, byte_rows, strict=True)
    ]
    lowest, lowest_bytes = min(singles)
    first = rows[0]
    ratio = samples.ratio(_round_means(rows), _round_means(byte_rows))
    return TypeRatio(first.setting, first.calls, first.type, ratio, lowest, lowest_bytes)


def _round_means(rows: Sequence[Figure]) -> list[float]:
    """Of each round the geometric mean over the sizes."""
    import numpy as np

    logs = np.log([row.rounds_mb_per_s for row in rows])
    return [float(each) for each in np.exp(logs.mean(axis=0))]


def buffers_in(cache: Cache, cpus: Sequence[int]) -> int:
    """How many message buffers lie in this cache: each rank of a pair has one to send from and one
    to receive into, and `cpus` are the processors of the ranks."""
    return 2 * sum(cpu in cache.cpus for cpu in cpus)


def edges(figures: Sequence[Figure], caches: Iterable[Cache], cpus: Sequence[int]) -> list[Edge]:
    """For each cache the largest message whose buffers fit and the smallest whose do not."""
    rows: dict[tuple[str, str, str], list[Figure]] = {}
    for each in sorted(figures, key=lambda figure: figure.span_bytes):
        rows.setdefault((each.setting, each.calls, each.type), []).append(each)
    result = []
    for cache in caches:
        buffers = buffers_in(cache, cpus)
        for (setting, calls, kind), row in rows.items():
            fit = [each for each in row if buffers * each.span_bytes <= cache.size_bytes]
            exceed = row[len(fit) :]
            result.append(
                Edge(
                    cache.name,
                    cache.size_bytes,
                    buffers,
                    setting,
                    calls,
                    kind,
                    fit[-1].size_bytes if fit else None,
                    fit[-1].mb_per_s["p50"] if fit else None,
                    exceed[0].size_bytes if exceed else None,
                    exceed[0].mb_per_s["p50"] if exceed else None,
                )
            )
    return result
