# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The figures of the matrix: how many ranks they take, their units, and what they move at least.

The program examples/matrix measures them; a unit is what it repeats.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from beowire.errors import BeowireError

Place = Literal["between", "within"]
"""Between two nodes, half of the ranks on each; or all ranks on one."""


@dataclass(frozen=True)
class Figure:
    """One thing that is measured at every size."""

    name: str
    ranks: int
    """0: as many as the grid's collective calls have."""
    unit: str
    lower_is_better: bool
    value: Callable[[float, int, int], float]
    """Of a unit's time in ns, the size in bytes and the messages of a window: in `unit`."""
    between: Callable[[int], int]
    """Of the ranks: messages of a unit, or for rate of each in a window, that cross between two
    nodes, at least."""
    within: Callable[[int], int]
    """The same where all ranks lie on one node."""

    def moved_bytes(self, result: dict[str, Any], place: Place) -> int:
        """What a result of the program is known to have moved, its warm-up included."""
        count = self.between if place == "between" else self.within
        messages = count(int(result["ranks"]))
        window = int(result["window"]) if self.name == "rate" else 1
        return messages * window * int(result["units"]) * int(result["bytes"])

    def of(self, result: dict[str, Any]) -> float:
        """A result of the program in the figure's unit."""
        return self.value(float(result["p50_ns"]), int(result["bytes"]), int(result["window"]))


def _one_way_us(ns: float, _bytes: int, _window: int) -> float:
    return ns / 2e3


def _us(ns: float, _bytes: int, _window: int) -> float:
    return ns / 1e3


def _mb_per_s(messages: int) -> Callable[[float, int, int], float]:
    return lambda ns, size, _window: messages * size * 1e3 / ns


def _messages_per_s(ns: float, _bytes: int, window: int) -> float:
    return window * 1e9 / ns


def _always(messages: int) -> Callable[[int], int]:
    return lambda _ranks: messages


PAIRS = 4

# Without compression each rank needs a vector of allreduce from others, each but the root one of
# broadcast; two nodes need at least one each, or one.
FIGURES = {
    each.name: each
    for each in (
        Figure("latency", 2, "us", True, _one_way_us, _always(2), _always(2)),
        Figure("bandwidth", 2, "MB/s", False, _mb_per_s(1), _always(1), _always(1)),
        Figure("bidirectional", 2, "MB/s", False, _mb_per_s(2), _always(2), _always(2)),
        Figure("rate", 2, "messages/s", False, _messages_per_s, _always(1), _always(1)),
        Figure("pairs", 2 * PAIRS, "MB/s", False, _mb_per_s(PAIRS), _always(PAIRS), _always(PAIRS)),
        Figure("allreduce", 0, "us", True, _us, _always(2), lambda ranks: ranks),
        Figure(
            "alltoall",
            0,
            "us",
            True,
            _us,
            lambda ranks: 2 * (ranks // 2) ** 2,
            lambda ranks: ranks * (ranks - 1),
        ),
        Figure("broadcast", 0, "us", True, _us, _always(1), lambda ranks: ranks - 1),
    )
}

_UNITS = {"": 0, "k": 10, "m": 20, "g": 30}
_LARGEST = 64 << 20


def read_sizes(text: str) -> tuple[int, ...]:
    """Sizes of messages in bytes, out of a list such as 8,4k,1m; the smallest first."""
    sizes = set()
    for each in text.split(","):
        word = each.strip().lower()
        unit = word[-1:] if word[-1:] in ("k", "m", "g") else ""
        number = word.removesuffix(unit)
        if not (number.isascii() and number.isdigit()):
            raise BeowireError(f"--sizes {text}?", "Give sizes in bytes, such as 8,4k,1m.")
        size = int(number) << _UNITS[unit]
        if not size or size % 8 or size > _LARGEST:
            raise BeowireError(
                f"--sizes {text}: {each.strip()} cannot be measured.",
                "Give multiples of 8 bytes (an allreduce sums doubles) up to 64m.",
            )
        sizes.add(size)
    return tuple(sorted(sizes))


def told_size(size: int) -> str:
    """A size as people write it."""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"
