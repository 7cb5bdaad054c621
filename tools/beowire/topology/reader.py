# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads a topology from a TOML file: which keys there are, what they may hold, and on which line
something else stands. What the keys say together is put together in build.py and checked
in check.py. The format is described in docs/lab.md.
"""

import difflib
import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire import installed
from beowire.errors import BeowireError
from beowire.topology import build, toml_lines
from beowire.topology.check import Problem, check, failure
from beowire.topology.keys import KEYS
from beowire.topology.toml_lines import Path as Way
from beowire.topology.topology import MTU_MAX_BYTES, MTU_MIN_BYTES, NODES_MAX, Topology

Reader = Callable[[Any], Any]
"""Turns a value of the document into what the topology holds; raises ValueError or BeowireError."""

_CPUS_MAX = 1024


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no text: put it into quotes")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= NODES_MAX:
        raise ValueError(f"{value!r} is no number of devices: 1 to {NODES_MAX}")
    return value


def _mtu(value: Any) -> int:
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not MTU_MIN_BYTES <= value <= MTU_MAX_BYTES
    ):
        raise ValueError(
            f"{value!r} is no MTU that the devices take: {MTU_MIN_BYTES} to {MTU_MAX_BYTES} bytes"
        )
    return value


def _cpus(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(f"{value!r} is no number of processors: write 0.25 or 2")
    if not 0.01 <= value <= _CPUS_MAX:
        raise ValueError(f"{value!r} is no share of processors: 0.01 to {_CPUS_MAX}")
    return float(value)


def _seed(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
        raise ValueError(f"{value!r} is no seed: 0 to {(1 << 32) - 1}")
    return value


def _cpu_list(value: Any) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value):
        raise ValueError(f'{value!r} is no list of processors: write "2", "2,3" or "4-7"')
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{value!r} is neither true nor false")
    return value


def _one_of(*words: str) -> Reader:
    def read(value: Any) -> str:
        if value not in words:
            raise ValueError(f"{value!r} is none of {', '.join(words)}")
        return str(value)

    return read


def _setting(key: str) -> Reader:
    """A value of the model, written as on the command line, or as a plain number."""

    def read(value: Any) -> Any:
        if isinstance(value, bool):
            value = "on" if value else "off"
        if not isinstance(value, str | int | float):
            raise ValueError(f"{value!r} is no value for {key}")
        result = KEYS[key].parse(str(value))
        if key == "rate" and not result:
            raise ValueError("a rate of 0 lets nothing pass: leave the key out for no limit")
        return result

    return read


_MODEL: dict[str, Reader] = {key: _setting(key) for key in KEYS if key != "mtu"}
_LINK: dict[str, Reader] = {
    **_MODEL,
    "mtu": _mtu,
    "offloads": _flag,
    "emulator": _one_of("auto", "kernel", "beowire-link", "netem"),
}
_INTERFACE: dict[str, Reader] = {"address": _text, "mtu": _mtu}
_HOST: dict[str, Reader] = {"name": _text, "mtu": _mtu}
_NODE: dict[str, Reader] = {
    **_HOST,
    "count": _count,
    "cpus": _cpus,
    "nic": _one_of(*build.NIC_COALESCE_NS),
}


_TOP: dict[str, Reader] = {
    "description": _text,
    "seed": _seed,
    "realtime": _flag,
    "emulator-cpus": _cpu_list,
}
_SWITCH: dict[str, Reader] = {"name": _text, "mtu": _mtu}
TABLES = {
    "": _TOP,
    "nodes": _NODE,
    "routers": _HOST,
    "switches": _SWITCH,
    "links": _LINK,
    "interfaces": _INTERFACE,
}
"""The keys that the tables of a file may have."""


@dataclass
class _Document:
    """The file while it is read: problems are collected, so that all are told at once."""

    values: dict[str, Any]
    lines: dict[Way, int]
    problems: list[Problem] = field(default_factory=list)

    def line(self, way: Way) -> int:
        while way and way not in self.lines:
            way = way[:-1]
        return self.lines.get(way, 1)

    def complain(self, way: Way, text: str) -> None:
        self.problems.append(Problem(self.line(way), text))

    def table(self, value: Any, way: Way, readers: dict[str, Reader], *others: str) -> build.Table:
        """The values of a table, each read by the reader of its key; `others` are keys that the
        caller reads itself."""
        table = build.Table(self.line(way))
        if not isinstance(value, dict):
            self.complain(way, f"{_name(way)} is no table")
            return table
        for key, told in value.items():
            here = (*way, key)
            if key in others:
                continue
            if key not in readers:
                self.complain(here, _unknown(key, [*readers, *others], way))
                continue
            try:
                table.values[key] = readers[key](told)
                table.lines[key] = self.line(here)
            except BeowireError as error:
                self.complain(here, f"{key}: {error.what} {error.fix}")
            except ValueError as error:
                self.complain(here, f"{key}: {error}.")
        return table

    def tables(self, key: str) -> list[tuple[Way, Any]]:
        """The elements of an array of tables at the top, with the way to each."""
        told = self.values.get(key, [])
        if not isinstance(told, list):
            self.complain((key,), f"{key} is no array of tables: write [[{key}]].")
            return []
        return [((key, number), value) for number, value in enumerate(told)]

    def require(self, table: build.Table, way: Way, *keys: str) -> None:
        for key in keys:
            if key not in table.values and (*way, key) not in self.lines:
                self.complain(way, f"[[{way[0]}]] without {key}.")


def _name(way: Way) -> str:
    return ".".join(str(each) for each in way if isinstance(each, str)) or "the document"


def _unknown(key: str, known: list[str], way: Way) -> str:
    near = difflib.get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}."
    place = f" of {_name(way)}" if way else ""
    return f"unknown key {key}{place}: {hint}"


def read(path: Path) -> Topology:
    """The topology in this file, checked; everything wrong with it is told in one error."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BeowireError(
            f"{path} cannot be read: {why}.",
            f"Name a topology's file, or one of {installed.COMMAND} lab topologies.",
        ) from error
    return parse(text, path.stem, str(path))


def parse(text: str, name: str, source: str) -> Topology:
    """The topology in this text; `source` stands before the line number in errors."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BeowireError(f"{source} is no TOML: {error}.", "See https://toml.io.") from error
    document = _Document(values, toml_lines.lines(text))
    statements = _statements(document)
    if document.problems:
        raise failure(source, document.problems)
    topology = build.build(statements, name, source)
    check(topology)
    return topology


def _statements(document: _Document) -> build.Statements:
    arrays = ("nodes", "switches", "routers", "links")
    top = document.table(document.values, (), _TOP, "defaults", *arrays)
    told = build.Statements(
        description=top.values.get("description", ""),
        seed=top.values.get("seed", 1),
        realtime=top.values.get("realtime", False),
        emulator_cpus=top.values.get("emulator-cpus", ""),
        defaults=document.table(document.values.get("defaults", {}), ("defaults",), _LINK),
    )
    for way, value in document.tables("nodes"):
        told.nodes.append(_host(document, way, value, _NODE))
    for way, value in document.tables("routers"):
        told.routers.append(_host(document, way, value, _HOST))
    for way, value in document.tables("switches"):
        table = document.table(value, way, _SWITCH)
        document.require(table, way, "name")
        told.switches.append(table)
    for way, value in document.tables("links"):
        told.links.append(_link(document, way, value))
    return told


def _host(document: _Document, way: Way, value: Any, readers: dict[str, Reader]) -> build.Table:
    table = document.table(value, way, readers, "interfaces")
    document.require(table, way, "name")
    interfaces = value.get("interfaces", {}) if isinstance(value, dict) else {}
    if not isinstance(interfaces, dict):
        document.complain((*way, "interfaces"), "interfaces is no table.")
        return table
    for name, told in interfaces.items():
        here = (*way, "interfaces", name)
        table.tables[name] = document.table(told, here, _INTERFACE)
    return table


def _link(document: _Document, way: Way, value: Any) -> build.Table:
    ends: dict[str, Reader] = {"name": _text, "a": _text, "b": _text}
    table = document.table(value, way, {**ends, **_LINK}, "ab", "ba")
    document.require(table, way, "a", "b")
    for direction in ("ab", "ba"):
        if isinstance(value, dict) and direction in value:
            here = (*way, direction)
            model = {**_MODEL, "mtu": _mtu}
            table.tables[direction] = document.table(value[direction], here, model)
    return table
