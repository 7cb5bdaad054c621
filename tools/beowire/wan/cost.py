# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a line between two sites costs a program.

In the manner of LogGP (Alexandrov and others, 1995): a program waits for some of its messages one
after the other, each for the one-way delay D. Its bytes cross the line at its rate R, or with a
window W of them under way in a round trip, whichever takes longer; messages of different lengths
have different windows. A lost frame, p of all n, holds it up for a while and for some round trips.
So m D + sum V max(1 / R, 2 D / W) + n p (h + k 2 D).
"""

import math
from dataclasses import dataclass

from beowire.wan.grid import Line

FRAME_BYTES = 1500


@dataclass(frozen=True)
class Crossing:
    """Bytes that cross the line with so many of them under way at once."""

    bytes: float
    window_bytes: float = math.inf
    """Infinite: the rate is the limit."""

    def time_s(self, line: Line) -> float:
        return self.bytes * max(line.byte_s, 2 * line.delay_s / self.window_bytes)


@dataclass(frozen=True)
class Cost:
    """What a program has to do with the line."""

    messages: float
    """In a row: each is waited for before the next one can be sent."""
    crossings: tuple[Crossing, ...]
    frames: float = 0.0
    """That can be lost."""
    stall_s: float = 0.0
    """For each lost frame."""
    stall_trips: float = 0.0
    """Round trips for each lost frame."""

    def waiting_s(self, line: Line) -> float:
        return self.messages * line.delay_s

    def crossing_s(self, line: Line) -> float:
        """What the bytes take."""
        return sum(each.time_s(line) for each in self.crossings)

    def loss_s(self, line: Line) -> float:
        lost = self.frames * line.loss
        return lost * (self.stall_s + self.stall_trips * 2 * line.delay_s)

    def time_s(self, line: Line) -> float:
        return self.waiting_s(line) + self.crossing_s(line) + self.loss_s(line)
