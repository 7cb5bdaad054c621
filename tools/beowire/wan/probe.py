# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The line between two hosts as TCP sees it: half of a ping-pong's round trip, and its rate."""

from dataclasses import replace

from beowire.bench import pingpong, samples
from beowire.errors import BeowireError
from beowire.run import remote
from beowire.run.cluster import Cluster
from beowire.wan.advice import Link
from beowire.wan.grid import Line

PATIENCE_S = 20.0
"""For a host to answer at all."""
LATENCY_PLAN = pingpong.Plan(sizes="8", iterations=20, bind="none", baseline="native")
RATE_PLAN = pingpong.Plan(sizes="256k", window=8, iterations=4, bind="none", baseline="native")
"""For how much to send in a round: what takes so long that a connection's beginning is little."""
ROUND_BYTES = 1 << 20
ROUND_S = 2.0
ROUND_WINDOW = (4, 256)
"""The fewest and the most messages of ROUND_BYTES that are under way at once."""
_FRAME_SHARE = 1538 / 1448
"""Bytes on an Ethernet of 1500 bytes, with preamble and gap, to TCP's payload in them."""


def probe(cluster: Cluster, rounds: int) -> Link:
    """The line between the first and the last host, from so many rounds. Losses are not seen."""
    ends = [cluster.hosts[0], cluster.hosts[-1]]
    if ends[0] == ends[1]:
        raise BeowireError(
            f"A line has two ends; there is {ends[0]} alone.", "Name a host of each site."
        )
    both = replace(cluster, hosts=ends)
    for host in ends if cluster.lab is None else ():
        remote.execute(both, host, "true", limit_s=PATIENCE_S)
    least, most = ROUND_WINDOW
    window = round(ROUND_S * 1e6 * _median(RATE_PLAN, "bandwidth", both) / ROUND_BYTES)
    plan = replace(RATE_PLAN, sizes=str(ROUND_BYTES), window=min(max(window, least), most))
    delays_ms, rates_mbit = [], []
    for _ in range(rounds):
        delays_ms.append(_median(LATENCY_PLAN, "latency", both) / 1e3)
        rates_mbit.append(_median(plan, "bandwidth", both) * 8 * _FRAME_SHARE)
    middle = samples.percentiles
    return Link(
        Line(middle(delays_ms)["p50"], middle(rates_mbit)["p50"]),
        Line(min(delays_ms), max(rates_mbit)),
        Line(max(delays_ms), min(rates_mbit)),
        f"measured between {ends[0]} and {ends[1]} over TCP, {rounds} rounds; losses are in the "
        "rate",
    )


def _median(plan: pingpong.Plan, mode: pingpong.Mode, cluster: Cluster) -> float:
    """Of one run: microseconds one way, or megabytes a second."""
    report, _ = pingpong.run_pingpong(pingpong.pingpong_job(plan, mode, "tcp", "native"), cluster)
    return pingpong.medians(mode, report)[0]
