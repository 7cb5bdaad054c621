# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The pair in LogGP's terms (Alexandrov, Ionescu, Schauser and Scheiman, 1995).

A message of k bytes takes o_s + L + o_r + (k - 1) G from program to program; g is the least time
between two messages. The overheads are timed in the calls (Kielmann, Bal and Verstoep, 2000), g is
what remains of a second at the highest rate, G the slope of the time of a message against its size
when many are under way, by least squares.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from beowire.doctor.draws import Estimate, estimate, of_rounds
from beowire.doctor.series import Series, Transport, Wait

if TYPE_CHECKING:
    from beowire.doctor.draws import Draws


@dataclass(frozen=True)
class LogGP:
    """A transport's parameters, in seconds; G in seconds a byte."""

    transport: Transport
    wait: Wait
    latency: Estimate
    """L. Below zero where the calls do part of the network's work, as on a machine's own links."""
    send: Estimate
    receive: Estimate
    gap: Estimate
    byte: Estimate

    def as_json(self) -> dict[str, Any]:
        return {
            "transport": self.transport,
            "wait": self.wait,
            "L": self.latency.as_json(),
            "o_s": self.send.as_json(),
            "o_r": self.receive.as_json(),
            "g": self.gap.as_json(),
            "G": self.byte.as_json(),
        }


def fit(series: Series, transport: Transport, wait: Wait, size: int) -> LogGP | None:
    """From messages of the smallest size and bulk; None where a part was not measured."""
    short = {
        mode: series.get(transport, mode, wait, size)
        for mode in ("latency", "send", "receive", "rate")
    }
    sizes = series.sizes(transport, "bandwidth", wait)
    if not all(short.values()) or not sizes:
        return None
    long = {each: of_rounds(series.get(transport, "bandwidth", wait, each)) for each in sizes}
    byte = _slope(long)
    send, receive = of_rounds(short["send"]), of_rounds(short["receive"])
    latency = of_rounds(short["latency"]) - send - receive - (size - 1) * byte
    return LogGP(
        transport,
        wait,
        estimate(latency),
        estimate(send),
        estimate(receive),
        estimate(1 / of_rounds(short["rate"])),
        estimate(byte),
    )


def _slope(rates: "dict[int, Draws]") -> "Draws":
    """Seconds a byte: t = c + G k by least squares of relative errors; of one size, its time."""
    import numpy as np

    if len(rates) == 1:
        return 1 / next(iter(rates.values()))
    sizes = np.array(list(rates), dtype=float)[:, None]
    times = sizes / np.array(list(rates.values()))
    weights = 1 / times**2
    mean_size = (weights * sizes).sum(axis=0) / weights.sum(axis=0)
    mean_time = (weights * times).sum(axis=0) / weights.sum(axis=0)
    away = sizes - mean_size
    result: Draws = (weights * away * (times - mean_time)).sum(axis=0) / (weights * away**2).sum(
        axis=0
    )
    return result
