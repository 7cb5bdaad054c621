# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One transfer over several links between two nodes, to what each of them carries alone [D4]; and
what a link that is cut in the middle of it costs.

The links are emulated and join a network each. What arrives is counted by the receiver's
interfaces, headers and all.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from beowire.bench import line_flow
from beowire.bench.samples import Ratio, ratio
from beowire.errors import BeowireError
from beowire.lab import stream, up
from beowire.lab.lab import Lab
from beowire.topology.topology import (
    DIRECTIONS,
    End,
    Host,
    Interface,
    Link,
    Model,
    Switch,
    Topology,
)

SENDER, RECEIVER = "node1", "node2"
LINKS_MAX = 3
"""Interfaces that raw frames may travel by together, without the one that UDP uses."""
WARM_S = 2.0
_SETTLE_S = 0.5
_LOOK_S = 1.5
_STALL_MOST_S = 5.0  # until data come again after a cut or a return, on a busy machine
_DATA_BYTES = 100_000  # more than acknowledgements and probes have meanwhile
_CUT_LASTS_S = 8.0  # of which some pass without the link
_MESSAGE_BITS = 8 << 20


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    rates_bits: tuple[int, ...]
    """Of each link, per second."""
    mtu_bytes: int
    messages: int
    """On their way at a time, of 1 MiB each."""
    seconds: float
    rounds: int
    cut: int
    """Which link is cut in a transfer of its own, from 1; 0: none."""


@dataclass(frozen=True)
class Cut:
    """A transfer, one of whose links carried nothing for a while."""

    stall_s: float
    """What the slowest of the messages to and fro took longer than most."""
    without_bits: float
    """Per second, one way, from half a second after the cut on, and not before data come."""
    again_bits: float
    """Per second, from half a second after the link's return on, and not before it has data."""
    returned_bits: float
    """What the returned link had of that."""


@dataclass
class Report:
    """Bits per second that arrive, round by round."""

    plan: Plan
    alone: list[list[float]] = field(default_factory=list)
    """By each link alone."""
    together: list[float] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    parts: list[list[float]] = field(default_factory=list)
    """By each link, of all together."""

    @property
    def gain(self) -> Ratio:
        """All links together to the sum of them."""
        return ratio(self.together, [sum(each) for each in self.alone])

    def as_json(self) -> dict[str, Any]:
        return {
            "plan": vars(self.plan),
            "alone_bits": self.alone,
            "together_bits": self.together,
            "together_by_link_bits": self.parts,
            "together_to_sum": vars(self.gain),
            "cuts": [vars(cut) for cut in self.cuts],
        }


def check(plan: Plan) -> None:
    """BeowireError for what cannot be measured."""
    if not 2 <= len(plan.rates_bits) <= LINKS_MAX:
        raise BeowireError(
            f"{len(plan.rates_bits)} links?",
            f"Give the rates of 2 to {LINKS_MAX} links, such as --rates 100M,100M.",
        )
    if plan.cut > len(plan.rates_bits):
        raise BeowireError(
            f"There is no link {plan.cut} to be cut.", f"There are {len(plan.rates_bits)}."
        )


def measure(plan: Plan, tell: Callable[[str], None]) -> Report:
    """Runs the plan; `tell` hears of each transfer before it begins."""
    report = Report(plan)
    every = range(len(plan.rates_bits))
    with up.termination_raises(), _made(plan) as lab:
        for number in range(1, plan.rounds + 1):
            tell(f"round {number} of {plan.rounds}")
            report.alone.append([sum(_rates(lab, plan, [link])) for link in every])
            report.parts.append(_rates(lab, plan, every))
            report.together.append(sum(report.parts[-1]))
            if plan.cut:
                report.cuts.append(_cut(lab, plan, plan.cut - 1))
    return report


def _topology(plan: Plan) -> Topology:
    interfaces = tuple(Interface(f"eth{i}", plan.mtu_bytes) for i in range(len(plan.rates_bits)))
    nodes = tuple(Host(name, interfaces) for name in (SENDER, RECEIVER))
    channels = range(len(plan.rates_bits))
    switches = tuple(Switch(f"channel{i + 1}") for i in channels)
    links = tuple(_cable(plan, node, i) for node in (SENDER, RECEIVER) for i in channels)
    return Topology("stripe", nodes=nodes, switches=switches, links=links)


def _cable(plan: Plan, node: str, channel: int) -> Link:
    model = Model(rate_bits=plan.rates_bits[channel])
    name = f"{node}-{channel + 1}"
    return Link(name, End(node, f"eth{channel}"), End(f"channel{channel + 1}"), model, model)


@contextlib.contextmanager
def _made(plan: Plan) -> Iterator[Lab]:
    name = f"stripe-{os.getpid()}"
    lab = up.up_topology(name, _topology(plan))
    try:
        yield lab
    finally:
        up.down(name)


def _variables(links: "range | list[int]") -> Mapping[str, str]:
    names = ",".join(f"eth{link}" for link in links)
    return {"BEOWIRE_LINKS": "packet", "BEOWIRE_INTERFACES": names}


def _came(lab: Lab, plan: Plan) -> list[int]:
    """Bytes that have come to the receiver by each link."""
    return [
        stream.rx_bytes(lab, End(RECEIVER, f"eth{link}")) for link in range(len(plan.rates_bits))
    ]


def _bits(lab: Lab, plan: Plan, seconds: float) -> list[float]:
    """Per second and link, in the time that follows. The clock is read before what came, and then
    after it, so that no rate is too high."""
    begun, before = time.monotonic(), _came(lab, plan)
    time.sleep(seconds)
    after, took_s = _came(lab, plan), time.monotonic() - begun
    return [8 * (b - a) / took_s for a, b in zip(before, after, strict=True)]


def _transfer(
    lab: Lab, plan: Plan, links: "range | list[int]"
) -> contextlib.AbstractContextManager[None]:
    return line_flow.beowire(lab, SENDER, RECEIVER, plan.messages, _variables(links))


def _rates(lab: Lab, plan: Plan, links: "range | list[int]") -> list[float]:
    """Of a transfer over these links, what comes by each link that there is."""
    with _transfer(lab, plan, links):
        time.sleep(WARM_S)
        return _bits(lab, plan, plan.seconds)


def _cut(lab: Lab, plan: Plan, link: int) -> Cut:
    """While messages of 1 MiB go to and fro."""
    rate = sum(plan.rates_bits)
    words = ["--transport", line_flow.BEOWIRE, "--size", "1M"]
    words += ["--iterations", str(max(20, int(_CUT_LASTS_S * rate / (2 * _MESSAGE_BITS))))]
    variables = _variables(range(len(plan.rates_bits)))
    with line_flow.latency(lab, SENDER, RECEIVER, words, variables) as told:
        time.sleep(WARM_S)
        _set_loss(lab, link, 1.0)
        time.sleep(_SETTLE_S)
        _await_more(lab, plan)
        without = sum(_bits(lab, plan, _LOOK_S))
        _set_loss(lab, link, 0.0)
        time.sleep(_SETTLE_S)
        _await_more(lab, plan, link)
        again = _bits(lab, plan, _LOOK_S)
    stall_s = 2 * (told["max_ns"] - told["p50_ns"]) / 1e9
    return Cut(stall_s, without, sum(again), again[link])


def _await_more(lab: Lab, plan: Plan, link: int | None = None) -> None:
    """Until data have come to the receiver, by this link or by any."""
    wanted = slice(link, None if link is None else link + 1)
    before, until = sum(_came(lab, plan)[wanted]), time.monotonic() + _STALL_MOST_S
    while sum(_came(lab, plan)[wanted]) < before + _DATA_BYTES and time.monotonic() < until:
        time.sleep(0.02)


def _set_loss(lab: Lab, link: int, loss: float) -> None:
    name = f"{RECEIVER}-{link + 1}"
    found = lab.link(name)
    model = Model(rate_bits=found.ab.rate_bits, loss=loss)
    up.set_links(lab.name, {name: dict.fromkeys(DIRECTIONS, model)})
