# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tshark with the project's dissector: capture files in, decoded fields out.

PDML is read, since it states for every field where its bytes lie in the frame.
"""

import os
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wire_layout import ROOT

VARIABLE = "BEOWIRE_TEST_DISSECTOR"
"""Names the directory of another dissector than the project's: one with a defect."""
ROOM = Path(os.environ.get(VARIABLE) or ROOT / "tools" / "wireshark")
DISSECTOR = ROOM / "beowire.lua"


@dataclass(frozen=True)
class Shown:
    """One decoded field: `at` counts from the start of the captured frame."""

    name: str
    at: int
    size: int
    show: str
    raw: str
    label: str
    """The line that a person reads."""

    def number(self) -> int:
        return int(self.show, 0)


@dataclass(frozen=True)
class Packet:
    protocols: tuple[str, ...]
    fields: tuple[Shown, ...]
    """Beowire's fields only, without its prefix, in the order of the display."""
    problems: frozenset[str]
    """Names of expert items, without prefix."""

    def values(self, name: str) -> list[Shown]:
        return [item for item in self.fields if item.name == name]

    def value(self, name: str) -> Shown:
        (only,) = self.values(name)
        return only


def _tshark(arguments: list[str]) -> str:
    command = ["tshark", "-X", f"lua_script:{DISSECTOR}", *arguments]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"LC_ALL": "C.UTF-8"},
    )
    if "Lua" in done.stderr:
        raise RuntimeError(done.stderr)
    return done.stdout


def _packet(element: ElementTree.Element) -> Packet:
    fields = []
    problems = set()
    for item in element.iter("field"):
        name = item.get("name", "")
        if not name.startswith("beowire."):
            continue
        short = name.removeprefix("beowire.")
        if item.get("size") == "0" and not item.get("value"):
            problems.add(short)
            continue
        fields.append(
            Shown(
                short,
                int(item.get("pos", "0")),
                int(item.get("size", "0")),
                item.get("show", ""),
                item.get("unmaskedvalue", item.get("value", "")),
                item.get("showname", ""),
            )
        )
    protocols = tuple(item.get("name", "") for item in element.iter("proto"))
    return Packet(protocols, tuple(fields), frozenset(problems))


def decode(capture: Path, *options: str) -> list[Packet]:
    """Every packet of the file, as tshark decodes it with these options."""
    text = _tshark(["-r", str(capture), "-T", "pdml", *options])
    if "Lua Error" in text:
        raise RuntimeError(text[text.index("Lua Error") :][:400])
    return [_packet(element) for element in ElementTree.fromstring(text).iter("packet")]


def columns(capture: Path, fields: list[str], *options: str) -> Iterator[list[list[str]]]:
    """For each packet the values of each of these fields, as text; faster than decode()."""
    wanted = [word for name in fields for word in ("-e", name)]
    text = _tshark(["-r", str(capture), "-T", "fields", *wanted, *options])
    for line in text.splitlines():
        yield [cell.split(",") if cell else [] for cell in line.split("\t")]


def summaries(capture: Path, *options: str) -> list[str]:
    """The one-line summaries."""
    columns = ["-T", "fields", "-e", "_ws.col.Protocol", "-e", "_ws.col.Info"]
    return _tshark(["-r", str(capture), *columns, *options]).splitlines()
