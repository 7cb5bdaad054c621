# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes the links of a lab, and changes them while programs run.

    node           the switch's namespace                     other links
    eth0 ---- LINK [bridge]                                   plain
    eth0 ---- LINK === LINK~i ---- LINK~o [bridge]            kernel, netem, beowire-link

A plain link is a cable to the bridge; its port loses what comes in and paces what goes out. Any
other has a second cable, and `===` is what hands frames on between the two: classifiers of the
kernel that redirect, or an emulator. It lies in the namespace of the switch at its end `b`, or `a`;
if neither is one, in the namespace `wires`, with LINK~o plugged into the other host. Changing the
kind moves the cables, not the hosts' interfaces.
"""

import contextlib
import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from beowire import namespaces, netlink, signals
from beowire.errors import BeowireError
from beowire.lab import daemon, emulator, netem, offload, port
from beowire.lab.lab import WIRES, Lab, Wire, WireKind
from beowire.lab.link_counts import port_maps, write_port_maps
from beowire.lab.place import Place, by_namespace, choose_kind, far, near, place
from beowire.topology.topology import DIRECTIONS, Direction, End, Link, Model

BRIDGE = "bridge"

_BR_STATE_FORWARDING = 3  # linux/if_bridge.h
_PATIENCE_S = 10.0


def make(lab: Lab) -> None:
    """Switches and links of a lab whose namespaces are there; the hosts' interfaces are not up."""
    for switch in lab.topology.switches:
        path = lab.namespace_path(switch.name)
        namespaces.within(path, partial(_make_bridge, lab.topology.mtu_bytes()))
    namespaces.within(lab.namespace_path(WIRES), _silence_ipv6)
    for namespace, links in by_namespace(lab.topology, lab.topology.links).items():
        signals.check_interrupted()
        namespaces.within(lab.namespace_path(namespace), partial(_lay_cables, lab, links))
    for link in lab.topology.links:
        where = place(lab.topology, link)
        if where.outer.device in lab.topology.switch_names():
            path = lab.namespace_path(where.outer.device)
            namespaces.within(path, partial(_plug_in, link.name))
    join(lab, lab.topology.links)


def await_ports(lab: Lab) -> None:
    """Waits until every cable at a switch is up and every port of it forwards: the kernel sees to
    that some milliseconds after the other end came up, and until then drops what is sent. A lab on
    a machine that takes longer than some seconds is none the worse for it afterwards."""
    patience = time.monotonic() + _PATIENCE_S
    for switch in lab.switch_names():
        path = lab.namespace_path(switch)
        while not namespaces.within(path, _ports_are_ready) and time.monotonic() < patience:
            time.sleep(0.002)


def _ports_are_ready() -> bool:
    with netlink.IPRoute() as switch:
        for link in switch.get_links():
            kind = link.get_attr("IFLA_LINKINFO")
            if kind is None or kind.get_attr("IFLA_INFO_KIND") != "veth":
                continue
            if link.get_attr("IFLA_OPERSTATE") != "UP":
                return False
            port = kind.get_attr("IFLA_INFO_SLAVE_DATA")
            if port is not None and port.get_attr("IFLA_BRPORT_STATE") != _BR_STATE_FORWARDING:
                return False
    return True


def _silence_ipv6() -> None:
    """The switch itself speaks no IPv6; a kernel without IPv6 has nothing to silence."""
    setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if setting.exists():
        setting.write_text("1")


def _make_bridge(mtu_bytes: int) -> None:
    _silence_ipv6()
    with netlink.IPRoute() as switch:
        switch.link(
            "add",
            ifname=BRIDGE,
            kind="bridge",
            mtu=mtu_bytes,
            br_stp_state=0,
            br_forward_delay=0,
            br_mcast_snooping=0,
        )
        switch.link("set", index=_index(switch, BRIDGE), state="up")


def _index(switch: "netlink.IPRoute", interface: str) -> int:
    found = switch.link_lookup(ifname=interface)
    return int(found[0]) if found else 0


def _plug_in(interface: str) -> None:
    with netlink.IPRoute() as switch:
        index = _index(switch, interface)
        switch.link("set", index=index, master=_index(switch, BRIDGE), state="up")


def _lay_cables(lab: Lab, links: list[tuple[Link, Place]]) -> None:
    """The outer cable of each link; runs in the namespace of the switch. The hosts' ends are
    created right where they belong, so that no interface ever shows up outside the lab."""
    with netlink.IPRoute() as switch:
        for link, where in links:
            _lay_cable(switch, lab, link.name, where.outer, link.name)
            if where.namespace == WIRES:
                _lay_cable(switch, lab, near(link), where.inner, link.name)


def _lay_cable(switch: "netlink.IPRoute", lab: Lab, near: str, to: End, at_switch: str) -> None:
    """A cable from `near`, here, to the interface of a host, or to a port of a switch, which is
    called `at_switch`."""
    mtu_bytes = lab.topology.mtu_bytes()
    peer: dict[str, object] = {"ifname": at_switch, "mtu": mtu_bytes}
    if to.interface:
        host = lab.topology.host(to.device)
        peer = {
            "ifname": to.interface,
            "mtu": host.interface(to.interface).mtu_bytes,
            "address": _hardware_address(lab, to),
        }
    descriptor = os.open(lab.namespace_path(to.device), os.O_RDONLY)
    try:
        peer["net_ns_fd"] = descriptor
        switch.link("add", ifname=near, kind="veth", mtu=mtu_bytes, peer=peer)
    finally:
        os.close(descriptor)
    switch.link("set", index=_index(switch, near), state="up")


def _hardware_address(lab: Lab, end: End) -> str:
    """A locally administered address that tells lab, interface and host at a glance in a
    capture."""
    _, second, third = lab.subnets[0].split(".")
    host = lab.topology.host(end.device)
    number = lab.topology.hosts().index(host) + 1
    interface = host.interfaces.index(host.interface(end.interface))
    return f"02:be:{interface:02x}:{int(second):02x}:{int(third):02x}:{number:02x}"


def join(lab: Lab, links: Iterable[Link]) -> None:
    """Makes each of these links do what its models say, whatever it did before, and notes in the
    lab's description how. The models are already those of the lab's topology."""
    ids = port_maps(lab)
    for namespace, here in by_namespace(lab.topology, links).items():
        kinds = {link.name: choose_kind(link, where) for link, where in here}
        for link, _ in here:
            _stop_emulator(lab, link.name)
            for direction in DIRECTIONS:
                ids.pop((link.name, direction), None)
        path = lab.namespace_path(namespace)
        ids |= namespaces.within(path, partial(_join_here, lab, here, kinds))
        lab.wires |= {name: Wire(kind) for name, kind in kinds.items()}
        write_port_maps(lab, ids)
    offload.set_offloads(lab)
    for link in links:
        if lab.wires[link.name].kind == "beowire-link":
            signals.check_interrupted()
            lab.wires[link.name].pid = _start_emulator(lab, link)
            lab.save()


def _join_here(
    lab: Lab, links: list[tuple[Link, Place]], kinds: dict[str, WireKind]
) -> dict[tuple[str, Direction], int]:
    """The kernel's part of `join`, in the namespace of the switch: the maps of counters by link
    and direction."""
    ids = {}
    with netlink.IPRoute() as switch:
        for link, where in links:
            outer = _index(switch, link.name)
            inner = _index(switch, near(link))
            for index in filter(None, (outer, inner)):
                port.clear(switch, index)
            if where.namespace != WIRES:
                inner = _set_port(switch, lab, link, plain=kinds[link.name] == "plain")
            for direction, number in _fit(switch, lab, link, where, kinds[link.name], outer, inner):
                ids[link.name, direction] = number
    return ids


def _set_port(switch: "netlink.IPRoute", lab: Lab, link: Link, *, plain: bool) -> int:
    """Makes the outer cable the switch's port, or a second cable behind it; the index of the
    second cable's near end, 0 where there is none."""
    outer, inner = _index(switch, link.name), _index(switch, near(link))
    bridge = _index(switch, BRIDGE)
    if plain:
        if inner:
            switch.link("del", index=inner)
        switch.link("set", index=outer, master=bridge)
        return 0
    switch.link("set", index=outer, master=0)
    if not inner:
        mtu_bytes = lab.topology.mtu_bytes()
        peer = {"ifname": far(link), "mtu": mtu_bytes}
        switch.link("add", ifname=near(link), kind="veth", mtu=mtu_bytes, peer=peer)
        inner = _index(switch, near(link))
        switch.link("set", index=_index(switch, far(link)), master=bridge, state="up")
        switch.link("set", index=inner, state="up")
    return inner


def _fit(
    switch: "netlink.IPRoute",
    lab: Lab,
    link: Link,
    where: Place,
    kind: WireKind,
    outer: int,
    inner: int,
) -> Iterable[tuple[Direction, int]]:
    """What the kernel does between the cables; yields the map of each classifier."""
    inward, outward = link.model(where.inward), link.model(where.outward)
    mtu_bytes = lab.topology.mtu_bytes()
    if kind == "plain":
        port.pace(switch, outer, outward, mtu_bytes)
        if inward.faults:
            yield where.inward, port.judge(switch, outer, inward)
        return
    if kind == "beowire-link":
        return
    if kind == "netem":
        netem.add(switch, inner, inward, mtu_bytes)
        netem.add(switch, outer, outward, mtu_bytes)
        # netem has no MTU; the rest of the model is its own.
        inward, outward = Model(mtu_bytes=inward.mtu_bytes), Model(mtu_bytes=outward.mtu_bytes)
    else:
        port.pace(switch, inner, inward, mtu_bytes)
        port.pace(switch, outer, outward, mtu_bytes)
    yield where.inward, port.judge(switch, outer, inward, inner)
    yield where.outward, port.judge(switch, inner, outward, outer)


def _start_emulator(lab: Lab, link: Link) -> int:
    where = place(lab.topology, link)
    ends = (link.name, near(link)) if where.inward == "ab" else (near(link), link.name)
    return emulator.start(lab, link, where.namespace, *ends)


def _stop_emulator(lab: Lab, link: str) -> None:
    wire = lab.wires.get(link)
    if wire and wire.pid and wire.pid in lab.wire_processes():
        daemon.kill(wire.pid)
    if wire:
        wire.pid = 0


def change(lab: Lab, links: dict[str, Link]) -> None:
    """Gives links of a running lab new models, or leaves all as it was."""
    before = lab.topology
    old = {name: lab.link(name) for name in links}
    lab.topology = before.with_links(links)
    try:
        _change(lab, old)
    except BaseException:
        lab.topology = before
        with contextlib.suppress(BeowireError, OSError, netlink.NetlinkError):
            _change(lab, {name: links[name] for name in old})
        raise


def _change(lab: Lab, old: dict[str, Link]) -> None:
    """A link that was emulated and still is hears of it through the emulator's socket, so that
    frames under way stay under way; others are joined anew."""
    anew = []
    for name, before in old.items():
        link = lab.link(name)
        kind = choose_kind(link, place(lab.topology, link))
        if kind == lab.wires[name].kind == "beowire-link":
            emulator.change(lab, before, link)
        else:
            anew.append(link)
    join(lab, anew)
    await_ports(lab)
