# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A network in LogGP's terms (Alexandrov and others, 1995), and what a message's time is made of.

A message of s bytes takes L + 2 o + s max(G, O) from program to program: L the latency of the
network, o the processor's overhead at each end, G the network's time for a byte, O the processor's
(the O of LogGOP: Hoefler and others, 2010), which works on one packet while others are on their
way. They come from the report of `beowire bench pingpong --json`, or are given.
"""

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from beowire.errors import BeowireError

Part = Literal["latency", "overhead", "bandwidth"]

PARTS: tuple[Part, ...] = ("latency", "overhead", "bandwidth")

_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


@dataclass(frozen=True)
class LogGP:
    """A network's parameters, in seconds."""

    latency: float
    overhead: float
    byte: float
    byte_overhead: float = 0.0
    """Of the processor at the busier end; 0: not known, taken for less than the network's."""

    @property
    def rate_bits(self) -> float:
        """Bits per second that the network carries."""
        return 8 / self.byte

    @property
    def per_byte(self) -> float:
        """Of a long message."""
        return max(self.byte, self.byte_overhead)

    def message(self, size_bytes: int) -> float:
        """What a message takes."""
        return self.latency + 2 * self.overhead + size_bytes * self.per_byte

    def shares(self, size_bytes: int) -> dict[Part, float]:
        """How a message's time divides; in sum 1."""
        whole = self.message(size_bytes)
        return {
            "latency": self.latency / whole,
            "overhead": 2 * self.overhead / whole,
            "bandwidth": size_bytes * self.per_byte / whole,
        }

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"rate_bits": self.rate_bits}

    def __str__(self) -> str:
        return (
            f"L {1e6 * self.latency:.3g} us, o {1e6 * self.overhead:.3g} us, "
            f"1 / G {self.rate_bits / 1e9:.3g} Gbit/s"
            + (f", 1 / O {8e-9 / self.byte_overhead:.3g} Gbit/s" if self.byte_overhead else "")
        )


def parse_time(option: str, text: str) -> float:
    """`20us` in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ns|us|ms|s)", text)
    if not found or float(found[1]) <= 0:
        raise BeowireError(f"{option} {text}?", "Write a time such as 20us, or a factor: x0.5.")
    return float(found[1]) * _TIMES[found[2]]


def parse_rate(option: str, text: str) -> float:
    """`10G` in bits per second."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([kmgt])(?:bit)?", text.lower())
    if not found or float(found[1]) <= 0:
        raise BeowireError(f"{option} {text}?", "Write a rate such as 10G, or a factor: x10.")
    return float(found[1]) * _RATES[found[2]]


def parse(text: str) -> LogGP:
    """`30us,2us,1G` or `30us,2us,1G,3G`: latency, overhead, rate, the rate of the processors."""
    words = text.split(",")
    if len(words) not in (3, 4):
        raise BeowireError(
            f"--network {text}?",
            "Write latency, overhead, rate, and the rate that processors manage if it is known: "
            "30us,2us,1G or 30us,2us,1G,3G.",
        )
    latency, overhead = (parse_time("--network", word) for word in words[:2])
    return LogGP(latency, overhead, *(8 / parse_rate("--network", word) for word in words[2:]))


def from_pingpong(file: Path, transport: str) -> LogGP:
    """From a report: L + 2 o is the time of the smallest message, G the slope over the sizes, and o
    the time between short messages at their highest rate, which it is at most."""
    times, rates = _figures(file, transport)
    if len(times) < 2:
        raise BeowireError(
            f"{file} has latencies of {len(times)} sizes; the slope needs two.",
            "Measure: beowire bench pingpong --mode latency,rate --json FILE",
        )
    small, large = min(times), max(times)
    byte = (times[large] - times[small]) / (large - small)
    if byte <= 0:
        raise BeowireError(
            f"{file}: {large} bytes do not take longer than {small}.",
            "Measure again, with larger --sizes.",
        )
    start = max(times[small] - small * byte, 0.0)
    overhead = min(1 / rates[min(rates)], start / 2) if rates else 0.0
    return LogGP(start - 2 * overhead, overhead, byte)


def _figures(file: Path, transport: str) -> tuple[dict[int, float], dict[int, float]]:
    """Medians of the one-way times in seconds, and of messages a second, both by size."""
    times: dict[int, float] = {}
    rates: dict[int, float] = {}
    try:
        for figure in json.loads(file.read_text())["figures"]:
            median, size = float(figure[transport]["p50"]), int(figure["size_bytes"])
            if figure["mode"] == "latency":
                times[size] = median * _TIMES[figure["unit"]]
            elif figure["mode"] == "rate":
                rates[size] = median
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be read: {error.strerror}.", "Name the report of bench pingpong."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise BeowireError(
            f"{file} is no report of `beowire bench pingpong` ({error!r}).",
            "Measure: beowire bench pingpong --mode latency,rate --json FILE",
        ) from error
    return times, rates
