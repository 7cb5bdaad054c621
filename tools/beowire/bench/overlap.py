# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sending while computing over the kernel module: MPI_Isend, computing, MPI_Wait [B1].

Measured by the clock, in a guest with two processors, so on a quiet host. The port between its two
nodes is made so slow that the transfer waits for it, not for the emulated processors. (A clock that
counts instructions would run ahead whenever the guest waits for the host's files, which an MPI
library needs.)
"""

import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from beowire import places
from beowire.bench import samples
from beowire.errors import BeowireError
from beowire.vm import machine

BYTES = 4 << 20
_LIMIT_S = 3000


@dataclass(frozen=True)
class Overlap:
    """Medians, and how much longer both take than the longer of the two, round by round."""

    library: str
    bytes: int
    rate: str
    transfer_ns: float
    compute_ns: float
    both_ns: float
    ratio: samples.Ratio
    rounds: list[tuple[int, int, int]]
    """Transfer, computing, and both, in nanoseconds."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def evaluate(told: dict[str, Any], rate: str) -> Overlap:
    """Out of what the program printed."""
    rows = [told[name] for name in ("transfer_ns", "compute_ns", "both_ns")]
    longer = [max(one, other) for one, other, _ in zip(*rows, strict=True)]
    transfer, compute, both = (samples.percentiles(row)["p50"] for row in rows)
    return Overlap(
        library=told["library"],
        bytes=told["bytes"],
        rate=rate,
        transfer_ns=transfer,
        compute_ns=compute,
        both_ns=both,
        ratio=samples.ratio(rows[2], longer),
        rounds=list(zip(*rows, strict=True)),
    )


def measure(rate: str, rounds: int, kernel: str = "") -> Overlap:
    """Boots a guest with the kernel module and runs the program there, between two nodes."""
    script = places.source("tools/guest/overlap.sh")
    attach = places.product("programs/beowire-attach")
    program = places.product("examples/overlap")
    command = [str(script), sys.executable, str(attach), rate, str(program)]
    command += ["--bytes", str(BYTES), "--rounds", str(rounds)]
    guest = machine.Guest(command, kernel, memory_mb=2048, limit_s=_LIMIT_S, modules=True)
    with tempfile.TemporaryDirectory(prefix="beowire-overlap-") as name:
        file = Path(name) / "output"
        output = os.open(file, os.O_WRONLY | os.O_CREAT)
        try:
            outcome = machine.run(guest, output)
        finally:
            os.close(output)
        text = file.read_text(errors="replace")
    found = [line for line in text.splitlines() if line.startswith('{"program": "overlap"')]
    if outcome.exit_status or outcome.complaints or not found:
        told = "\n".join([*outcome.complaints, *text.splitlines()[-15:]])
        raise BeowireError(f"The program did not end well in the guest:\n{told}")
    return evaluate(json.loads(found[0]), rate)
