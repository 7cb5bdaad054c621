# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is measured, and how the program is told.

`mixed`: messages of a distribution at shares of the line's rate, from all nodes to the first or to
random others. `beside`: short messages while a bulk transfer fills the same line. `incast`: many
nodes send a message each to one, all at once.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

from beowire.bench.load.distribution import Distribution
from beowire.errors import BeowireError
from beowire.run.launch import TcpStack

Pattern = Literal["mixed", "beside", "incast"]
To = Literal["one", "all"]
NODES: dict[Pattern, int] = {"mixed": 4, "beside": 2, "incast": 17}
"""Of labs made for it."""
BULK_BYTES = 1 << 20
WAVE_GAP = 8
"""Between waves, in times that one takes at the line's rate."""

_BULK_COVERS = 1.25
"""The bulk transfer to what the line carries while messages are sent."""
AROUND = 1.2
"""What a phase lasts to what is measured of it: as much goes before as follows."""
_IDLE_SIZES = 12
_IDLE_COPIES = {"mixed": 10, "beside": 100}
_IDLE_LEAST_NS = 2_000_000
_NAP_US = 20
JOB_S = 2.0
"""What a job takes to start and to end, about."""


@dataclass(frozen=True)
class Plan:
    """What to measure."""

    pattern: Pattern
    sizes: Distribution
    loads: tuple[float, ...]
    """Shares of the line's rate, of mixed; of the others one member that means nothing."""
    rate_bits: int
    """Of the line, per second."""
    nodes: int
    burst_bytes: int = 0
    """What an idle line lets through at once, as a lab's does."""
    to: To = "one"
    seconds: float = 10.0
    """For which messages are counted, of each load in each run."""
    per_second: int = 1000
    """Messages beside the bulk transfer."""
    mpi: str = "openmpi"
    tcp_stack: TcpStack = "native"
    answers: bool = False
    """Times are round trips; else one way, by the clock that all nodes share."""
    nap_us: int = 0
    """A rank with nothing to do sleeps for so long; 0: it looks on."""

    @property
    def senders(self) -> int:
        return self.nodes if self.to == "all" else self.nodes - 1

    @property
    def gaps_ns(self) -> list[int]:
        """The mean time between the messages of a sender, by load. What a node sends to random
        others, as much comes to it."""
        if self.pattern == "beside":
            return [round(1e9 / self.per_second)]
        if self.pattern == "incast":
            return [round(WAVE_GAP * self.fair_ns)]
        per_line = 1 if self.to == "all" else self.senders
        line_ns = 8e9 * self.sizes.mean_bytes / self.rate_bits
        return [round(line_ns * per_line / load) for load in self.loads]

    def offered(self, due_bytes: float) -> float:
        """The share of the line's rate that was drawn for a run's measured time."""
        lines = self.nodes if self.to == "all" else 1
        return 8 * due_bytes / (self.rate_bits * self.seconds * lines)

    @property
    def fair_ns(self) -> float:
        """What a wave takes at the line's rate: each message, if all get the same."""
        return 8e9 * self.senders * self.sizes.quantile(1) / self.rate_bits

    @property
    def full_ns(self) -> float:
        """What a wave takes at least: the same, but for what passes at once."""
        return max(self.fair_ns - 8e9 * self.burst_bytes / self.rate_bits, 1.0)

    @property
    def bulk_count(self) -> int:
        """Messages of the bulk transfer: enough to outlast the others."""
        carried = self.rate_bits / 8 * self.seconds * AROUND
        return math.ceil(_BULK_COVERS * carried / BULK_BYTES)

    @property
    def idle(self) -> list[tuple[int, int]]:
        """Sizes that are measured alone, and the time for one of them in ns."""
        if self.pattern == "incast":
            return []
        low, high = self.sizes.quantile(0), self.sizes.quantile(1)
        steps = [step / (_IDLE_SIZES - 1) for step in range(_IDLE_SIZES)]
        sizes = dict.fromkeys(round(low * (high / low) ** step) for step in steps)
        return [(size, _IDLE_LEAST_NS + round(16e9 * size / self.rate_bits)) for size in sizes]

    def program_arguments(self, number: int) -> list[str]:
        """Of the program in round `number`; alike for both transports."""
        words = ["--sizes", self.sizes.argument(), "--to", self.to, "--seed", str(number)]
        words += ["--gaps", ",".join(map(str, self.gaps_ns))]
        words += ["--ms", str(round(1000 * self.seconds)), "--nap-us", str(self.nap_us)]
        if self.idle:
            words += ["--idle", ",".join(f"{size}:{gap}" for size, gap in self.idle)]
            words += ["--idle-copies", str(_IDLE_COPIES[self.pattern])]
        if self.pattern == "incast":
            words.append("--waves")
        if self.pattern == "beside":
            words += ["--bulk", f"{BULK_BYTES}:{self.bulk_count}"]
        return [*words, "--answers"] if self.answers else words

    @property
    def run_s(self) -> float:
        """What a run takes, about, if the line carries what is asked for."""
        idle_s = sum(gap for _, gap in self.idle) * _IDLE_COPIES.get(self.pattern, 0) / 1e9
        covers = _BULK_COVERS if self.pattern == "beside" else 1
        return JOB_S + idle_s + len(self.gaps_ns) * self.seconds * AROUND * covers

    @property
    def setting(self) -> dict[str, Any]:
        """What must be the same for runs to belong together."""
        return {
            "pattern": self.pattern,
            "sizes": self.sizes.name,
            "points": [list(point) for point in self.sizes.points],
            "loads": list(self.loads),
            "rate_bits": self.rate_bits,
            "senders": self.senders,
            "to": self.to,
            "seconds": self.seconds,
            "per_second": self.per_second,
            "mpi": self.mpi,
            "tcp_stack": self.tcp_stack,
            "times": "round trip" if self.answers else "one way",
            "nap_us": self.nap_us,
        }


def nap_us(ranks: int, cores: int) -> int:
    """Ranks that share cores must leave them to each other while they wait."""
    return _NAP_US if ranks > cores else 0


def read_loads(text: str) -> tuple[float, ...]:
    """Shares out of per cents with commas."""
    try:
        found = [float(each) / 100 for each in text.split(",")]
    except ValueError:
        found = [0.0]
    if not all(0.001 <= each <= 2 for each in found) or len(found) > 16:
        raise BeowireError(
            f"--loads {text}?", "Give per cents of the line, such as 50,80; at most 200."
        )
    return tuple(dict.fromkeys(found))


def check(plan: Plan) -> None:
    """BeowireError for what cannot be measured."""
    least = 3 if plan.pattern == "incast" else 2
    if plan.nodes < least:
        raise BeowireError(
            f"--pattern {plan.pattern} needs {least} nodes or more; there are {plan.nodes}.",
            "Give --nodes N, a lab of so many nodes, or more hosts.",
        )
    least_s = plan.gaps_ns[0] / 1e9
    if plan.pattern == "incast" and plan.seconds < least_s:
        raise BeowireError(
            f"A wave comes every {least_s:.2g} s, and not for sure within {plan.seconds:g} s.",
            f"Give --seconds {math.ceil(least_s)} or more, shorter messages, or a faster line.",
        )
    most = 4_000_000
    for gap_ns in plan.gaps_ns:
        if plan.seconds * AROUND * 1e9 / max(gap_ns, 1) > most:
            raise BeowireError(
                f"A sender would send a message every {gap_ns} ns, more than {most:,} in all.",
                "Give longer messages (--sizes), a slower line (--rate), or less time (--seconds).",
            )
