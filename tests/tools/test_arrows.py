# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which room of the C sources, and which package of the tools, may use which: what they share uses
none of them, and no arrow is new without being written down here."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import beowire

ROOT = Path(__file__).resolve().parents[2]
C_USES: dict[str, set[str]] = {
    "engine": set(),
    "common": {"engine"},
    "emulator": {"common"},
    "service": {"engine", "common"},
    "hosts/sim": {"engine", "common"},
    "hosts/user": {"engine", "common"},
    "hosts/kernel": {"engine", "common"},
    "adapters/libfabric": {"common", "hosts/user"},
    "adapters/replicate": set(),
    "adapters/sockets": {"common", "hosts/user"},
    "programs": {"engine", "common", "hosts/user"},
}
PACKAGE = Path(beowire.__file__).parent
SHARED = "what all share"
USES = {
    SHARED: set(),
    "topology": set(),
    "vm": set(),
    "selftest": set(),
    "lab": {"topology"},
    "placement": set(),
    "run": {"lab", "placement"},
    "sockets": {"lab"},
    "replicate": set(),
    # `bench wan` is a command of both
    "bench": {"topology", "lab", "run", "replicate", "sockets", "vm", "wan"},
    "wan": {"topology", "lab", "run", "bench"},
    "model": {"topology", "lab", "run", "bench"},
    "demo": {"lab", "run", "bench"},
    "evidence": {"topology", "lab", "run", "bench", "replicate", "model", "wan", "doctor", "vm"},
    "report": {"bench", "evidence"},
    "doctor": {"lab", "run", "bench"},
    "status": {"run"},
    "bug": set(),
    "package": set(),
    "completion": {"lab"},
    "env": set(),
    "documents": set(),
    "info": {"run"},
}
COMMAND = PACKAGE / "cli.py"
"""Loads the packages' commands, and enters the namespaces of labs before."""


def imported(text: str) -> Iterator[str]:
    """The packages of the tools that a source names, wherever in it."""
    for node in ast.walk(ast.parse(text)):
        named = []
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{each.name}" for each in node.names]
        elif isinstance(node, ast.Import):
            named = [each.name for each in node.names]
        for name in named:
            whole, _, rest = name.partition(".")
            if whole == "beowire" and (room := rest.partition(".")[0]) in USES:
                yield room


def room_of(file: Path) -> str:
    inside = file.relative_to(PACKAGE).parts
    return inside[0] if len(inside) > 1 else SHARED


def test_each_package_uses_only_those_it_may() -> None:
    sources = [file for file in PACKAGE.rglob("*.py") if file != COMMAND]
    assert {room_of(file) for file in sources} == set(USES)
    used: dict[str, set[str]] = {room: set() for room in USES}
    for file in sources:
        room = room_of(file)
        used[room] |= set(imported(file.read_text())) - {room}
    assert used == USES
    assert set(imported(COMMAND.read_text())) == {"lab"}


def test_imports_of_every_kind_are_seen() -> None:
    text = "import beowire.vm.wire\ndef f():\n    from beowire import lab, places\n"
    text += "    from beowire.run.mpi import find\n"
    assert set(imported(text)) == {"vm", "lab", "run"}


def users_of_rooms() -> Iterator[tuple[str, str]]:
    """Each room of the C sources that includes a header, and the room that has it."""
    for room in C_USES:
        for file in (ROOT / room).rglob("*.[ch]"):
            for header in re.findall(r'^#include "(.+)"', file.read_text(), flags=re.MULTILINE):
                places = [file.parent, *(ROOT / each for each in (room, *C_USES, ""))]
                found = next(
                    (place / header for place in places if (place / header).exists()), None
                )
                assert found is not None, f"{file}: {header}"
                inside = found.resolve().relative_to(ROOT)
                yield room, next(each for each in C_USES if inside.is_relative_to(each))


def test_each_room_uses_only_those_it_may() -> None:
    used: dict[str, set[str]] = {room: set() for room in C_USES}
    for room, other in users_of_rooms():
        used[room] |= {other} - {room}
    assert used == C_USES
