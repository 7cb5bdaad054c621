# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What fixing a finding would bring to a pair of nodes, and what is known of the two for that."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from beowire.doctor.draws import Estimate, estimate

if TYPE_CHECKING:
    from beowire.doctor.draws import Draws

HERE, THERE = "here", "there"


@dataclass(frozen=True)
class Told:
    """What the probe needs to know of the two nodes."""

    mtu_bytes: int
    findings: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By HERE and THERE: the outcomes that the doctor there calls bad."""
    buffers: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """By HERE and THERE: the fields of tcp_rmem and tcp_wmem."""
    speed_bits: int = 0
    """Of this node's NIC; 0: not known, or a virtual interface, whose speed says nothing."""


@dataclass(frozen=True)
class Gain:
    """What fixing a finding would bring, by the model."""

    check: str
    node: str
    """HERE or THERE."""
    metric: str
    """latency: a short message over TCP, blocking; bulk, bulk back: TCP from here, and to here."""
    before: Estimate
    after: Estimate
    """Seconds, or bytes in a second."""
    factor: Estimate
    """How many times faster."""
    how: str
    at_most: bool = False
    """The model knows a bound only."""

    def as_json(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in ("check", "node", "metric", "how")},
            "at_most": self.at_most,
            **{name: getattr(self, name).as_json() for name in ("before", "after", "factor")},
        }


def found_in(told: Told, node: str, check: str) -> dict[str, Any] | None:
    """What this check found on the node; None: nothing."""
    for each in told.findings.get(node, ()):
        if each["check"] == check:
            return each
    return None


def gained(
    check: str,
    node: str,
    metric: str,
    before: "Draws",
    after: "Draws",
    how: str,
    *,
    faster: bool = False,
    at_most: bool = False,
) -> Gain:
    """A gain of these draws: seconds, or with `faster` bytes in a second."""
    factor = after / before if faster else before / after
    return Gain(
        check, node, metric, estimate(before), estimate(after), estimate(factor), how, at_most
    )
