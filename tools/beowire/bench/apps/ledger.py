# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the preloaded ledger of one run says of its ranks, and what Beowire's endpoints counted."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire.errors import BeowireError

SIZES = ("64 B", "1 KiB", "8 KiB", "64 KiB", "1 MiB", "more")
"""Classes of messages: up to so many bytes. As adapters/ledger has them."""
_ACCOUNT = (
    *("wall_ns", "user_us", "system_us", "voluntary", "involuntary", "faults"),
    *("ran_ns", "queued_ns", "asleep_ns"),
)
_ENGINE = (
    *("tx_messages", "tx_pulls", "rounds", "acks_tx", "retransmits", "credit_stalls"),
    *("losses", "spurious", "probes", "backoffs", "yields", "naps"),
)
_LINKS = ("packet", "udp", "local")


@dataclass
class Ledger:
    """Sums over all ranks of a run."""

    ranks: int = 0
    account: Counter[str] = field(default_factory=Counter)
    """What the kernel counted of the processes; `ran_ns`, `queued_ns` and `asleep_ns` of the
    program's own threads: with a core, waiting for one, and in poll() and its like."""
    mpi: dict[str, list[int]] = field(default_factory=dict)
    """By function of MPI: calls, nanoseconds within, bytes sent."""
    sizes: list[int] = field(default_factory=lambda: [0] * len(SIZES))
    """Messages and collective calls by what was sent, as SIZES."""
    kernel: dict[str, list[int]] = field(default_factory=dict)
    """By function of libc: calls of the program's own threads, and of other threads."""
    engine: Counter[str] = field(default_factory=Counter)
    """What Beowire's endpoints counted; none over TCP."""

    def add(self, told: dict[str, Any]) -> None:
        """One more rank."""
        self.ranks += 1
        self.account.update({name: int(told[name]) for name in _ACCOUNT})
        for table, rows in ((self.mpi, told["mpi"]), (self.kernel, told["kernel"])):
            for name, row in rows.items():
                known = table.get(name, [0] * len(row))
                table[name] = [a + int(b) for a, b in zip(known, row, strict=True)]
        self.sizes = [a + int(b) for a, b in zip(self.sizes, told["sizes"], strict=True)]

    def add_endpoint(self, told: dict[str, Any]) -> None:
        self.engine.update({name: int(told.get(name, 0)) for name in _ENGINE})
        for link in _LINKS:
            counts = told["links"].get(link, {})
            self.engine[f"{link} frames"] += int(counts.get("tx_frames", 0))
            self.engine[f"{link} bytes"] += int(counts.get("tx_payload", 0))

    @property
    def mpi_s(self) -> float:
        """Within MPI, on the average of the ranks."""
        return sum(row[1] for row in self.mpi.values()) / 1e9 / self.ranks

    def seconds(self, name: str) -> float:
        """Of the account, on the average of the ranks."""
        unit = 1e9 if name.endswith("_ns") else 1e6
        return self.account[name] / unit / self.ranks

    def calls(self, *names: str) -> int:
        """Calls of the kernel by the program's own threads, of all ranks."""
        return sum(self.kernel.get(name, [0])[0] for name in names)

    def as_json(self) -> dict[str, Any]:
        return {
            "ranks": self.ranks,
            "account": dict(self.account),
            "mpi": self.mpi,
            "sizes": dict(zip(SIZES, self.sizes, strict=True)),
            "kernel": self.kernel,
            "engine": dict(self.engine),
        }


def read(directory: Path) -> Ledger:
    """Out of what a run left in its directory of counters."""
    found = Ledger()
    try:
        for file in sorted(directory.glob("*.ledger")):
            found.add(json.loads(file.read_text()))
        for file in sorted(directory.glob("*.json")):
            found.add_endpoint(json.loads(file.read_text()))
    except (ValueError, KeyError, TypeError) as error:
        raise BeowireError(f"A run's ledger cannot be read: {error!r}.") from error
    if not found.ranks:
        raise BeowireError("No rank left a ledger: the program ended MPI in a way of its own.")
    return found
