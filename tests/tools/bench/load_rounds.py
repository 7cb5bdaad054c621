# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stands for the runs of `beowire bench load`: phases as the program prints them, made by hand."""

from typing import Any

from beowire.bench.load.distribution import Distribution, constant
from beowire.bench.load.plan import Plan
from beowire.bench.load.runs import Phase
from beowire.bench.load.store import Round

QUIET = {"held": 0, "late_p99_ns": 0, "away_share": 0.0, "inside_share": 0.0}


def idle(times: dict[int, list[int]]) -> Phase:
    """Times by size, with nothing else moving."""
    rows = [(size, ns) for size, row in times.items() for ns in row]
    return {"phase": "idle", "bytes": [size for size, _ in rows], "ns": [ns for _, ns in rows]}


def load(sizes: list[int], ns: list[int], **more: Any) -> Phase:
    """Messages under load, all of whose bytes came in time."""
    due = {"due_bytes": sum(sizes), "reached_bytes": sum(sizes), "end_ns": 0}
    return {"phase": "load", "bytes": sizes, "ns": ns, "payload_bytes": 0, **due, **QUIET, **more}


def both(tcp: list[Phase], beowire: list[Phase]) -> Round:
    return {"tcp": tcp, "beowire": beowire}


def plan(sizes: Distribution | None = None, **more: Any) -> Plan:
    """One load of 50 % of 1 Gbit/s, by three senders."""
    told: dict[str, Any] = {"pattern": "mixed", "loads": (0.5,), "rate_bits": 10**9, "nodes": 4}
    return Plan(sizes=sizes or constant(1000), **{**told, **more})
