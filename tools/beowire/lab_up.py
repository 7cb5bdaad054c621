# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Makes, changes and removes a lab.

    bw-NAME-node1      bw-NAME-switch        bw-NAME-node2
    10.x.y.1  eth0 ---- node1 [bridge] node2 ---- eth0  10.x.y.2

The description is written before the first namespace exists and marked ready after the last
one, so that whatever stops the making, removal finds everything.
"""

import contextlib
import errno
import os
import shlex
import shutil
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from pyroute2 import IPRoute

from beowire import ethtool, lab_port, namespaces, places
from beowire.errors import BeowireError
from beowire.lab import (
    MTU_MAX_BYTES,
    MTU_MIN_BYTES,
    NODES_MAX,
    Lab,
    Mode,
    Shape,
    check_name,
    choose_subnet,
    exists,
    load,
    load_ready,
    locked,
)

BRIDGE = "switch"


def choose_mode() -> tuple[Mode, str]:
    """Namespaces where the kernel lets us, else loopback addresses and the reason."""
    forced = os.environ.get("BEOWIRE_LAB_MODE", "")
    if forced not in ("", "namespace", "loopback"):
        raise BeowireError(
            f"BEOWIRE_LAB_MODE is {forced!r}.", "Set it to namespace or loopback, or unset it."
        )
    if forced == "loopback":
        return "loopback", "BEOWIRE_LAB_MODE asks for it"
    refusal = namespaces.refusal()
    if refusal and forced == "namespace":
        raise BeowireError(f"No lab of namespaces here: {refusal}.", "Run as root, on a host.")
    return ("loopback", refusal) if refusal else ("namespace", "")


def check_size(nodes: int, mtu_bytes: int) -> None:
    if not 1 <= nodes <= NODES_MAX:
        raise BeowireError(f"A lab of {nodes} nodes?", f"Give --nodes 1 to {NODES_MAX}.")
    if not MTU_MIN_BYTES <= mtu_bytes <= MTU_MAX_BYTES:
        raise BeowireError(
            f"An MTU of {mtu_bytes} bytes?", f"Give --mtu {MTU_MIN_BYTES} to {MTU_MAX_BYTES}."
        )


def check_shape(lab: Lab, shape: Shape) -> None:
    if shape != Shape() and lab.mode == "loopback":
        raise BeowireError(
            f"Lab {lab.name} runs on loopback addresses ({lab.reason}); it has no switch that "
            "could lose or pace frames.",
            "Use a lab of namespaces: run as root where the kernel allows them.",
        )


@contextlib.contextmanager
def termination_raises() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP unwind like Ctrl-C, so that both undo what was begun."""

    def unwind(number: int, frame: FrameType | None) -> None:
        del frame
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    old = {number: signal.signal(number, unwind) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def up(
    name: str, nodes: int, mtu_bytes: int, *, offloads: bool = True, shape: Shape | None = None
) -> Lab:
    """Makes a lab, completely or not at all."""
    check_name(name)
    check_size(nodes, mtu_bytes)
    shape = shape or Shape()
    mode, reason = choose_mode()
    with locked(), namespaces.uninterrupted():
        if exists(name):
            raise BeowireError(
                f"There is a lab {name} already.",
                f"Remove it (./beowire lab down {name}) or choose another name.",
            )
        lab = Lab(
            name=name,
            nodes=nodes,
            mtu_bytes=mtu_bytes,
            subnet=choose_subnet(name, mode),
            mode=mode,
            reason=reason,
            offloads=offloads,
            shapes={} if shape == Shape() else {f"node{k + 1}": shape for k in range(nodes)},
        )
        check_shape(lab, shape)
        if mode == "namespace":
            _check_unclaimed(lab)
        try:
            _make(lab)
        except BaseException as error:
            _destroy(lab)
            if isinstance(error, OSError):
                raise _explained(error, lab) from error
            raise
    return lab


def _check_unclaimed(lab: Lab) -> None:
    for path in lab.namespace_paths():
        if path.exists():
            raise BeowireError(
                f"A network namespace {path.name} exists already and belongs to no lab known here.",
                f"Remove it (ip netns del {path.name}) or choose another name.",
            )


def _explained(error: OSError, lab: Lab) -> BeowireError:
    """Turns what the system says into an error that a person can act on."""
    mend = "Nothing of it was left behind."
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        mend = f"Free some space for {places.state_dir()} and /etc/netns. {mend}"
    return BeowireError(f"Lab {lab.name} could not be made: {error}.", mend)


def _make(lab: Lab) -> None:
    lab.save()
    if lab.mode == "namespace":
        namespaces.create(lab.namespace_path("switch"), None, "")
        for node in lab.node_names():
            namespaces.check_interrupted()
            namespaces.create(lab.namespace_path(node), lab.host_name_path(node), node)
            _write_hosts(lab, node)
        _connect(lab)
        if lab.shapes:
            _apply_shapes(lab, lab.node_names())
    for node in lab.node_names():
        if lab.mode == "loopback":
            lab.temporary_path(node).mkdir()
        lab.enter_path(node).write_text(_enter_script(lab, node))
    lab.ready = True
    lab.save()


def _write_hosts(lab: Lab, node: str) -> None:
    directory = lab.settings_path(node)
    directory.mkdir(parents=True)
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    lines += [f"{lab.address(other)} {other}" for other in lab.node_names()]
    (directory / "hosts").write_text("\n".join(lines) + "\n")


def _enter_script(lab: Lab, node: str) -> str:
    """A script that becomes the command given to it, on the node."""
    if lab.mode == "namespace":
        ip = places.program("ip", "iproute2")
        nsenter = places.program("nsenter", "util-linux")
        host = shlex.quote(f"--uts={lab.host_name_path(node)}")
        become = f'{nsenter} {host} -- {ip} netns exec {lab.namespace(node)} "$@"'
        variables = {}
    else:
        become = '"$@"'
        variables = {
            "BEOWIRE_NODE": node,
            "BEOWIRE_LINKS": "local,udp",
            "BEOWIRE_INTERFACE": "lo",
            "BEOWIRE_UDP_ADDRESS": lab.address(node),
            # Launchers keep files by host name, which these nodes share.
            "TMPDIR": str(lab.temporary_path(node)),
            "OMPI_MCA_btl_vader_backing_directory": str(lab.temporary_path(node)),
        }
    variables |= {"BEOWIRE_LAB": lab.name, "BEOWIRE_LAB_DIR": str(lab.directory)}
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in variables.items())
    purpose = f"# Executes its arguments on {node} of lab {lab.name}."
    return f"#!/bin/sh\n{purpose}\n{exports}exec {become}\n"


def _connect(lab: Lab) -> None:
    """The switch, its cables and the nodes' addresses."""
    namespaces.within(lab.namespace_path("switch"), partial(_make_switch, lab))
    for node in lab.node_names():
        namespaces.check_interrupted()
        namespaces.within(lab.namespace_path(node), partial(_start_node, lab.address(node)))
    _set_offloads(lab)


def _make_switch(lab: Lab) -> None:
    """The bridge and one port for each node; runs in the switch's namespace. The nodes' ends are
    created right where they belong, so that no interface ever shows up outside the lab."""
    _silence_ipv6()
    with IPRoute() as switch:
        switch.link(
            "add",
            ifname=BRIDGE,
            kind="bridge",
            mtu=lab.mtu_bytes,
            br_stp_state=0,
            br_forward_delay=0,
            br_mcast_snooping=0,
        )
        bridge = switch.link_lookup(ifname=BRIDGE)[0]
        for number, node in enumerate(lab.node_names(), start=1):
            end = {
                "ifname": "eth0",
                "mtu": lab.mtu_bytes,
                "address": _hardware_address(lab, number),
            }
            descriptor = os.open(lab.namespace_path(node), os.O_RDONLY)
            try:
                peer = {**end, "net_ns_fd": descriptor}
                switch.link("add", ifname=node, kind="veth", mtu=lab.mtu_bytes, peer=peer)
            finally:
                os.close(descriptor)
            switch.link("set", index=switch.link_lookup(ifname=node)[0], master=bridge, state="up")
        switch.link("set", index=bridge, state="up")


def _start_node(address: str) -> None:
    """Addresses and starts the interfaces of the node in whose namespace this runs."""
    with IPRoute() as host:
        index = host.link_lookup(ifname="eth0")[0]
        host.addr("add", index=index, address=address, prefixlen=24)
        host.link("set", index=index, state="up")
        host.link("set", index=host.link_lookup(ifname="lo")[0], state="up")


def _silence_ipv6() -> None:
    """The switch itself speaks no IPv6; a kernel without IPv6 has nothing to silence."""
    setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if setting.exists():
        setting.write_text("1")


def _hardware_address(lab: Lab, number: int) -> str:
    """A locally administered address that tells lab and node at a glance in a capture."""
    _, second, third = lab.subnet.split(".")
    return f"02:be:00:{int(second):02x}:{int(third):02x}:{number:02x}"


def _set_offloads(lab: Lab) -> None:
    """Segmentation by the lab's choice. Where frames are corrupted, checksums are computed and
    verified, else damage would pass TCP unseen, as it cannot on a wire."""
    honest_sums = any(shape.corrupt for shape in lab.shapes.values())

    def set_on(interfaces: list[str]) -> None:
        for interface in interfaces:
            ethtool.set_tx_checksum(interface, not honest_sums)
            ethtool.set_segmentation(interface, lab.offloads and not honest_sums)

    for node in lab.node_names():
        namespaces.within(lab.namespace_path(node), partial(set_on, ["eth0"]))
    namespaces.within(lab.namespace_path("switch"), partial(set_on, lab.node_names()))


def _apply_shapes(lab: Lab, nodes: list[str]) -> None:
    ids = port_maps(lab)

    def shape_ports() -> None:
        with IPRoute() as switch:
            for node in nodes:
                ids[node] = lab_port.apply(switch, node, lab.shape(node), lab.mtu_bytes)

    namespaces.within(lab.namespace_path("switch"), shape_ports)
    text = "".join(f"{node} {number}\n" for node, number in ids.items() if number)
    temporary = lab.directory / ".ports"
    temporary.write_text(text)
    temporary.replace(lab.directory / "ports")
    _set_offloads(lab)


def port_maps(lab: Lab) -> dict[str, int]:
    """The counters' maps of the ports that have a program, by node."""
    path = lab.directory / "ports"
    if not path.exists():
        return {}
    pairs = (line.split() for line in path.read_text().splitlines())
    return {node: int(number) for node, number in pairs}


def port_counts(lab: Lab) -> dict[str, lab_port.PortCounts]:
    """What the ports with a program have done to frames, by node."""
    return {node: lab_port.counts(number) for node, number in port_maps(lab).items()}


def reshape(name: str, shapes: dict[str, Shape]) -> Lab:
    """Gives ports of a running lab new shapes; the others keep theirs."""
    with locked():
        lab = load_ready(name)
        for node, shape in shapes.items():
            lab.check_node(node)
            check_shape(lab, shape)
            lab.shapes[node] = shape
        lab.shapes = {node: shape for node, shape in lab.shapes.items() if shape != Shape()}
        with namespaces.uninterrupted():
            if lab.mode == "namespace":
                _apply_shapes(lab, list(shapes))
            lab.save()
    return lab


def down(name: str) -> None:
    """Removes a lab, whole or half made, and kills what still runs on its nodes."""
    with locked(), namespaces.uninterrupted():
        _destroy(load(name))


def _destroy(lab: Lab) -> None:
    """Undoes `_make`, however far it went. The state directory goes last, so that a removal
    that was itself cut short can be repeated."""
    living = namespaces.kill(lab.processes)
    for node in ["switch", *lab.node_names()]:
        namespaces.remove(lab.namespace_path(node))
        namespaces.remove(lab.host_name_path(node))
        shutil.rmtree(lab.settings_path(node), ignore_errors=True)
    with contextlib.suppress(OSError):
        Path("/etc/netns").rmdir()
    shutil.rmtree(lab.directory, ignore_errors=True)
    if lab.directory.exists():
        raise BeowireError(
            f"{lab.directory} could not be removed.", f"Remove it: rm -r {lab.directory}"
        )
    if living:
        numbers = ", ".join(map(str, living))
        raise BeowireError(
            f"Lab {lab.name} is removed, but these of its processes do not die: {numbers}.",
            "They wait inside the kernel; look at /proc/PID/stack.",
        )
