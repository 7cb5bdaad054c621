# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Several guests on one wire, which run the same command at the same time."""

import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from beowire.errors import BeowireError
from beowire.vm import machine
from beowire.vm.guest import Guest, Seat
from beowire.vm.wire import Counts, Faults, Wire


@dataclass(frozen=True)
class Network:
    """How guests are joined."""

    guests: int
    nic: str = "virtio-net-pci"
    mtu_bytes: int = 1500
    faults: Faults = field(default_factory=Faults)
    nic_options: str = ""
    """As QEMU's -device takes them: "tx=timer,x-txtimer=1000000"."""
    nic_node: int | None = None
    """The NUMA node of their interface; None: none in particular."""


@dataclass(frozen=True)
class Outcomes:
    """How each guest ended, and what the wire did."""

    guests: list[machine.Outcome]
    wire: Counts


def run(guest: Guest, network: Network, output: int | None = None) -> Outcomes:
    """Runs as many such guests. Lines of their output are told apart by a number in front."""
    if guest.icount or guest.bare:
        raise BeowireError(
            "A guest on a wire waits for others: its instructions tell nothing, and it has files.",
            "Leave out --icount and --bare.",
        )
    with ExitStack() as ends:
        work = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="beowire-wire-")))
        meet = work / "meet"
        meet.mkdir()
        seated = []
        for number in range(1, network.guests + 1):
            seat = Seat(
                number,
                network.guests,
                network.nic,
                network.mtu_bytes,
                work,
                meet,
                network.nic_options,
                network.nic_node,
            )
            seated.append(replace(guest, seat=seat, shares=[*guest.shares, meet]))
        wire = ends.enter_context(Wire(work, network.guests, network.faults))
        target = sys.stdout.fileno() if output is None else output
        lock = threading.Lock()
        outputs = [
            ends.enter_context(_marked(each.seat.number, target, lock))
            for each in seated
            if each.seat
        ]
        return Outcomes(machine.run_all(seated, outputs), wire.counts)


@contextmanager
def _marked(number: int, target: int, lock: threading.Lock) -> Iterator[int]:
    """A descriptor whose lines go on to `target` with the guest's number in front."""
    reading, writing = os.pipe()

    def pass_on() -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                whole = line if line.endswith(b"\n") else line + b"\n"
                with lock:
                    os.write(target, f"{number}: ".encode() + whole)

    thread = threading.Thread(target=pass_on)
    thread.start()
    try:
        yield writing
    finally:
        os.close(writing)
        thread.join()
