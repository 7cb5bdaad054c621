# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How much faster a pair of nodes could be: what each finding costs, as far as a model can tell,
and what the software between program and wire costs beside what the hardware did."""

from dataclasses import dataclass
from typing import Any

from beowire.doctor import headroom_bulk, headroom_latency
from beowire.doctor.draws import of_rounds
from beowire.doctor.gain import Gain, Told, gained
from beowire.doctor.series import WAITS, Series


@dataclass(frozen=True)
class Headroom:
    """All that can be told of a pair."""

    gains: list[Gain]
    together: list[Gain]
    """All findings of a metric fixed; their check is empty."""
    hardware: list[Gain]
    """What the software between program and wire costs beside what the hardware did."""
    silent: list[tuple[str, str]]
    """Findings, with their node, that no model speaks of."""

    def as_json(self) -> dict[str, Any]:
        return {
            "gains": [each.as_json() for each in self.gains],
            "together": [each.as_json() for each in self.together],
            "hardware": [each.as_json() for each in self.hardware],
            "not_modelled": [{"check": check, "node": node} for check, node in self.silent],
        }


def predict(series: Series, told: Told, size: int) -> Headroom:
    """All gains; `size` is that of a short message."""
    gains: list[Gain] = []
    together: list[Gain] = []
    for back in (False, True):
        alone, whole = headroom_bulk.predict(series, told, size, back)
        gains += alone
        together += whole
    gains += headroom_latency.predict(series, told, size)
    known = {(each.check, each.node) for each in gains} | set(_spoken_of(told))
    silent = [
        (each["check"], node)
        for node, outcomes in told.findings.items()
        for each in outcomes
        if (each["check"], node) not in known
    ]
    gains.sort(key=lambda each: -each.factor.value)
    return Headroom(gains, together, _of_hardware(series, told, size), silent)


def _spoken_of(told: Told) -> list[tuple[str, str]]:
    """Findings that a model knows, also where it says that they cost nothing here."""
    names = {
        "buffers.tcp_receive",
        "buffers.tcp_send",
        "tcp.moderate_rcvbuf",
        "tcp.window_scaling",
        "qdisc.shaping",
        "coalescing.receive_short",
        "link.mtu",
    }
    return [(name, node) for node in told.findings for name in names]


def _of_hardware(series: Series, told: Told, size: int) -> list[Gain]:
    rounds = series.get("tcp", "latency", "block", size)
    bare = [series.get("packet", "latency", wait, size) for wait in WAITS]
    found = [of_rounds(each) for each in bare if each]
    gains = []
    if rounds and found:
        how = "a bare frame, the receiver spinning or blocking"
        best = min(found, key=lambda each: float(each[0]))
        gains.append(gained("", "", "latency", of_rounds(rounds), best, how))
    for back in (False, True):
        bulk = headroom_bulk.bulk_rate(series, back)
        top = headroom_bulk.line(series, told, back=back)
        if bulk is not None and top is not None:
            how = "the best of TCP, bare frames and Beowire"
            metric = "bulk back" if back else "bulk"
            gains.append(gained("", "", metric, bulk, top, how, faster=True))
        if bulk is not None and told.speed_bits:
            full = 0 * bulk + told.speed_bits / 8 * headroom_bulk.share_of_line(told.mtu_bytes)
            how = f"full frames at the NIC's {told.speed_bits / 1e9:g} Gbit/s"
            metric = "bulk back" if back else "bulk"
            gains.append(gained("", "", metric, bulk, full, how, faster=True, at_most=True))
    return gains
