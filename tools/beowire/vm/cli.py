# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire vm`."""

import tempfile
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm import coverage, machine, nodes, several
from beowire.vm.wire import Faults


class Nic(StrEnum):
    """The kinds of network interface that QEMU emulates for guests."""

    VIRTIO = "virtio-net-pci"
    E1000E = "e1000e"
    VMXNET3 = "vmxnet3"


def _share_of(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        min=0, max=1, help=f"Share of frames that are {what}."
    )
    return option


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- CMD ARGS...")],
    kernel: Annotated[
        str, typer.Option(help="Release of the kernel, such as 6.1.0-30-amd64; default: stock.")
    ] = "",
    cpus: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=64,
            help="Processors of the guest; default: 2, with --icount 1, and one for a NUMA node.",
        ),
    ] = None,
    memory: Annotated[int, typer.Option(min=256, help="Memory of the guest, MiB.")] = 1024,
    numa: Annotated[
        int, typer.Option(min=1, max=nodes.MOST, help="NUMA nodes that have equal parts of both.")
    ] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Longest run, seconds.")] = 600,
    share: Annotated[
        list[Path] | None, typer.Option(help="Directory that the guest may write to.")
    ] = None,
    modules: Annotated[
        bool, typer.Option("--modules", help="Build Beowire's kernel modules and load them.")
    ] = False,
    icount: Annotated[
        bool, typer.Option("--icount", help="Each instruction takes a nanosecond: for counting.")
    ] = False,
    load: Annotated[
        list[str] | None, typer.Option(help="Module of the kernel to load before the command.")
    ] = None,
    boot: Annotated[
        str, typer.Option(help="More for the kernel's command line: 'isolcpus=1 quiet'.")
    ] = "",
    bare: Annotated[
        bool, typer.Option("--bare", help="No files of the host but the command's and --file.")
    ] = False,
    file: Annotated[
        list[Path] | None, typer.Option(help="A file that a bare guest sees, with its libraries.")
    ] = None,
    coverage: Annotated[
        bool,
        typer.Option("--coverage", help="Tell which lines of --modules ran; with --kernel debug."),
    ] = False,
    guests: Annotated[
        int, typer.Option(min=1, max=16, help="So many guests on one wire run the command.")
    ] = 1,
    nic: Annotated[Nic, typer.Option(help="Their network interface.")] = Nic.VIRTIO,
    nic_node: Annotated[
        int | None, typer.Option(min=0, help="The NUMA node it is at; also of a single guest.")
    ] = None,
    mtu: Annotated[int, typer.Option(min=68, max=9000, help="Its MTU, bytes.")] = 1500,
    wire_loss: Annotated[float, _share_of("lost")] = 0,
    wire_corrupt: Annotated[float, _share_of("changed in one bit")] = 0,
    wire_duplicate: Annotated[float, _share_of("doubled")] = 0,
    wire_delay: Annotated[float, typer.Option(min=0, help="Delay of a frame, ms.")] = 0,
    wire_jitter: Annotated[float, typer.Option(min=0, help="Up to this more, ms.")] = 0,
    wire_seed: Annotated[int, typer.Option(help="Other faults for another number.")] = 1,
    console: Annotated[
        Path | None,
        typer.Option(help="Write the guest kernel's messages to this file; several: FILE.1 ..."),
    ] = None,
) -> None:
    """Run a command under a stock kernel: vm -- CMD ARGS. Files are the host's, read-only."""
    for directory in share or []:
        if not directory.is_dir():
            raise BeowireError(f"{directory} is no directory.", "Name an existing one by --share.")
    if console is not None:
        places.check_output(console)
    guest = machine.Guest(
        command=command,
        kernel=kernel,
        cpus=cpus or (1 if icount else max(2, numa)),
        memory_mb=memory,
        limit_s=timeout,
        shares=[directory.resolve() for directory in share or []],
        modules=modules,
        boot=boot,
        icount=icount,
        load=load or [],
        bare=bare,
        files=file or [],
        nodes=numa,
    )
    if coverage and (guests > 1 or not modules):
        raise BeowireError("--coverage tells of one guest with --modules.", "Give these options.")
    if coverage:
        raise typer.Exit(_with_coverage(guest, console))
    if guests == 1 and nic_node is None:
        raise typer.Exit(_told(machine.run(guest), "the guest", console))
    ns = 1_000_000
    faults = Faults(
        wire_loss,
        wire_corrupt,
        wire_duplicate,
        int(wire_delay * ns),
        int(wire_jitter * ns),
        wire_seed,
    )
    network = several.Network(guests, nic.value, mtu, faults, nic_node=nic_node)
    outcomes = several.run(guest, network)
    note(f"frames on the wire: {outcomes.wire}")
    statuses = [
        _told(outcome, f"guest {number}", console and Path(f"{console}.{number}"))
        for number, outcome in enumerate(outcomes.guests, 1)
    ]
    raise typer.Exit(max(statuses))


def _with_coverage(guest: machine.Guest, console: Path | None) -> int:
    with tempfile.TemporaryDirectory(prefix="beowire-coverage-") as name:
        status = _told(machine.run(replace(guest, coverage=Path(name))), "the guest", console)
        if status == machine.BROKEN:
            return status
        for line in coverage.table(coverage.read(Path(name))):
            print(line)
        return status


def _told(outcome: machine.Outcome, who: str, console: Path | None) -> int:
    """Tells how a guest ended; the exit status for that."""
    if console is not None:
        places.write_output(console, outcome.console)
    for line in outcome.complaints:
        note(f"{who}'s kernel: {line}")
    if outcome.console and (outcome.complaints or outcome.exit_status == machine.BROKEN):
        note(f"the end of the messages of {who}:\n" + "\n".join(outcome.console.splitlines()[-40:]))
    return outcome.exit_status or (1 if outcome.complaints else 0)
