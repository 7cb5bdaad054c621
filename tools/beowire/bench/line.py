# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Bulk transfers over a long line: each alone, or beside a TCP flow in the same queue, and what a
TCP ping-pong meets beside them.

The lab is the topology `two-sites` [C1]. The line's rate, delay, loss and queue are those of one of
its router's two links, so that one emulator has to keep time.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from beowire import places
from beowire.bench import line_flow
from beowire.bench.samples import Ratio, ratio
from beowire.errors import BeowireError
from beowire.lab import emulator, up
from beowire.lab.lab import Lab
from beowire.topology import catalogue
from beowire.topology.topology import CLEAR, Direction, Model
from beowire.wan.sites import CABLE, EMULATED, TOPOLOGY

SENDERS = ("node1", "node2", "node3")
"""Of the bulk transfer, of the flow beside it, of the ping-pong."""
RECEIVERS = ("node5", "node6", "node7")
WARM_S = 5.0
"""Slow starts are not measured."""
PING_BYTES, PINGS = 64, 200


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    line: Model
    """One way; the loss is on the way of the data only."""
    flows: tuple[str, ...]
    """line_flow.BEOWIRE, or names of TCP's congestion controls."""
    beside: str
    """A congestion control: such a TCP flow runs all the time; empty: none does."""
    ping: bool
    seconds: float
    rounds: int


@dataclass(frozen=True)
class Run:
    """One flow in one round."""

    flow: str
    bits: float
    """Per second, Ethernet headers included, at the receiver."""
    beside_bits: float
    ping_us: dict[str, float] | None
    """One way, percentiles of a round trip's half."""
    valid: bool
    reasons: list[str]


@dataclass
class Report:
    """All runs, and ratios of Beowire to each other flow."""

    plan: Plan
    runs: list[Run] = field(default_factory=list)

    def of(self, flow: str) -> list[Run]:
        return [run for run in self.runs if run.flow == flow]

    def over(self, flow: str) -> Ratio | None:
        """Beowire's rate to that of this flow, round by round."""
        ours = [run.bits for run in self.of(line_flow.BEOWIRE)]
        theirs = [run.bits for run in self.of(flow)]
        if flow == line_flow.BEOWIRE or not ours or len(ours) != len(theirs):
            return None
        return ratio(ours, theirs)

    def ping_over(self, flow: str) -> Ratio | None:
        """The ping-pong's 99th percentile beside Beowire to that beside this flow."""
        ours = [run.ping_us["p99"] for run in self.of(line_flow.BEOWIRE) if run.ping_us]
        theirs = [run.ping_us["p99"] for run in self.of(flow) if run.ping_us]
        if flow == line_flow.BEOWIRE or not ours or len(ours) != len(theirs):
            return None
        return ratio(ours, theirs)

    def as_json(self) -> dict[str, Any]:
        return {
            "line": vars(self.plan.line),
            "beside": self.plan.beside,
            "seconds": self.plan.seconds,
            "runs": [vars(run) for run in self.runs],
            "beowire_over": {
                flow: vars(found)
                for flow in self.plan.flows
                if (found := self.over(flow)) is not None
            },
            "ping_p99_over": {
                flow: vars(found)
                for flow in self.plan.flows
                if (found := self.ping_over(flow)) is not None
            },
        }


def check(plan: Plan) -> None:
    """BeowireError for what cannot be measured here."""
    known = line_flow.controls()
    for flow in {*plan.flows, plan.beside} - {line_flow.BEOWIRE, ""}:
        if flow not in known:
            raise BeowireError(
                f"This kernel has no TCP congestion control {flow}; it has {', '.join(known)}.",
                f"Choose among these, or load its module: modprobe tcp_{flow}.",
            )
    if not plan.line.rate_bits or not plan.line.delay_ns:
        raise BeowireError("A line has a rate and a delay.", "Give --rate and --delay.")
    places.product("programs/beowire-pingpong")


def measure(plan: Plan, tell: Callable[[str], None]) -> Report:
    """Runs the plan; `tell` hears of each run before it begins."""
    report = Report(plan)
    with up.termination_raises(), made(plan) as lab:
        for number in range(1, plan.rounds + 1):
            for flow in plan.flows:
                tell(f"round {number} of {plan.rounds}: {flow}")
                report.runs.append(_run(lab, plan, flow))
    return report


@contextlib.contextmanager
def made(plan: Plan) -> Iterator[Lab]:
    """The lab with the plan's line, gone afterwards."""
    found = catalogue.find(TOPOLOGY)
    back = replace(plan.line, loss=0.0, burst_frames=0.0)
    line: dict[Direction, Model] = {"ab": back, "ba": plan.line}
    cable = found.link(CABLE)
    emulated = found.link(EMULATED)
    assert cable is not None
    assert emulated is not None
    # The line leaves the router towards site B: `wan-b` is written from the site to the router.
    shaped = replace(found, realtime=True).with_links(
        {
            CABLE: cable.with_models({"ab": CLEAR, "ba": CLEAR}),
            EMULATED: emulated.with_models(line),
        }
    )
    name = f"line-{os.getpid()}"
    lab = up.up_topology(name, shaped)
    try:
        yield lab
    finally:
        up.down(name)


def _run(lab: Lab, plan: Plan, flow: str) -> Run:
    emulator.ask(lab, EMULATED, "reset")
    with contextlib.ExitStack() as flows:
        if plan.beside:
            flows.enter_context(line_flow.running(lab, plan.beside, SENDERS[1], RECEIVERS[1]))
        flows.enter_context(line_flow.running(lab, flow, SENDERS[0], RECEIVERS[0]))
        time.sleep(WARM_S)
        begun = time.monotonic()  # before what is counted, and then after it: no rate is too high
        before = [line_flow.rx_bytes(lab, node) for node in RECEIVERS]
        ping = _ping(lab) if plan.ping else None
        time.sleep(max(0.0, begun + plan.seconds - time.monotonic()))
        after = [line_flow.rx_bytes(lab, node) for node in RECEIVERS]
        took_s = time.monotonic() - begun
    bits = [8 * (b - a) / took_s for a, b in zip(before, after, strict=True)]
    told = emulator.stats(lab, EMULATED)
    return Run(
        flow,
        bits[0],
        bits[1] if plan.beside else 0.0,
        ping,
        bool(told["valid"]),
        [str(each) for each in told["reasons"]],
    )


def _ping(lab: Lab) -> dict[str, float]:
    """Percentiles of a TCP ping-pong of short messages, one way, in microseconds."""
    words = ["--transport", "tcp", "--size", str(PING_BYTES), "--iterations", str(PINGS)]
    with line_flow.latency(lab, SENDERS[2], RECEIVERS[2], words) as told:
        pass
    return {key: told[f"{key}_ns"] / 1e3 for key in ("min", "p50", "p99", "max")}
