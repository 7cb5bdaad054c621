# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The wire format as the C compiler sees it: structures, members, constants of engine/wire.h.

The header's text gives the names, a small program compiled against it gives offsets, sizes and
values. Dissector and documentation are compared with this, never with a copy of the header.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIRE_H = ROOT / "engine" / "wire.h"

_FORMATS = {
    "uint8_t": "B",
    "uint16_t": "H",
    "uint32_t": "I",
    "uint64_t": "Q",
    "int32_t": "i",
}


@dataclass(frozen=True)
class Member:
    """One member of a structure: an integer, or bytes (`count` of them) when it is an array."""

    name: str
    format: str
    count: int
    offset: int
    size: int


@dataclass(frozen=True)
class Structure:
    """One structure of the wire, without its `bw_`; `size` counts everything it embeds."""

    name: str
    size: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Layout:
    structures: dict[str, Structure]
    constants: dict[str, int]
    """Every numeric #define and enumerator, with its BW_."""


def _without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)


def _declarations(text: str) -> dict[str, list[tuple[str, str, bool]]]:
    """Structure -> (type, member, whether it is an array); an embedded structure is a type too."""
    found: dict[str, list[tuple[str, str, bool]]] = {}
    for name, body in re.findall(r"struct bw_(\w+) \{(.*?)\};", text, flags=re.DOTALL):
        members = []
        for line in filter(None, (part.strip() for part in body.split(";"))):
            match = re.fullmatch(r"(?:struct )?(\w+)\s+(\w+)(\[\w+\])?", line)
            if match is None:
                raise ValueError(f"struct bw_{name}: cannot read {line!r}")
            members.append((match[1], match[2], match[3] is not None))
        found[name] = members
    return found


def _constants(text: str) -> list[str]:
    names = re.findall(r"^#define (BW_\w+)[ \t]+\S", text, flags=re.MULTILINE)
    for body in re.findall(r"enum \w+ \{(.*?)\}", text, flags=re.DOTALL):
        names += re.findall(r"\b(BW_\w+)\b", body)
    return names


def _program(structures: dict[str, list[tuple[str, str, bool]]], constants: list[str]) -> str:
    lines = ['#include "wire.h"', "#include <stdio.h>", "int main(void)", "{"]
    for name, members in structures.items():
        lines.append(f'printf("size {name} %zu\\n", sizeof(struct bw_{name}));')
        for _, member, _ in members:
            place = f"offsetof(struct bw_{name}, {member})"
            size = f"sizeof(((struct bw_{name} *)0)->{member})"
            lines.append(f'printf("member {name}.{member} %zu %zu\\n", {place}, {size});')
    lines += [f'printf("constant {name} %lld\\n", (long long){name});' for name in constants]
    return "\n".join([*lines, "return 0;", "}"])


def _run(program: str) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        binary = Path(directory) / "layout"
        subprocess.run(
            ["cc", "-std=gnu11", "-x", "c", "-I", str(WIRE_H.parent), "-o", str(binary), "-"],
            input=program,
            text=True,
            check=True,
        )
        output = subprocess.run([binary], text=True, check=True, stdout=subprocess.PIPE).stdout
    return [line.split() for line in output.splitlines()]


@cache
def wire_layout() -> Layout:
    text = _without_comments(WIRE_H.read_text())
    declared = _declarations(text)
    sizes: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    constants: dict[str, int] = {}
    for row in _run(_program(declared, _constants(text))):
        match row:
            case ["size", name, bytes_]:
                sizes[name] = int(bytes_)
            case ["member", name, at, bytes_]:
                places[name] = (int(at), int(bytes_))
            case ["constant", name, value]:
                constants[name] = int(value)
    structures = {}
    for name, members in declared.items():
        rows = []
        for kind, member, array in members:
            if kind in _FORMATS:
                offset, size = places[f"{name}.{member}"]
                rows.append(Member(member, _FORMATS[kind], size if array else 0, offset, size))
        structures[name] = Structure(name, sizes[name], tuple(rows))
    return Layout(structures, constants)
