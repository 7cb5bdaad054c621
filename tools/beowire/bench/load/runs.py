# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One run of the program over one transport, and the proof that this one carried it."""

import json
from typing import Any, Literal

from beowire import places
from beowire.bench.load.plan import JOB_S, Plan
from beowire.errors import BeowireError
from beowire.run import mpi, path
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job

Carrier = Literal["tcp", "beowire"]
CARRIERS: tuple[Carrier, ...] = ("tcp", "beowire")
"""In the order of a round."""
TOLD: dict[Carrier, str] = {"tcp": "TCP", "beowire": "Beowire"}
_LINE_MAX = 300
Phase = dict[str, Any]
"""What the program prints of a phase, a line of JSON."""


def job_for(plan: Plan, carrier: Carrier, number: int) -> Job:
    """The job of round `number`: a rank on each node."""
    suffix = ".mpich" if mpi.find(plan.mpi).family == "mpich" else ""
    program = [str(places.example(f"load{suffix}")), *plan.program_arguments(number)]
    return Job(
        program,
        plan.nodes,
        carrier,
        mpi=plan.mpi,
        per_node=1,
        bind="none" if plan.nap_us else "core",
        tcp_stack=plan.tcp_stack,
    )


def moved_bytes(phases: list[Phase]) -> int:
    """What a run is known to have moved between nodes."""
    return sum(int(each["payload_bytes"]) + int(each.get("bulk_bytes", 0)) for each in phases)


def shortened(text: str) -> str:
    """What a person can read of a failure's output, without the messages of a phase."""
    lines = (
        line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX]}..." for line in text.splitlines()
    )
    return "\n".join(lines)


def run(plan: Plan, carrier: Carrier, number: int, cluster: Cluster) -> list[Phase]:
    """One proved run: its phases, that without load first. Ten times as long as planned, for a
    transport that does not carry its load, but for ever it does not wait."""
    limit_s = 60 * JOB_S + 10 * plan.run_s
    try:
        record, output = run_captured(job_for(plan, carrier, number), cluster, limit_s)
    except BeowireError as error:
        raise BeowireError(shortened(error.what), error.fix, error.code) from error
    phases = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if len(phases) != len(plan.gaps_ns) + bool(plan.idle):
        raise BeowireError(
            f"A run told of {len(phases)} phases, not of all.", f"It was: {record.command}"
        )
    path.prove(record, moved_bytes(phases))
    return phases
