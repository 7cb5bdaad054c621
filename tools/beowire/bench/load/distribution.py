# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long messages are: points of a cumulative distribution, straight lines between them.

Published ones lie in `distributions/`; others are read from files like those.
"""

import itertools
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError

BYTES_MAX = 64 << 20
POINTS_MAX = 256
UNIFORM = (1, 64 << 10)
"""Without a range of its own."""

_UNITS = {"": 0, "k": 10, "m": 20}


@dataclass(frozen=True)
class Distribution:
    """A distribution of message sizes."""

    name: str
    source: str
    points: tuple[tuple[int, float], ...]
    """Bytes and the share of messages that are no longer, both rising; the last share is 1."""

    @property
    def knots(self) -> tuple[tuple[int, float], ...]:
        """The points with a first one of share 0: what lies below is as long as the first."""
        first, share = self.points[0]
        return ((first, 0.0), *self.points) if share else self.points

    @property
    def mean_bytes(self) -> float:
        return sum(
            (share - before) * (low + high) / 2
            for (low, before), (high, share) in itertools.pairwise(self.knots)
        )

    def quantile(self, share: float) -> int:
        """The size that this share of messages does not exceed."""
        for (low, before), (high, after) in itertools.pairwise(self.knots):
            if share <= after and after > before:
                return low + round((share - before) / (after - before) * (high - low))
        return self.knots[-1][0]

    def classes(self, count: int) -> list[int]:
        """The longest message of each of so many classes that hold about as many messages; fewer
        where many are of one size."""
        bounds = [self.quantile(number / count) for number in range(1, count + 1)]
        return list(dict.fromkeys(bounds))

    def argument(self) -> str:
        """As the program reads it."""
        return ",".join(f"{share:.9g}:{size}" for size, share in self.knots)


def published() -> dict[str, Path]:
    """The files that come with Beowire, by name."""
    directory = places.package_file("bench/load/distributions")
    return {file.stem: file for file in sorted(directory.glob("*.toml"))}


def constant(size: int) -> Distribution:
    return Distribution(f"{size} B", "all alike", ((size, 0.0), (size, 1.0)))


def uniform(low: int, high: int) -> Distribution:
    return Distribution(f"uniform:{low}-{high}", "all sizes alike", ((low, 0.0), (high, 1.0)))


def read_bytes(option: str, text: str) -> int:
    """A size such as 256k."""
    match = re.fullmatch(r"(\d+)([km]?)", text.strip().lower(), re.ASCII)
    size = int(match[1]) << _UNITS[match[2]] if match else 0
    if not 1 <= size <= BYTES_MAX:
        raise BeowireError(f"{option}: {text!r} is no size of messages.", "Give 1 to 64m bytes.")
    return size


def chosen(text: str) -> Distribution:
    """What --sizes names: a published distribution, `uniform`, or a file."""
    if text in (known := published()):
        return read_file(known[text], text)
    name, _, span = text.partition(":")
    if name == "uniform":
        if not span:
            return uniform(*UNIFORM)
        low, _, high = span.partition("-")
        first, last = read_bytes("--sizes", low), read_bytes("--sizes", high)
        if first > last:
            raise BeowireError(f"--sizes {text}?", "Give the shorter one first.")
        return uniform(first, last)
    if not Path(text).exists():
        raise BeowireError(
            f"--sizes {text}: there is no such distribution, and no file.",
            f"Give {', '.join(known)}, uniform, uniform:1k-1m, or a file of points.",
        )
    return read_file(Path(text), Path(text).stem)


def read_file(file: Path, name: str) -> Distribution:
    """A distribution out of its file; BeowireError tells what is wrong with it."""
    try:
        told = tomllib.loads(file.read_text())
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be read: {error.strerror or error}.", "Name another file."
        ) from error
    except ValueError as error:  # of TOML, or of its letters
        raise BeowireError(
            f"{file} is no TOML: {error}.", "Write points = [[100, 0.5], [9000, 1.0]]."
        ) from error
    points = told.get("points")
    if why := _wrong(points):
        raise BeowireError(
            f"{file} holds no distribution: {why}.",
            "Write points = [[BYTES, SHARE], ...], rising, up to the share 1.",
        )
    return Distribution(
        name,
        str(told.get("source", "")),
        tuple((int(size), float(share)) for size, share in points or ()),
    )


def _wrong(points: Any) -> str:
    """What is wrong with the points; empty: nothing."""
    if not isinstance(points, list) or not points:
        return "it has no points"
    if len(points) >= POINTS_MAX:
        return f"it has more than {POINTS_MAX - 1} points"
    for each in points:
        pair = isinstance(each, list) and len(each) == 2
        if not pair or type(each[0]) is not int or type(each[1]) not in (int, float):
            return f"{each} is no point"
        if not 1 <= each[0] <= BYTES_MAX:
            return f"{each[0]} bytes are none or more than 64 MiB"
        if not 0 <= each[1] <= 1:
            return f"{each[1]} is no share"
    if points[-1][1] != 1:
        return "its last share is not 1"
    return "" if _rise(points) else "its points do not rise"


def _rise(points: Sequence[Sequence[float]]) -> bool:
    return all(
        before[0] <= after[0] and before[1] <= after[1]
        for before, after in itertools.pairwise(points)
    )
