# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs over the kernel link alone, in a guest (alone.sh)."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.vm import machine

HERE = Path(__file__).resolve().parent
MEMORY_MAX = 64 << 20
FEW_BYTES = 1 << 20  # not half of the strangers fit into that
ARGUMENTS = {"link_strangers": "600"}
MEMORY = {"link_strangers": FEW_BYTES}


@dataclass(frozen=True)
class Call:
    """A program, known by a name, which loads the provider of a folder if it does load one."""

    name: str
    program: Path
    provider: Path

    def line(self) -> str:
        """Of the list that alone.sh reads."""
        short = self.program.name
        memory = MEMORY.get(short, MEMORY_MAX)
        return f"{self.name} {memory} {self.provider} {self.program} {ARGUMENTS.get(short, '')}"


@dataclass(frozen=True)
class Ended:
    """How a program ended (-1: it did not run), and what it said."""

    status: int
    said: str


def run(calls: list[Call], limit_s: int, guest_s: int) -> tuple[dict[str, Ended], list[str]]:
    """Each by its name, and what the guest's kernel complained of."""
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        (out / "list").write_text("".join(f"{each.line()}\n" for each in calls))
        command = [str(HERE / "alone.sh"), name, str(limit_s), f"{name}/list"]
        outcome = machine.run(
            machine.Guest(command, memory_mb=2048, limit_s=guest_s, shares=[out], modules=True)
        )
        ended = {}
        for each in calls:
            status, said = (out / f"{each.name}.{kind}" for kind in ("status", "out"))
            ended[each.name] = Ended(
                int(status.read_text()) if status.exists() else -1,
                said.read_text(errors="replace") if said.exists() else outcome.console[-4000:],
            )
        return ended, outcome.complaints
