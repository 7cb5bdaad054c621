# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the time of a short message goes, by differences of variants that were measured in turn.

system call   what entering and leaving the kernel costs, once in each call: timed with a call that
              does nothing (getppid)
wake-up       blocking against spinning: a receiver that looks again and again is not woken
stack         spinning, TCP (or Beowire) against bare frames from a mapped ring, less the system
              call that TCP makes to receive and the ring does not
wire          what bare frames take, spinning, less their system call: drivers, NICs, the wire
"""

from dataclasses import dataclass
from typing import Any

from beowire.doctor.draws import Estimate, estimate, of_rounds
from beowire.doctor.series import Series, Transport

PARTS = ("system call", "stack", "wake-up", "wire")


@dataclass(frozen=True)
class Parts:
    """A message one way, in seconds, and what it is made of; they add up."""

    transport: Transport
    size: int
    whole: Estimate
    parts: dict[str, Estimate]

    def as_json(self) -> dict[str, Any]:
        return {
            "transport": self.transport,
            "size_bytes": self.size,
            "whole_s": self.whole.as_json(),
            "parts_s": {name: each.as_json() for name, each in self.parts.items()},
        }


def divide(series: Series, transport: Transport, size: int) -> Parts | None:
    """The parts of a blocking ping-pong's time; None where a variant was not measured."""
    blocking = series.get(transport, "latency", "block", size)
    spinning = series.get(transport, "latency", "spin", size)
    frames = series.get("packet", "latency", "spin", size)
    if not (blocking and spinning and frames):
        return None
    whole, spin, bare = (of_rounds(each) for each in (blocking, spinning, frames))
    call = of_rounds(series.system_call_s)
    parts = {
        "system call": 2 * call,
        "stack": spin - bare - call,
        "wake-up": whole - spin,
        "wire": bare - call,
    }
    return Parts(
        transport,
        size,
        estimate(whole),
        {name: estimate(parts[name]) for name in PARTS},
    )
