# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The state in Prometheus' text format (exposition format 0.0.4): counters and gauges of each
endpoint, and of each of its peers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from beowire import exposition
from beowire.status import figures
from beowire.status.words import called

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")


@dataclass(frozen=True)
class Metric:
    """One metric: its name, whether it is a counter or a gauge, and what it tells."""

    name: str
    kind: str
    help: str


def _metric(name: str, kind: str, text: str) -> Metric:
    assert _NAME.fullmatch(name)
    return Metric(f"beowire_{name}", kind, text)


UP = _metric("up", "gauge", "1: the node told its state, 0: it was not reached.")
ENDPOINT = _metric("endpoint_info", "gauge", "1 for each endpoint, with what it is in labels.")
DROPS = _metric("dropped_frames_total", "counter", "Received frames that were dropped, by reason.")
PROBLEMS = _metric("peer_problem", "gauge", "1 where a peer is silent, lossy, slow or lost.")
_LINK = {
    "tx_frames": _metric("tx_frames_total", "counter", "Frames sent by a link."),
    "rx_frames": _metric("rx_frames_total", "counter", "Frames received by a link."),
    "tx_bytes": _metric("tx_bytes_total", "counter", "Bytes of frames sent by a link."),
    "rx_bytes": _metric("rx_bytes_total", "counter", "Bytes of frames received by a link."),
    "tx_payload": _metric("tx_payload_bytes_total", "counter", "Payload sent, repetitions too."),
    "rx_payload": _metric("rx_payload_bytes_total", "counter", "Payload accepted."),
}
_ENDPOINT = {
    "tx_messages": _metric("tx_messages_total", "counter", "Messages sent."),
    "rx_messages": _metric("rx_messages_total", "counter", "Messages received."),
    "retransmits": _metric("retransmits_total", "counter", "Parts sent again."),
    "losses": _metric("losses_total", "counter", "Packets concluded lost."),
    "probes": _metric("probes_total", "counter", "Tail probes."),
    "backoffs": _metric("backoffs_total", "counter", "Congestion responses."),
    "credit_stalls": _metric("credit_stalls_total", "counter", "Times without credit."),
    "overruns": _metric("overruns_total", "counter", "Frames the kernel had no room for."),
    "memory_bytes": _metric("memory_bytes", "gauge", "Memory of buffers and of the engine."),
    "peer_count": _metric("peers", "gauge", "Peers that there are."),
    "receives": _metric("posted_receives", "gauge", "Receives without a message."),
    "unexpected": _metric("unexpected_messages", "gauge", "Messages without a receive."),
    "unexpected_bytes": _metric("unexpected_bytes", "gauge", "Bytes of these."),
}
_PEER = {
    "tx_messages": _metric("peer_tx_messages_total", "counter", "Messages sent to a peer."),
    "rx_messages": _metric("peer_rx_messages_total", "counter", "Messages received from a peer."),
    "retransmits": _metric("peer_retransmits_total", "counter", "Parts sent to a peer again."),
    "losses": _metric("peer_losses_total", "counter", "Packets to a peer concluded lost."),
    "credit": _metric("peer_credit_bytes", "gauge", "Bytes that a peer takes beyond what it got."),
    "inflight": _metric("peer_inflight_bytes", "gauge", "Bytes sent and not acknowledged."),
    "exposed_bytes": _metric("peer_unfetched_bytes", "gauge", "Bytes a peer has not fetched."),
}
TRIP = _metric("peer_round_trip_seconds", "gauge", "Smoothed round trip to a peer.")
SILENCE = _metric("peer_silence_seconds", "gauge", "How long an answer has been missing; 0: none.")
METRICS = (
    UP, ENDPOINT, *_LINK.values(), *_ENDPOINT.values(), DROPS, *_PEER.values(), TRIP, SILENCE,
    PROBLEMS,
)  # fmt: skip
Sample = tuple[Metric, dict[str, str], float]


def _of_peers(endpoint: dict[str, Any], labels: dict[str, str]) -> Iterator[Sample]:
    for peer in endpoint["peers"]:
        those = {**labels, "peer": peer["name"], "link": peer["link"]}
        those["peer_identity"] = peer["identity"]
        for name, metric in _PEER.items():
            yield metric, those, peer[name]
        yield TRIP, those, peer["srtt_ns"] / 1e9
        yield SILENCE, those, figures.silence(peer) or 0.0
        if peer["verdicts"]:
            problem = peer["verdicts"][0].partition(" ")[0]
            yield PROBLEMS, {**those, "problem": problem}, 1


def _of_endpoint(endpoint: dict[str, Any]) -> Iterator[Sample]:
    labels = {"node": endpoint["node"], "endpoint": called(endpoint)}
    labels |= {"engine": str(endpoint["engine"]), "identity": endpoint["identity"]}
    told = {"program": endpoint["program"], "user": endpoint["user"]}
    yield ENDPOINT, {**labels, **told, "links": "+".join(endpoint["links"])}, 1
    for link, counters in endpoint["by_link"].items():
        for name, metric in _LINK.items():
            if counters["tx_frames"] or counters["rx_frames"]:
                yield metric, {**labels, "link": link}, counters[name]
    for name, metric in _ENDPOINT.items():
        yield metric, labels, endpoint[name]
    for reason, count in endpoint["drops"].items():
        yield DROPS, {**labels, "reason": reason}, count
    yield from _of_peers(endpoint, labels)


def text(state: dict[str, Any]) -> str:
    """All of it: the samples of a metric together, below what it is. None is there twice, for which
    a reader would refuse them all: of boards that are alike in all labels the first one counts."""
    samples: list[Sample] = [(UP, {"node": node}, 1) for node in state["nodes"]]
    samples += [(UP, {"node": node}, 0) for node in state["unreached"]]
    for endpoint in state["endpoints"]:
        samples += _of_endpoint(endpoint)
    told: dict[Metric, dict[tuple[str, ...], str]] = {metric: {} for metric in METRICS}
    for metric, labels, value in samples:
        told[metric].setdefault(
            tuple(labels.values()), exposition.sample(metric.name, labels, value)
        )
    lines = []
    for metric, those in told.items():
        lines += exposition.head(metric.name, metric.kind, metric.help)
        lines += those.values()
    return "\n".join(lines) + "\n"
