# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of labs: `beowire lab up|exec|set|status|counters|down`.

What makes and changes labs (lab_up, and netlink with it) is imported where it is used: entering a
node should not wait for it.
"""

import dataclasses
import json
import os
import re
from typing import Annotated

import typer
from rich.table import Table

from beowire import counters, lab
from beowire.errors import BeowireError
from beowire.terminal import note, out

app = typer.Typer(help="Make and use virtual clusters on this machine.", no_args_is_help=True)

_RATE_UNITS = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_RATE_MAX_BITS = 30 * 10**9

Name = Annotated[str, typer.Argument(metavar="NAME", help="The lab's name.")]
Loss = Annotated[str | None, typer.Option(help="Share of frames lost: 1% or 0.01.")]
Corrupt = Annotated[str | None, typer.Option(help="Share of frames with a bit flipped.")]
Rate = Annotated[str | None, typer.Option(help="Rate towards each node: 1gbit; 0: unlimited.")]
Queue = Annotated[int | None, typer.Option(help="Room of the queue before that rate, in bytes.")]
Longest = Annotated[int | None, typer.Option(help="Drop packets longer than this; 0: none.")]
DropRaw = Annotated[bool | None, typer.Option(help="Drop what is neither IP nor ARP.")]


def parse_share(text: str) -> float:
    """`1%` or `0.01` as a number between 0 and 1."""
    number = text.removesuffix("%")
    try:
        share = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise BeowireError(f"{text!r} is no share.", "Write 1% or 0.01; at most 100%.")
    return share


def parse_rate(text: str) -> int:
    """`1gbit`, `100mbit`, ... in bits per second; `0` is no limit."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(bit|kbit|mbit|gbit)?", text.lower())
    bits = round(float(match[1]) * _RATE_UNITS[match[2] or "bit"]) if match else -1
    if bits != 0 and not 8000 <= bits <= _RATE_MAX_BITS:
        raise BeowireError(f"{text!r} is no rate.", "Write 8kbit to 30gbit, or 0 for no limit.")
    return bits


def _shape_changes(
    loss: str | None,
    corrupt: str | None,
    rate: str | None,
    queue: int | None,
    longest: int | None,
    drop_raw: bool | None,
) -> dict[str, float | int | bool]:
    """The fields of a shape that the options name."""
    for value, option in ((queue, "--queue-bytes"), (longest, "--longest-bytes")):
        if value is not None and value < 0:
            raise BeowireError(f"{option} {value} is negative.", "Give a number of bytes.")
    changes: dict[str, float | int | bool | None] = {
        "loss": None if loss is None else parse_share(loss),
        "corrupt": None if corrupt is None else parse_share(corrupt),
        "rate_bits": None if rate is None else parse_rate(rate),
        "queue_bytes": queue,
        "longest_bytes": longest,
        "drop_raw": drop_raw,
    }
    return {key: value for key, value in changes.items() if value is not None}


@app.command()
def up(
    name: Name,
    nodes: Annotated[int, typer.Option(help="How many nodes.")],
    mtu: Annotated[int, typer.Option(help="MTU of every link, in bytes.")] = lab.MTU_DEFAULT_BYTES,
    offloads: Annotated[str, typer.Option(help="Segmentation offloads: on or off.")] = "on",
    loss: Loss = None,
    corrupt: Corrupt = None,
    rate: Rate = None,
    queue_bytes: Queue = None,
    longest_bytes: Longest = None,
    drop_raw: DropRaw = None,
) -> None:
    """Make a lab of nodes node1 to nodeN, joined by a switch."""
    from beowire import lab_up

    if offloads not in ("on", "off"):
        raise BeowireError(f"--offloads {offloads}?", "Give on or off.")
    changes = _shape_changes(loss, corrupt, rate, queue_bytes, longest_bytes, drop_raw)
    shape = dataclasses.replace(lab.Shape(), **changes)  # type: ignore[arg-type]
    made = lab_up.up(name, nodes, mtu, offloads=offloads == "on", shape=shape)
    if made.mode == "loopback":
        note(loopback_notice(made))
    out().print(
        f"Lab {name}: {nodes} nodes, {made.address('node1')} and on, MTU {mtu}. "
        f"Next: ./beowire lab exec {name} node1 -- hostname"
    )


def loopback_notice(made: lab.Lab) -> str:
    return (
        f"No namespaces: {made.reason}. The nodes are loopback addresses of this machine "
        f"({made.network()}), joined by the udp link only: no raw frames, no losses or rates, no "
        "host names, and counters of the whole machine instead of each node's."
    )


@app.command("exec", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def exec_(name: Name, node: str, command: Annotated[list[str], typer.Argument()]) -> None:
    """Execute a command on a node: lab exec NAME node1 -- CMD ARGS."""
    made = lab.load_ready(name)
    made.check_node(node)
    os.execv("/bin/sh", ["sh", str(made.enter_path(node)), *command])


@app.command("set")
def set_(
    name: Name,
    node: Annotated[list[str] | None, typer.Option(help="Only this node's port.")] = None,
    loss: Loss = None,
    corrupt: Corrupt = None,
    rate: Rate = None,
    queue_bytes: Queue = None,
    longest_bytes: Longest = None,
    drop_raw: DropRaw = None,
) -> None:
    """Change losses, corruption and rates of a running lab; what is not named stays."""
    changes = _shape_changes(loss, corrupt, rate, queue_bytes, longest_bytes, drop_raw)
    if not changes:
        raise BeowireError("Nothing to set.", "Name at least one of --loss, --corrupt, --rate ...")
    from beowire import lab_up

    made = lab.load_ready(name)
    shapes = {
        each: dataclasses.replace(made.shape(each), **changes)  # type: ignore[arg-type]
        for each in node or made.node_names()
    }
    lab_up.reshape(name, shapes)


@app.command()
def down(name: Name) -> None:
    """Remove a lab and kill what still runs on its nodes."""
    from beowire import lab_up

    lab_up.down(name)


@app.command()
def status(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show the labs of this machine."""
    labs = [lab.load(each) for each in ([name] if name else lab.names())]
    if as_json:
        print(json.dumps([_described(each) for each in labs], indent=1))
        return
    if not labs:
        out().print("No labs. Make one: ./beowire lab up NAME --nodes 2")
        return
    table = Table("lab", "nodes", "addresses", "MTU", "kind", "ports", "processes")
    for each in labs:
        shapes = sorted({_shape_text(shape) for shape in each.shapes.values()})
        table.add_row(
            each.name if each.ready else f"{each.name} (incomplete)",
            str(each.nodes),
            each.network(),
            str(each.mtu_bytes),
            each.mode,
            "; ".join(shapes) or "clear",
            str(len(each.processes())),
        )
    out().print(table)


def _described(each: lab.Lab) -> dict[str, object]:
    from beowire import lab_up

    ports = lab_up.port_counts(each) if each.ready and each.mode == "namespace" else {}
    return {
        **dataclasses.asdict(each),
        "addresses": {node: each.address(node) for node in each.node_names()},
        "processes": each.processes(),
        "ports": {node: dataclasses.asdict(counts) for node, counts in ports.items()},
    }


def _shape_text(shape: lab.Shape) -> str:
    parts = []
    if shape.loss:
        parts.append(f"loss {shape.loss:.3%}")
    if shape.corrupt:
        parts.append(f"corrupt {shape.corrupt:.3%}")
    if shape.rate_bits:
        parts.append(f"{shape.rate_bits / 1e6:g} Mbit/s")
    if shape.longest_bytes:
        parts.append(f"at most {shape.longest_bytes} B")
    if shape.drop_raw:
        parts.append("IP only")
    return ", ".join(parts)


@app.command("counters")
def counters_(
    name: Name, as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False
) -> None:
    """Show what the kernel counted on each node: bytes, frames, IP and TCP among them."""
    read = counters.of_lab(lab.load_ready(name))
    if as_json:
        print(json.dumps({node: dataclasses.asdict(each) for node, each in read.items()}, indent=1))
        return
    table = Table("node", "sent B", "received B", "of it raw B", "IP B", "TCP segments", "again")
    for node, each in read.items():
        table.add_row(
            node,
            f"{each.tx_bytes:,}",
            f"{each.rx_bytes:,}",
            f"{each.raw_bytes:,}",
            f"{each.ip_out_octets:,}",
            f"{each.tcp_out_segments:,}",
            f"{each.tcp_retransmitted_segments:,}",
        )
    out().print(table)
