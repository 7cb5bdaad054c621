# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What endpoints that do nothing cost those that do: the latency between two nodes, without and
with others on both of them.

Each round measures every number of idle endpoints over every link in turn, so that what disturbs
the machine disturbs all of them.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from beowire.bench import line_flow
from beowire.bench.samples import Ratio, ratio
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.lab.lab import Lab

NODES = ("node1", "node2")
LINKS = ("packet", "udp")
IDLE_MAX = 1000
"""Endpoints that one process opens at most."""


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    idle: tuple[int, ...]
    """Numbers of idle endpoints on each node, without 0, which is always measured."""
    links: tuple[str, ...]
    mtu_bytes: int
    iterations: int
    rounds: int

    @property
    def numbers(self) -> tuple[int, ...]:
        return (0, *self.idle)


@dataclass
class Report:
    """One-way times of 8 B in microseconds: by link and number of idle endpoints, medians of each
    round."""

    plan: Plan
    times_us: dict[str, dict[int, list[float]]] = field(default_factory=dict)

    def cost(self, link: str, idle: int) -> Ratio:
        """To the time without idle endpoints."""
        return ratio(self.times_us[link][idle], self.times_us[link][0])

    def as_json(self) -> dict[str, Any]:
        return {
            "plan": vars(self.plan),
            "times_us": self.times_us,
            "cost": {
                link: {idle: vars(self.cost(link, idle)) for idle in self.plan.idle}
                for link in self.plan.links
            },
        }


def check(plan: Plan) -> None:
    """BeowireError for what cannot be measured."""
    if not plan.idle or not all(0 < idle <= IDLE_MAX for idle in plan.idle):
        raise BeowireError(
            f"--idle {','.join(map(str, plan.idle))}?", f"Give numbers from 1 to {IDLE_MAX}."
        )


def measure(plan: Plan, tell: Callable[[str], None]) -> Report:
    """Runs the plan; `tell` hears of each round before it begins."""
    report = Report(plan, {link: {idle: [] for idle in plan.numbers} for link in plan.links})
    with up.termination_raises(), _made(plan) as lab:
        for number in range(1, plan.rounds + 1):
            tell(f"round {number} of {plan.rounds}")
            for link in plan.links:
                for idle in plan.numbers:
                    report.times_us[link][idle].append(_latency_us(lab, plan, link, idle))
    return report


@contextlib.contextmanager
def _made(plan: Plan) -> Iterator[Lab]:
    name = f"idle-{os.getpid()}"
    lab = up.up(name, len(NODES), plan.mtu_bytes)
    try:
        yield lab
    finally:
        up.down(name)


def _latency_us(lab: Lab, plan: Plan, link: str, idle: int) -> float:
    words = ["--transport", line_flow.BEOWIRE, "--wait", "spin", "--idle", str(idle)]
    words += ["--iterations", str(plan.iterations)]
    with line_flow.latency(lab, *NODES, words, {"BEOWIRE_LINKS": link}) as told:
        pass
    return float(told["p50_ns"]) / 1e3
