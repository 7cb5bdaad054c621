# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of labs: `beowire lab up|exec|shell|link|set|status|graph|capture|down` and on.

What makes and changes labs (up.py, and netlink with it) is imported where it is used: entering a
node should not wait for it.
"""

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from beowire import installed
from beowire.errors import BeowireError
from beowire.lab import counters, jobs, lab, link_cli
from beowire.terminal import note, out
from beowire.topology.keys import parse_rate, parse_share

app = typer.Typer(help="Make and use virtual clusters on this machine.", no_args_is_help=True)
app.add_typer(link_cli.app, name="link")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The lab's name.")]
Json = Annotated[bool, typer.Option("--json", help="For machines.")]
Loss = Annotated[str | None, typer.Option(help="Share of frames lost: 1% or 0.01.")]
Corrupt = Annotated[str | None, typer.Option(help="Share of frames with a bit flipped.")]
Rate = Annotated[str | None, typer.Option(help="Rate towards each node: 1gbit; 0: unlimited.")]
Queue = Annotated[int | None, typer.Option(help="Room of the queue before that rate, in bytes.")]
Longest = Annotated[int | None, typer.Option(help="Drop packets longer than this; 0: none.")]
DropRaw = Annotated[bool | None, typer.Option(help="Drop what is neither IP nor ARP.")]


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


@app.command("up")
def up_(
    name: Name,
    nodes: Annotated[int | None, typer.Option(help="How many nodes, at one switch.")] = None,
    topology: Annotated[
        str | None, typer.Option(help="Instead: a topology's file, or the name of a ready one.")
    ] = None,
    mtu: Annotated[int | None, typer.Option(help="MTU of every link, in bytes.")] = None,
    offloads: Annotated[str | None, typer.Option(help="Segmentation offloads: on or off.")] = None,
    loss: Loss = None,
    corrupt: Corrupt = None,
    rate: Rate = None,
    queue_bytes: Queue = None,
    longest_bytes: Longest = None,
    drop_raw: DropRaw = None,
    served: Annotated[
        bool, typer.Option("--service", help="Run beowired on each node, for all users.")
    ] = False,
    with_slurm: Annotated[
        bool, typer.Option("--slurm", help="Run Slurm: slurmd on each node, slurmctld on one.")
    ] = False,
) -> None:
    """Make a lab: of nodes node1 to nodeN at a switch, or of a topology."""
    from beowire.lab import rootless, up
    from beowire.topology import catalogue

    changes = _shape_changes(loss, corrupt, rate, queue_bytes, longest_bytes, drop_raw)
    if (nodes is None) == (topology is None):
        raise BeowireError("What kind of lab?", "Give either --nodes N or --topology FILE.")
    if offloads not in (None, "on", "off"):
        raise BeowireError(f"--offloads {offloads}?", "Give on or off.")
    if with_slurm:
        from beowire.lab import slurm

        slurm.check_possible()
    read = None if topology is None else catalogue.find(topology)
    if read is not None:
        if changes or mtu is not None or offloads is not None:
            raise BeowireError(
                "What links do stands in the topology.",
                "Leave the other options out; "
                f"{installed.COMMAND} lab link set changes links afterwards.",
            )
        rootless.begin(sys.argv[1:])
        made = up.up_topology(name, read, served=served, with_slurm=with_slurm)
    else:
        shape = dataclasses.replace(lab.Shape(), **changes)  # type: ignore[arg-type]
        mtu_bytes = lab.MTU_DEFAULT_BYTES if mtu is None else mtu
        rootless.begin(sys.argv[1:])
        made = up.up(
            name,
            nodes or 0,
            mtu_bytes,
            offloads=offloads != "off",
            shape=shape,
            served=served,
            with_slurm=with_slurm,
        )
    if made.mode == "loopback":
        note(loopback_notice(made))
    first = made.node_names()[0]
    command = f"srun -N {made.nodes} hostname" if with_slurm else "hostname"
    out().print(
        f"Lab {name}: {made.topology.description or made.topology.name}; {first} is "
        f"{made.address(first)}, MTU {made.topology.mtu_bytes()}. "
        f"Next: {installed.COMMAND} lab exec {name} {first} -- {command}"
    )


@app.command()
def topologies() -> None:
    """List the topologies that come with Beowire."""
    from rich.table import Table

    from beowire.topology import catalogue

    table = Table("topology", "nodes", "what it is")
    for name in catalogue.names():
        read = catalogue.find(name)
        table.add_row(name, str(len(read.nodes)), read.description)
    out().print(table)
    out().print(f"They are files, to start from: {catalogue.directory()}")


@app.command()
def check(topology: Annotated[str, typer.Argument(metavar="FILE")]) -> None:
    """Check a topology without making a lab of it."""
    from beowire.topology import catalogue

    read = catalogue.find(topology)
    networks = len(read.networks())
    out().print(
        f"{read.source} is good: {len(read.nodes)} nodes, {len(read.switches)} switches, "
        f"{len(read.routers)} routers, {len(read.links)} links, {networks} "
        f"network{'s' if networks > 1 else ''}."
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
    jobs.join(made.directory)
    # A shell's words and status for what cannot be executed: 127 if it is not there, else 126.
    become = ["sh", "-c", 'exec "$@"', "beowire", *command]
    os.execv("/bin/sh", ["sh", str(made.enter_path(node)), *become])


@app.command()
def shell(name: Name, node: str) -> None:
    """Open a shell on a node."""
    made = lab.load_ready(name)
    made.check_node(node)
    jobs.join(made.directory)
    program = os.environ.get("SHELL") or "/bin/sh"
    os.execv("/bin/sh", ["sh", str(made.enter_path(node)), program])


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
    from beowire.lab import up

    up.change_shapes(name, node or (), changes)


@app.command()
def down(name: Name) -> None:
    """Remove a lab and kill what still runs on its nodes."""
    from beowire.lab import up

    up.down(name)


@app.command("status")
def status_(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]")] = None,
    as_json: Json = False,
    live: Annotated[
        bool, typer.Option("--live", help="Rates and losses of NAME's links, again and again.")
    ] = False,
) -> None:
    """Show the labs of this machine."""
    from beowire.lab import status

    if live:
        if name is None:
            raise BeowireError("Which lab?", f"Name it: {installed.COMMAND} lab status NAME --live")
        status.watch(lab.load_ready(name))
        return
    labs, unreadable = ([lab.load(name)], []) if name else _all_labs()
    for error in unreadable:
        note(str(error))
    if as_json:
        print(json.dumps([status.described(each) for each in labs], indent=1))
    elif labs:
        out().print(status.table(labs))
        for each in labs:
            for remark in status.remarks(each):
                note(remark)
    elif not unreadable:
        out().print(f"No labs. Make one: {installed.COMMAND} lab up NAME --nodes 2")
    if unreadable:
        raise typer.Exit(1)


def _all_labs() -> tuple[list[lab.Lab], list[BeowireError]]:
    """Those whose description can be read, and what is wrong with the others."""
    found, wrong = [], []
    for each in lab.names():
        try:
            found.append(lab.load(each))
        except BeowireError as error:
            wrong.append(error)
    return found, wrong


@app.command("graph")
def graph_(
    lab_or_topology: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A lab, a ready topology, or a file.")
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: stdout.")] = None,
) -> None:
    """Draw a lab or a topology as SVG."""
    from beowire import places, transcript
    from beowire.lab import graph
    from beowire.topology import catalogue

    is_path = "/" in lab_or_topology or "." in lab_or_topology
    if not is_path and lab.exists(lab_or_topology):
        made = lab.load(lab_or_topology)
        image = graph.draw(made.topology, made.addresses)
    else:
        image = graph.draw(catalogue.find(lab_or_topology))
    transcript.add_image(image)
    if output is not None:
        places.write_output(output, image)
    elif not transcript.is_open():
        print(image, end="")


@app.command("capture", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def capture_(
    name: Name,
    link: Annotated[str, typer.Argument(metavar="NODE|LINK")],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[-- TCPDUMP ARGUMENTS]")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write packets to this file.")
    ] = None,
) -> None:
    """Capture a link's frames by tcpdump, on the switch's side, until Ctrl-C."""
    from beowire.lab import capture

    capture.become(lab.load_ready(name), link, output, arguments or [])


@app.command()
def check_rates(
    name: Name,
    seconds: Annotated[float, typer.Option(help="How long each sender sends.")] = 1.0,
    as_json: Json = False,
) -> None:
    """Check that rates hold for TCP and for senders past the queueing discipline alike."""
    from beowire.lab import rates

    if not 0.1 <= seconds <= 60:
        raise BeowireError(f"--seconds {seconds}?", "Give 0.1 to 60.")
    checks = list(rates.check(lab.load_ready(name), seconds))
    if as_json:
        told = [{**dataclasses.asdict(each), "good": each.good} for each in checks]
        print(json.dumps(told, indent=1))
    else:
        out().print(rates.table(checks))
    if not all(each.good for each in checks):
        raise BeowireError(
            f"In lab {name} TCP and raw frames are not seen to get the same rate.",
            "Run it again on an idle machine; if it stays so, this machine is too slow for the "
            "rates of the topology.",
        )


@app.command("counters")
def counters_(name: Name, as_json: Json = False) -> None:
    """Show what the kernel counted on each node: bytes, frames, IP and TCP among them."""
    from rich.table import Table

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
