# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The chain of beowire-activation in a guest of one processor whose clock counts instructions: how
long the way is, whatever else the machine does. What makes each of them faster does not show."""

import shlex
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import activation
from beowire.bench.activation import Key, Plan
from beowire.errors import BeowireError
from beowire.replicate import command as replicate
from beowire.vm import counted, machine

MEASURES = ("none", "realtime", "replicate", "huge")
"""Of one processor there is none to be pinned to."""
COUNT = 100
INTERVAL_US = 100
MEMORY_MB = 512


def keys(plan: Plan) -> list[Key]:
    """What runs in the guest, in this order."""
    return [
        Key("counted", scope, event, measure)
        for scope, event in plan.settings()
        for measure in plan.measures
        if measure in MEASURES
    ]


def measure(plan: Plan) -> dict[Key, dict[str, Any]]:
    """What each run told; nanoseconds are instructions."""
    wanted = keys(plan)
    if not wanted:
        raise BeowireError("Nothing is left to be counted.", f"Measures: {', '.join(MEASURES)}.")
    short = Plan(count=COUNT, interval_us=INTERVAL_US, work=plan.work)
    script = " && ".join(shlex.join(activation.words(short, key)) for key in wanted)
    files = [places.product(activation.PROGRAM), places.product(replicate.LIBRARY)]
    guest = machine.Guest(
        ["/bin/sh", "-c", script],
        cpus=1,
        memory_mb=MEMORY_MB,
        icount=True,
        files=[*files, Path("/usr/bin/env")],
    )
    return dict(zip(wanted, told(counted.run(guest), len(wanted)), strict=True))


def told(text: str, count: int) -> list[dict[str, Any]]:
    """The JSON lines of so many runs."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if len(lines) != count:
        raise BeowireError(f"The guest told of {len(lines)} runs, not {count}:\n{text[-500:]}")
    return [activation.checked(line) for line in lines]


def as_json(found: dict[Key, dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {**vars(key), "instructions": {step: run[f"{step}_ns"] for step in activation.STEPS}}
        for key, run in found.items()
    ]
