# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a guest is asked to be and to do."""

from dataclasses import dataclass, field
from pathlib import Path

BROKEN = 125
"""Exit status of a guest that did not get as far as the command, or had to be ended."""


LEAST_TO_TELL_S = 20
"""So long at least a guest has for telling why it did not end."""


@dataclass(frozen=True)
class Seat:
    """A guest's place among several on a wire: the `number` it has, from 1, and the MTU and kind
    of its interface eth0, whose frames pass through a socket in the directory `wire`. In `meet`,
    which all share, they wait for one another. `nic_options` are QEMU's, of the interface."""

    number: int
    guests: int
    nic: str
    mtu_bytes: int
    wire: Path
    meet: Path
    nic_options: str = ""
    node: int | None = None
    """The NUMA node that the interface is at; None: at none in particular."""


@dataclass(frozen=True)
class Guest:
    """What to run, and in what machine. `shares` are directories that the guest may write to.

    `load` are modules of the kernel to load before the command runs; with `modules` those of the
    project are built and loaded after them. With `icount` the guest's clock counts the instructions
    that its only processor executes, one for each nanosecond, so that a figure in nanoseconds is
    one in instructions. `bare` keeps the host's files away, but for the command's program, `files`
    and the libraries of both: nothing then comes from outside while it runs, and with `icount` it
    runs the same way each time. With `debugger` it waits at its first instruction for one, who
    connects to that socket. With `coverage` the kernel counts which lines of the project's modules
    run, and leaves the counts in that directory. `boot` goes to the kernel's command line.
    Processors and memory are divided among `nodes` NUMA nodes.
    """

    command: list[str]
    kernel: str = ""
    cpus: int = 2
    memory_mb: int = 1024
    limit_s: float = 600
    shares: list[Path] = field(default_factory=list)
    load: list[str] = field(default_factory=list)
    modules: bool = False
    icount: bool = False
    bare: bool = False
    files: list[Path] = field(default_factory=list)
    seat: Seat | None = None
    debugger: Path | None = None
    coverage: Path | None = None
    boot: str = ""
    nodes: int = 1

    def own_limit_s(self) -> int | None:
        """After so long since its boot the guest itself tells what it does, and ends: before the
        host ends it, who could not tell. None: its clock, or its processor, may stand still."""
        if self.icount or self.debugger or self.limit_s < 2 * LEAST_TO_TELL_S:
            return None
        return int(self.limit_s - max(LEAST_TO_TELL_S, self.limit_s / 10))

    def written(self) -> list[Path]:
        """All directories of the host that the guest writes to."""
        return [*self.shares, *([self.coverage] if self.coverage else [])]
