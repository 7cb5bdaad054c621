# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Puts a topology together from the statements of its file: sets of names are spelled out, links
get their interfaces, names and models, interfaces their MTU.
"""

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException

from beowire.topology.check import Problem, failure
from beowire.topology.keys import KEYS
from beowire.topology.topology import (
    DIRECTIONS,
    MTU_DEFAULT_BYTES,
    Direction,
    End,
    Host,
    Interface,
    Link,
    Model,
    Switch,
    Topology,
)

NIC_COALESCE_NS = {"latency": 0, "throughput": 125_000}
"""How long a NIC gathers frames before it interrupts. 8000 interrupts a second is the usual fixed
setting for throughput (InterruptThrottleRate in the kernel's documentation of the Intel drivers,
networking/device_drivers/ethernet/intel/e1000.rst)."""

_DEVICE_NAME = re.compile(r"[a-z]([a-z0-9-]{0,13}[a-z0-9])?")
_INTERFACE_NAME = re.compile(r"[a-z][a-z0-9]{0,14}")
LINK_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,11}[a-z0-9])?")
"""Interfaces of the switch carry it, with two characters behind it, and have at most 15."""


@dataclass
class Table:
    """A table of the file: values read and the line of each, and the tables inside."""

    line: int
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    tables: dict[str, "Table"] = field(default_factory=dict)

    def line_of(self, key: str) -> int:
        return self.lines.get(key, self.line)


@dataclass
class Statements:
    """A file's content, key by key in order."""

    description: str
    defaults: Table
    seed: int = 1
    realtime: bool = False
    emulator_cpus: str = ""
    nodes: list[Table] = field(default_factory=list)
    routers: list[Table] = field(default_factory=list)
    switches: list[Table] = field(default_factory=list)
    links: list[Table] = field(default_factory=list)


@dataclass
class _Device:
    """A device under construction."""

    kind: str
    name: str
    table: Table
    mtu_bytes: int = 0
    """Of a switch: the longest packet that passes; else of the interfaces. 0: nothing said."""
    interfaces: dict[str, Interface] = field(default_factory=dict)


def build(told: Statements, name: str, source: str) -> Topology:
    """The topology that the statements describe. It may still be impossible as a whole."""
    return _Builder(told, source).build(name)


class _Builder:
    def __init__(self, told: Statements, source: str) -> None:
        self._told = told
        self._source = source
        self._problems: list[Problem] = []
        self._devices: dict[str, _Device] = {}
        self._links: dict[str, Link] = {}
        self._tables: dict[str, Table] = {}
        """The statement of each link, by the link's name."""

    def build(self, name: str) -> Topology:
        for table in self._told.nodes:
            self._add("node", table)
        for table in self._told.switches:
            self._add("switch", table)
        for table in self._told.routers:
            self._add("router", table)
        self._stop_at_problems()
        for table in self._told.links:
            self._connect(table)
        self._check_interfaces()
        self._stop_at_problems()
        links = tuple(self._respect_mtu(link) for link in self._links.values())
        return Topology(
            name,
            self._told.description,
            nodes=self._hosts("node"),
            routers=self._hosts("router"),
            switches=tuple(
                Switch(each.name, each.table.line)
                for each in self._devices.values()
                if each.kind == "switch"
            ),
            links=links,
            seed=self._told.seed,
            realtime=self._told.realtime,
            emulator_cpus=self._told.emulator_cpus,
            source=self._source,
        )

    def _complain(self, line: int, text: str) -> None:
        self._problems.append(Problem(line, text))

    def _stop_at_problems(self) -> None:
        if self._problems:
            raise failure(self._source, self._problems)

    def _add(self, kind: str, table: Table) -> None:
        base = table.values["name"]
        count = table.values.get("count")
        names = [f"{base}{number}" for number in range(1, count + 1)] if count else [base]
        for name in names:
            if not _DEVICE_NAME.fullmatch(name):
                self._complain(
                    table.line_of("name"),
                    f"{name!r} is no name: use a small letter, then up to 14 small letters, "
                    "digits and hyphens, with no hyphen at the end.",
                )
            elif name == "wires":
                self._complain(table.line_of("name"), "the name wires is the lab's own.")
            elif name in self._devices:
                other = self._devices[name]
                self._complain(
                    table.line_of("name"),
                    f"there is a {other.kind} {name} already, on line {other.table.line}.",
                )
            else:
                mtu_bytes = table.values.get("mtu", 0)
                self._devices[name] = _Device(kind, name, table, mtu_bytes)

    def _connect(self, table: Table) -> None:
        """One statement of links: as many as the set at one of its ends has members."""
        ends = {key: self._expand(table, key) for key in ("a", "b")}
        if not ends["a"] or not ends["b"]:
            return
        if min(len(ends["a"]), len(ends["b"])) > 1:
            self._complain(
                table.line, "both ends of a link are sets: only one of them may be, the links meet "
                "at the other.",
            )  # fmt: skip
            return
        several = len(ends["a"]) * len(ends["b"]) > 1
        if several and "name" in table.values:
            self._complain(
                table.line_of("name"), "one name for several links: leave it out, they get the "
                "names of their nodes.",
            )  # fmt: skip
            return
        for a in ends["a"]:
            for b in ends["b"]:
                self._add_link(table, a, b)

    def _expand(self, table: Table, key: str) -> list[End]:
        """The ends that node[1-16] or node1.eth1 stands for."""
        text = table.values[key]
        line = table.line_of(key)
        try:
            words = [str(each) for each in NodeSet(text)]
        except NodeSetException as error:
            self._complain(line, f"{key}: {text!r} cannot be read: {error}.")
            return []
        ends = []
        for word in words:
            device, _, interface = word.partition(".")
            if device not in self._devices:
                self._complain(line, f"{key}: there is no device {device}{self._meant(device)}.")
                return []
            if interface and self._devices[device].kind == "switch":
                self._complain(line, f"{key}: {device} is a switch, its ports have no names.")
                return []
            if interface and not _INTERFACE_NAME.fullmatch(interface):
                self._complain(line, f"{key}: {interface!r} is no name of an interface.")
                return []
            ends.append(End(device, interface))
        return ends

    def _meant(self, name: str) -> str:
        counts = [
            table.values["count"]
            for table in self._told.nodes
            if table.values["name"] == name and "count" in table.values
        ]
        return f"; its nodes are {name}[1-{counts[0]}]" if counts else ""

    def _add_link(self, table: Table, a: End, b: End) -> None:
        if a.device == b.device:
            self._complain(table.line, f"a link from {a.device} to itself.")
            return
        a, b = self._plug(table, a), self._plug(table, b)
        name = table.values.get("name") or self._link_name(a, b)
        if not LINK_NAME.fullmatch(name):
            self._complain(
                table.line_of("name"),
                f"{name!r} is no name for a link: give one of at most 13 small letters, digits, "
                "hyphens and points.",
            )
        elif name in self._links:
            self._complain(
                table.line_of("name"),
                f"there is a link {name} already, on line {self._links[name].line}.",
            )
        else:
            self._tables[name] = table
            self._links[name] = Link(
                name,
                a,
                b,
                ab=self._model(table, "ab", b),
                ba=self._model(table, "ba", a),
                offloads=self._value(table, "offloads", None) is not False,
                emulator=self._value(table, "emulator", "auto"),
                line=table.line,
            )

    def _link_name(self, a: End, b: End) -> str:
        """A link is called like the first interface that only it has: node1, or node1.eth1 beyond
        the first interface of a node."""
        end = a if a.interface else b
        if not end.interface:
            return f"{a.device}.{b.device}"
        return end.device if end.interface == "eth0" else str(end)

    def _plug(self, table: Table, end: End) -> End:
        """The end with its interface, which is made."""
        device = self._devices[end.device]
        if device.kind == "switch":
            return end
        name = end.interface
        if not name:
            number = 0
            while f"eth{number}" in device.interfaces:
                number += 1
            name = f"eth{number}"
        if name in device.interfaces:
            self._complain(table.line, f"{device.name}.{name} has a link already.")
        given = device.table.tables.get(name, Table(0)).values
        if device.table.values.get("count") and "address" in given:
            line = device.table.tables[name].line_of("address")
            self._complain(line, f"{device.name}: one address for several nodes.")
        mtu_bytes = given.get("mtu") or device.mtu_bytes or self._value(table, "mtu", 0)
        device.interfaces[name] = Interface(
            name, mtu_bytes or MTU_DEFAULT_BYTES, given.get("address", "")
        )
        return End(device.name, name)

    def _value(self, table: Table, key: str, otherwise: Any) -> Any:
        if key in table.values:
            return table.values[key]
        return self._told.defaults.values.get(key, otherwise)

    def _model(self, table: Table, direction: Direction, to: End) -> Model:
        """What a direction does: what its own table says, else the link's, else the defaults."""
        own = table.tables.get(direction, Table(0)).values
        values = {}
        for key in KEYS:
            value = own.get(key, self._value(table, key, None) if key != "mtu" else None)
            if value is not None:
                values[KEYS[key].field] = value
        if KEYS["coalesce"].field not in values:
            nic = self._devices[to.device].table.values.get("nic", "latency")
            values[KEYS["coalesce"].field] = NIC_COALESCE_NS[nic]
        return Model(**values)

    def _respect_mtu(self, link: Link) -> Link:
        """A link or switch with a smaller MTU than a sender's interface drops what is longer."""
        table = self._tables[link.name]
        limits = [self._value(table, "mtu", 0)]
        limits += [
            self._devices[end.device].mtu_bytes
            for end in link.ends
            if self._devices[end.device].kind == "switch"
        ]
        limit = min((each for each in limits if each), default=0)
        devices = [self._devices[end.device] for end in link.ends]
        if any(device.kind == "switch" for device in devices):  # anybody's frames may come there
            devices = list(self._devices.values())
        longest = max(each.mtu_bytes for device in devices for each in device.interfaces.values())
        if not limit or longest <= limit:
            return link
        models = {
            direction: replace(link.model(direction), mtu_bytes=limit)
            for direction in DIRECTIONS
            if not link.model(direction).mtu_bytes
        }
        return link.with_models(models)

    def _hosts(self, kind: str) -> tuple[Host, ...]:
        return tuple(
            Host(
                each.name,
                tuple(sorted(each.interfaces.values(), key=_interface_order)),
                each.table.values.get("cpus", 0.0),
                each.table.line,
            )
            for each in self._devices.values()
            if each.kind == kind
        )

    def _check_interfaces(self) -> None:
        """Interfaces that the file describes must have a link."""
        missing: Counter[int] = Counter()
        for device in self._devices.values():
            for name, table in device.table.tables.items():
                if name not in device.interfaces and not missing[table.line]:
                    missing[table.line] += 1
                    self._complain(table.line, f"{device.name}.{name} has no link.")


def _interface_order(interface: Interface) -> tuple[str, int]:
    """eth2 before eth10."""
    base = interface.name.rstrip("0123456789")
    return base, int(interface.name[len(base) :] or 0)
