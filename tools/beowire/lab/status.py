# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What labs are like at this moment: for people, for machines, and again and again."""

import dataclasses
import time
from typing import TYPE_CHECKING, Any

from beowire import installed, namespaces
from beowire.errors import BeowireError
from beowire.lab import emulator, link_counts, place, quota, slurm, up
from beowire.lab.lab import Lab, Wire
from beowire.terminal import out
from beowire.topology.keys import describe, settings
from beowire.topology.topology import DIRECTIONS, Direction, Link

if TYPE_CHECKING:
    from rich.table import Table

_PAUSE_S = 1.0


def described(lab: Lab) -> dict[str, Any]:
    """Everything about a lab, as its JSON tells it; results of measurements carry it too."""
    living = lab.ready and lab.mode == "namespace"
    ports = up.port_counts(lab) if living else {}
    return {
        "name": lab.name,
        "ready": lab.ready,
        "mode": lab.mode,
        "reason": lab.reason,
        "nodes": lab.nodes,
        "topology": {
            "name": lab.topology.name,
            "description": lab.topology.description,
            "source": lab.topology.source,
            "routers": [each.name for each in lab.topology.routers],
            "switches": lab.topology.switch_names(),
        },
        "mtu_bytes": lab.topology.mtu_bytes(),
        "network": lab.network(),
        "addresses": {node: lab.address(node) for node in lab.node_names()},
        "interfaces": lab.addresses,
        "links": links(lab),
        "dead_emulators": lab.dead_wires() if lab.mode == "namespace" else [],
        "quotas": quota.told(lab) if living else {},
        "processes": lab.processes(),
        "slurm": slurm.told(lab),
        "ports": {node: dataclasses.asdict(counts) for node, counts in ports.items()},
    }


def links(lab: Lab) -> list[dict[str, Any]]:
    """How each link is made and what it does."""
    counts = link_counts.counts(lab) if lab.ready and lab.mode == "namespace" else {}
    dead = lab.dead_wires() if lab.mode == "namespace" else []
    result = []
    for link in lab.topology.links:
        wire = lab.wires.get(link.name, Wire("plain"))
        told: dict[str, Any] = {
            "name": link.name,
            "a": str(link.a),
            "b": str(link.b),
            "made_by": wire.kind,
            "pid": wire.pid,
            "offloads": link.offloads and wire.kind != "netem",
        }
        for direction in DIRECTIONS:
            told[direction] = settings(link.model(direction))
        if wire.pid and link.name not in dead:
            told["emulator"] = emulator.stats(lab, link.name)
        told["counts"] = {
            direction: dataclasses.asdict(counts[link.name, direction])
            for direction in DIRECTIONS
            if (link.name, direction) in counts
        }
        result.append(told)
    return result


def remarks(lab: Lab) -> list[str]:
    """What a person should know beside the table."""
    dead = lab.dead_wires() if lab.mode == "namespace" else []
    return [
        f"Lab {lab.name}: the emulator of link {link} is dead, nothing passes there.\n"
        f"  Remove the lab ({installed.COMMAND} lab down {lab.name}) and make it again."
        for link in dead
    ] + [
        f"Lab {lab.name}: {program} is dead, Slurm does not work there.\n"
        f"  Remove the lab ({installed.COMMAND} lab down {lab.name}) and make it again."
        for program in (slurm.dead(lab) if lab.ready else [])
    ]


def table(labs: list[Lab]) -> "Table":
    from rich.table import Table

    shown = Table("lab", "topology", "nodes", "addresses", "MTU", "kind", "links", "processes")
    for lab in labs:
        models = [model for link in lab.topology.links for model in (link.ab, link.ba)]
        words = sorted({text for model in models if (text := describe(model))})
        shown.add_row(
            lab.name if lab.ready else f"{lab.name} (incomplete)",
            lab.topology.name,
            str(lab.nodes),
            lab.network(),
            str(lab.topology.mtu_bytes()),
            f"{lab.mode}, Slurm" if lab.slurm else lab.mode,
            "; ".join(words) or "clear",
            str(len(lab.processes())),
        )
    return shown


@dataclasses.dataclass(frozen=True)
class Flow:
    """What has passed a link in one direction so far, and what not."""

    bytes: int
    frames: int
    lost: int
    """By any of the model's faults, or by a full queue."""


def watch(lab: Lab) -> None:
    """Shows rates and losses of every link and direction until Ctrl-C."""
    if lab.mode == "loopback":
        raise BeowireError(
            f"Lab {lab.name} runs on loopback addresses; it has no links to watch.",
            "Use a lab of namespaces: run as root where the kernel allows them.",
        )
    from rich.live import Live

    before, then = flows(lab), time.monotonic()
    with Live(_rates(lab, before, before, 1.0), console=out(), auto_refresh=False) as live:
        try:
            while True:
                time.sleep(_PAUSE_S)
                after, now = flows(lab), time.monotonic()
                live.update(_rates(lab, before, after, now - then), refresh=True)
                before, then = after, now
        except KeyboardInterrupt:
            pass


def _rates(
    lab: Lab,
    before: dict[tuple[str, Direction], Flow],
    after: dict[tuple[str, Direction], Flow],
    seconds: float,
) -> "Table":
    from rich.table import Table

    shown = Table("link", "from", "to", "Mbit/s", "frames/s", "lost/s", "lost in all", "model")
    for (name, direction), flow in after.items():
        link = lab.link(name)
        earlier = before.get((name, direction), flow)
        ends = link.ends if direction == "ab" else link.ends[::-1]
        shown.add_row(
            name,
            str(ends[0]),
            str(ends[1]),
            f"{(flow.bytes - earlier.bytes) * 8 / seconds / 1e6:,.1f}",
            f"{(flow.frames - earlier.frames) / seconds:,.0f}",
            f"{(flow.lost - earlier.lost) / seconds:,.0f}",
            f"{flow.lost:,}",
            describe(link.model(direction)) or "clear",
        )
    return shown


def flows(lab: Lab) -> dict[tuple[str, Direction], Flow]:
    """What has passed each link in each direction: the counters of the interfaces at the switch,
    where it comes out, those of the queues and classifiers, and those of emulators."""
    counts = link_counts.counts(lab)
    found: dict[tuple[str, Direction], Flow] = {}
    for link in lab.topology.links:
        told = emulator.stats(lab, link.name) if lab.wires[link.name].pid else {}
        for direction in DIRECTIONS:
            passed, dropped = _passed(lab, link, direction)
            lost = dropped
            if (link.name, direction) in counts:
                each = counts[link.name, direction]
                lost += each.lost + each.too_long + each.raw_dropped
            lost += emulator.dropped(told, direction) if told else 0
            found[link.name, direction] = Flow(*passed, lost)
    return found


def _passed(lab: Lab, link: Link, direction: Direction) -> tuple[tuple[int, int], int]:
    """(Bytes and frames) that came out of the link, and how many its queue dropped."""
    where = place.place(lab.topology, link)
    path = lab.namespace_path(where.namespace)
    plain = lab.wires[link.name].kind == "plain"
    return namespaces.within(
        path, lambda: link_counts.passed(link.name, inward=direction == where.inward, plain=plain)
    )
