# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What two readings of a board say together: rates; and what is wrong with a peer."""

import statistics
from typing import Any

from beowire.status import layout

ENDPOINT_RATES = (
    "rounds",
    "tx_messages",
    "rx_messages",
    "retransmits",
    "losses",
    "tx_payload",
    "rx_payload",
    *(f"{side}_payload_{link}" for side in ("tx", "rx") for link in layout.LINKS),
)
PEER_RATES = (
    "tx_packets",
    "rx_packets",
    "tx_messages",
    "rx_messages",
    "tx_charged",
    "rx_charged",
    "retransmits",
    "losses",
)
SILENT_S = 1.0
"""An answer that is late by so much is missing: probes are a second apart at most."""
LOSSY_SHARE = 0.001
LOSSY_PACKETS = 20
"""Packets that have to be lost before chance is ruled out."""
SLOW_TIMES = 5.0
SLOW_NS = 200_000
"""A round trip is slow that takes so many times the others', and at least so long."""
UNFETCHED_S = 2.0
DOWN_WORDS = {
    -104: "gave us up",
    -108: "closed",
    -110: "silent too long",
    -111: "its process is gone",
    -125: "forgotten",
    -129: "another key",
}


def rates(
    before: dict[str, Any] | None, after: dict[str, Any], names: tuple[str, ...], seconds: float
) -> dict[str, float]:
    """How fast counters grow, a second; one that fell has begun anew, and is left at 0."""
    if before is None or seconds <= 0:
        return dict.fromkeys(names, 0.0)
    return {name: max(0, after.get(name, 0) - before.get(name, 0)) / seconds for name in names}


def share_out(endpoint: dict[str, Any]) -> None:
    """Bytes a second to and from each peer: those of the endpoint's links, divided by what was
    charged for each of their peers. For short messages more is charged than their bytes."""
    for way, links in (("local", ("local",)), ("far", ("packet", "udp"))):
        those = [
            peer for peer in endpoint["peers"] if (peer["link"] == "local") == (way == "local")
        ]
        for side in ("tx", "rx"):
            rate = sum(endpoint["rates"][f"{side}_payload_{link}"] for link in links)
            whole = sum(peer["rates"][f"{side}_charged"] for peer in those)
            for peer in those:
                part = peer["rates"][f"{side}_charged"] / whole if whole else 0.0
                peer["rates"][f"{side}_bytes"] = rate * part


def _share(peer: dict[str, Any]) -> float:
    """Of the packets to a peer, those that were lost. What was sent again is more: tail probes are
    sent in doubt, to whoever has no processor at the time, too."""
    packets = peer["tx_packets"]
    return peer["losses"] / packets if packets else 0.0


def trouble(peer: dict[str, Any]) -> list[str]:
    """What is wrong with a peer by itself: words for people, the worst first."""
    found = []
    if peer["status"]:
        if peer["status"] != -108:
            found.append(DOWN_WORDS.get(peer["status"], f"lost ({-peer['status']})"))
        return found
    late = silence(peer)
    if late is not None:
        found.append(f"silent for {late:.1f} s")
    if peer["losses"] >= LOSSY_PACKETS and _share(peer) >= LOSSY_SHARE:
        found.append(f"lossy ({100 * _share(peer):.2g} %)")
    unfetched = peer["exposed_since_s"]
    if unfetched is not None and unfetched >= UNFETCHED_S:
        found.append(f"fetches nothing for {unfetched:.1f} s")
    if peer["stalled"]:
        found.append("takes nothing more")
    return found


def silence(peer: dict[str, Any]) -> float | None:
    """Seconds for which an answer of a peer had been missing when it was looked for last; None: it
    was not."""
    late: float | None = peer["unanswered_s"]
    if peer["status"] or late is None:
        return None
    return late if late >= SILENT_S else None


def add_verdicts(endpoints: list[dict[str, Any]]) -> None:
    """Says of each peer what is wrong with it: `verdicts`. Who is slow is seen beside others only:
    those of the same link."""
    trips: dict[str, list[int]] = {}
    for endpoint in endpoints:
        for peer in endpoint["peers"]:
            if peer["srtt_ns"] and not peer["status"]:
                trips.setdefault(peer["link"], []).append(peer["srtt_ns"])
    usual = {link: statistics.median(those) for link, those in trips.items() if len(those) > 2}
    for endpoint in endpoints:
        for peer in endpoint["peers"]:
            peer["verdicts"] = trouble(peer)
            least = max(SLOW_NS, SLOW_TIMES * usual.get(peer["link"], float("inf")))
            if not peer["status"] and peer["srtt_ns"] > least:
                peer["verdicts"].append(f"slow (round trip {peer['srtt_ns'] / 1e6:.3g} ms)")
