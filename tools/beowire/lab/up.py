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
import shutil
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from beowire import installed, namespaces, netlink, places, signals
from beowire.errors import BeowireError
from beowire.lab import (
    address,
    emulator,
    link_counts,
    node,
    port,
    quota,
    rootless,
    service,
    slurm,
    wire,
)
from beowire.lab.lab import (
    MTU_MAX_BYTES,
    MTU_MIN_BYTES,
    NODES_MAX,
    Lab,
    Mode,
    Shape,
    check_name,
    choose_subnets,
    exists,
    load,
    load_ready,
    locked,
    missing,
    remove_unfinished,
)
from beowire.topology import check
from beowire.topology.topology import CLEAR, Direction, Link, Model, Topology, plain

_MODULES = "The kernel needs veth, bridge, sch_tbf, sch_ingress and cls_bpf (modprobe NAME)."


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


def check_loopback(name: str, topology: Topology, reason: str) -> None:
    """Loopback addresses have no links that could do anything."""
    busy = any(link.ab != CLEAR or link.ba != CLEAR for link in topology.links)
    if busy or len(topology.networks()) > 1 or any(node.cpus for node in topology.nodes):
        raise BeowireError(
            f"Lab {name} runs on loopback addresses ({reason}); it has no switch that could lose "
            "or pace frames, no several networks and no limits of processor time.",
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
    name: str,
    nodes: int,
    mtu_bytes: int,
    *,
    offloads: bool = True,
    shape: Shape | None = None,
    served: bool = False,
    with_slurm: bool = False,
) -> Lab:
    """Makes a lab of nodes at one switch, completely or not at all."""
    check_name(name)
    check_size(nodes, mtu_bytes)
    out, back = (shape or Shape()).models()
    made = plain(nodes, mtu_bytes, offloads=offloads, out=out, back=back)
    return up_topology(name, made, served=served, with_slurm=with_slurm)


def up_topology(
    name: str, topology: Topology, *, served: bool = False, with_slurm: bool = False
) -> Lab:
    """Makes a lab of this topology, completely or not at all; `served`: with beowired on each
    node; `with_slurm`: with Slurm."""
    check_name(name)
    check.check(topology)
    mode, reason = choose_mode()
    if mode == "loopback":
        check_loopback(name, topology, reason)
        if served:
            raise BeowireError(
                f"Lab {name} runs on loopback addresses ({reason}), which carry no raw frames.",
                "Leave --service out, or run as root where the kernel allows namespaces.",
            )
        if with_slurm:
            raise BeowireError(
                f"Lab {name} runs on loopback addresses ({reason}), where nodes share their ports.",
                "Leave --slurm out, or run as root where the kernel allows namespaces.",
            )
    if served:
        service.check_possible()
    if with_slurm:
        slurm.check_possible()
    with locked(), signals.uninterrupted():
        remove_unfinished()
        if exists(name):
            raise BeowireError(
                f"There is a lab {name} already.",
                f"Remove it ({installed.COMMAND} lab down {name}) or choose another name.",
            )
        subnets = choose_subnets(name, mode, len(topology.networks()))
        lab = Lab(
            name=name,
            topology=topology,
            subnets=subnets,
            addresses=address.assign(topology, subnets),
            mode=mode,
            reason=reason,
        )
        if mode == "namespace":
            _check_unclaimed(lab)
        try:
            _make(lab, served=served, with_slurm=with_slurm)
        except BaseException as error:
            _destroy(lab)
            if isinstance(error, OSError | netlink.NetlinkError):
                raise _explained(error, lab) from error
            raise
    return lab


def _check_unclaimed(lab: Lab) -> None:
    for device in [*lab.switch_names(), *lab.host_names()]:
        path = lab.namespace_path(device)
        if path.exists():
            raise BeowireError(
                f"A network namespace {path.name} exists already and belongs to no lab known here.",
                f"Remove it (ip netns del {path.name}) or choose another name.",
            )


def _explained(error: "OSError | netlink.NetlinkError", lab: Lab) -> BeowireError:
    """Turns what the system says into an error that a person can act on."""
    fix = "Nothing of it was left behind."
    if isinstance(error, netlink.NetlinkError):
        fix = f"{_MODULES} {fix}"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        fix = f"Free some space for {places.state_path()} and /etc/netns. {fix}"
    return BeowireError(f"Lab {lab.name} could not be made: {error}.", fix)


def _make(lab: Lab, *, served: bool, with_slurm: bool) -> None:
    lab.save()
    rootless.made()
    if lab.mode == "namespace":
        quota.make(lab)
        for switch in lab.switch_names():
            namespaces.create(lab.namespace_path(switch), None, "")
        for host in lab.host_names():
            signals.check_interrupted()
            namespaces.create(lab.namespace_path(host), lab.host_name_path(host), host)
            node.write_hosts(lab, host)
        wire.make(lab)
        node.start(lab)
        wire.await_ports(lab)
        if served:
            service.start(lab)
        if with_slurm:
            slurm.prepare(lab)
    for host in lab.host_names():
        if lab.mode == "loopback":
            lab.temporary_path(host).mkdir()
        lab.enter_path(host).write_text(node.enter_script(lab, host))
    if with_slurm:
        slurm.start(lab)
    lab.ready = True
    lab.save()


def port_counts(lab: Lab) -> dict[str, port.PortCounts]:
    """What befell the frames that a node sent on its first link, by node; only of links whose
    kernel part counts."""
    counts = link_counts.counts(lab)
    found = {}
    for name in lab.node_names():
        link = lab.topology.links_of(name)[0]
        if (key := (link.name, link.leaving(name))) in counts:
            found[name] = counts[key]
    return found


Models = dict[Direction, Model]


def reshape(name: str, shapes: dict[str, Shape]) -> Lab:
    """Gives the first links of nodes new shapes; the others keep theirs."""
    return change_links(name, lambda lab: _of_shapes(lab, shapes))


def change_shapes(name: str, nodes: Iterable[str], changes: dict[str, Any]) -> Lab:
    """Changes fields of the shapes of these nodes, or of all if none is named."""

    def wanted(lab: Lab) -> dict[str, Models]:
        hosts = list(nodes) or lab.node_names()
        for host in hosts:
            lab.check_node(host)
        return _of_shapes(lab, {host: replace(lab.shape(host), **changes) for host in hosts})

    return change_links(name, wanted)


def _of_shapes(lab: Lab, shapes: dict[str, Shape]) -> dict[str, Models]:
    """The models of the nodes' first links, by link."""
    models: dict[str, Models] = {}
    for host, shape in shapes.items():
        lab.check_node(host)
        link = lab.topology.links_of(host)[0]
        models[link.name] = _reshaped(link, link.leaving(host), shape)
    return models


def _reshaped(link: Link, leaving: Direction, shape: Shape) -> Models:
    """The link's models with what the shape says; what no shape can say stays."""
    out, back = shape.models()
    return {
        leaving: replace(
            link.model(leaving),
            loss=out.loss,
            corrupt=out.corrupt,
            mtu_bytes=out.mtu_bytes,
            drop_raw=out.drop_raw,
        ),
        _opposite(leaving): replace(
            link.model(_opposite(leaving)),
            rate_bits=back.rate_bits,
            queue_bytes=back.queue_bytes,
        ),
    }


def _opposite(direction: Direction) -> Direction:
    return "ba" if direction == "ab" else "ab"


def set_links(name: str, models: dict[str, Models]) -> Lab:
    """Gives directions of links of a running lab new models; all else stays as it is."""
    return change_links(name, lambda _: models)


def change_links(name: str, wanted: Callable[[Lab], dict[str, Models]]) -> Lab:
    """The same of models that depend on those that the lab has, which nobody changes meanwhile."""
    with locked():
        lab = load_ready(name)
        links = {link: lab.link(link).with_models(each) for link, each in wanted(lab).items()}
        changed = lab.topology.with_links(links)
        check.check(replace(changed, source=""))
        if lab.mode == "loopback":
            check_loopback(name, changed, lab.reason)
            return lab
        with signals.uninterrupted():
            try:
                wire.change(lab, links)
            except netlink.NetlinkError as error:
                raise BeowireError(
                    f"The links of lab {name} could not be changed: {error}.",
                    f"{_MODULES} The links are as they were.",
                ) from error
            finally:
                lab.save()
    return lab


def down(name: str) -> None:
    """Removes a lab, whole or half made, and kills what still runs on its nodes."""
    with locked(), signals.uninterrupted():
        if not exists(name):
            raise missing(name, "")
        _destroy(load(name))


def _destroy(lab: Lab) -> None:
    """Undoes `_make`, however far it went. The state directory goes last, so that a removal
    that was itself cut short can be repeated."""
    living = namespaces.kill(
        lambda: [*lab.processes(), *lab.wire_processes(), *quota.processes(lab)]
    )
    emulator.reap(lab)
    service.remove(lab)
    slurm.remove(lab)
    shutil.rmtree(lab.public_directory, ignore_errors=True)
    with contextlib.suppress(OSError):
        lab.public_directory.parent.rmdir()
    if lab.mode == "namespace":
        quota.remove(lab)
    for device in [*lab.switch_names(), *lab.host_names()]:
        namespaces.remove(lab.namespace_path(device))
        namespaces.remove(lab.host_name_path(device))
        shutil.rmtree(lab.settings_path(device), ignore_errors=True)
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
