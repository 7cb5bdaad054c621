# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the kernel itself does to the frames at an interface: rate, losses, corruption, frames that
do not pass, and the way on to another interface.

Everything sits on the switch's end of a link. A sender that bypasses its queueing discipline
would pass any limit on its own end, so that raw frames and TCP would be treated differently; on
the switch both meet the same interface. What comes in is judged by an eBPF program at the
ingress; what goes out is paced by a token bucket at the egress.
"""

import contextlib
import os
from dataclasses import dataclass

from beowire import netlink
from beowire.lab import ebpf
from beowire.topology.topology import Model

# Results of a classifier and fields of its context (linux/pkt_cls.h, linux/bpf.h).
_TC_ACT_OK = 0
_TC_ACT_SHOT = 2
_CONTEXT_LENGTH = 0
_CONTEXT_PROTOCOL = 16
_CONTEXT_GSO_SIZE = 176
_CLSACT_INGRESS = "ffff:fff2"

_ETHERNET_HEADER_BYTES = 14
_IP_TCP_HEADER_BYTES = 40
_ETH_P_ALL = 3
_ETHERTYPES_IP = (0x0800, 0x86DD)
_ETHERTYPE_ARP = 0x0806

_COUNTERS = ("frames", "lost", "corrupted", "too_long", "raw_dropped")


@dataclass(frozen=True)
class PortCounts:
    """What the program at an interface has done to the frames that came in there."""

    frames: int
    lost: int
    corrupted: int
    too_long: int
    raw_dropped: int


def _in_network_order(ethertype: int) -> int:
    return int.from_bytes(ethertype.to_bytes(2, "big"), "little")


def _threshold(share: float) -> int:
    """The bound below which a random 32-bit number falls with probability `share`."""
    return min(round(share * 2**32), 2**32)


def fault_program(model: Model, counters: int, redirect: int) -> ebpf.Program:
    """The classifier of an interface, which hands what is left to the interface `redirect`, or to
    the bridge if that is 0. r6 holds the context, r9 the counters."""
    program = ebpf.Program()
    program.alu_register("mov", 6, 1)
    program.load_map_value(9, counters)
    _count(program, "frames")
    if model.mtu_bytes:
        _drop_long(program, model.mtu_bytes)
    if model.drop_raw:
        program.load(4, 2, 6, _CONTEXT_PROTOCOL)
        for ethertype in (*_ETHERTYPES_IP, _ETHERTYPE_ARP):
            program.jump_if("eq", 2, _in_network_order(ethertype), "not_raw")
        _count_and_leave(program, "raw_dropped", _TC_ACT_SHOT)
        program.label("not_raw")
    if model.loss:
        _draw(program, model.loss, "kept")
        _count_and_leave(program, "lost", _TC_ACT_SHOT)
        program.label("kept")
    if model.corrupt:
        _corrupt(program, model.corrupt)
    program.label("pass")
    if redirect:
        program.alu("mov", 1, redirect)
        program.alu("mov", 2, 0)
        program.call(ebpf.HELPER_REDIRECT)
        program.leave_with_result()
    else:
        program.leave(_TC_ACT_OK)
    return program


def _count(program: ebpf.Program, counter: str) -> None:
    program.alu("mov", 2, 1)
    program.add_atomically(9, 8 * _COUNTERS.index(counter), 2)


def _count_and_leave(program: ebpf.Program, counter: str, result: int) -> None:
    _count(program, counter)
    program.leave(result)


def _draw(program: ebpf.Program, share: float, otherwise: str) -> None:
    """Falls through with probability `share`, else jumps."""
    program.call(ebpf.HELPER_PRANDOM_U32)
    program.load_constant(1, _threshold(share))
    program.jump_if_register("ge", 0, 1, otherwise)


def _drop_long(program: ebpf.Program, longest_bytes: int) -> None:
    """A segment that is still to be cut counts by the length of the frames it will become."""
    program.load(4, 2, 6, _CONTEXT_GSO_SIZE)
    program.alu("add", 2, _IP_TCP_HEADER_BYTES + _ETHERNET_HEADER_BYTES)
    program.jump_if("ne", 2, _IP_TCP_HEADER_BYTES + _ETHERNET_HEADER_BYTES, "length_known")
    program.load(4, 2, 6, _CONTEXT_LENGTH)
    program.label("length_known")
    program.jump_if("le", 2, longest_bytes + _ETHERNET_HEADER_BYTES, "short_enough")
    _count_and_leave(program, "too_long", _TC_ACT_SHOT)
    program.label("short_enough")


def _corrupt(program: ebpf.Program, share: float) -> None:
    """Flips one random bit behind the Ethernet header. ARP is spared: it has no checksum, and a
    wrong neighbour would outlive the fault."""
    program.load(4, 2, 6, _CONTEXT_PROTOCOL)
    program.jump_if("eq", 2, _in_network_order(_ETHERTYPE_ARP), "pass")
    program.load(4, 7, 6, _CONTEXT_LENGTH)
    program.jump_if("le", 7, _ETHERNET_HEADER_BYTES, "pass")
    program.alu("sub", 7, _ETHERNET_HEADER_BYTES)
    _draw(program, share, "pass")
    program.call(ebpf.HELPER_PRANDOM_U32)
    program.alu_register("mov", 8, 0)
    program.alu_register("mod", 8, 7)
    program.alu("add", 8, _ETHERNET_HEADER_BYTES)
    _locate_byte(program)
    program.call(ebpf.HELPER_SKB_LOAD_BYTES)
    program.jump_if("ne", 0, 0, "pass")
    program.call(ebpf.HELPER_PRANDOM_U32)
    program.alu("and", 0, 7)
    program.alu("mov", 2, 1)
    program.alu_register("lsh", 2, 0)
    program.load(1, 1, 10, -8)
    program.alu_register("xor", 1, 2)
    program.store(1, 10, -8, 1)
    _locate_byte(program)
    program.alu("mov", 5, 0)
    program.call(ebpf.HELPER_SKB_STORE_BYTES)
    program.jump_if("ne", 0, 0, "pass")
    _count(program, "corrupted")


def _locate_byte(program: ebpf.Program) -> None:
    """Arguments of the helpers that copy one byte between the frame at r8 and the stack."""
    program.alu_register("mov", 1, 6)
    program.alu_register("mov", 2, 8)
    program.alu_register("mov", 3, 10)
    program.alu("add", 3, -8)
    program.alu("mov", 4, 1)


def queue_bytes(model: Model) -> int:
    """Room before the rate: what is asked for, or 2 ms of it and at least 128 KiB, as of a small
    switch."""
    return model.queue_bytes or max(model.rate_bits // 8 // 500, 128 * 1024)


def clear(switch: "netlink.IPRoute", index: int) -> None:
    """Takes everything off the interface."""
    for parent in (netlink.TC_H_ROOT, netlink.TC_H_CLSACT):
        with contextlib.suppress(netlink.NetlinkError):
            switch.tc("del", index=index, parent=parent)


def pace(switch: "netlink.IPRoute", index: int, model: Model, mtu_bytes: int) -> None:
    """Frames leave the interface at the model's rate, behind a drop-tail queue."""
    if model.rate_bits:
        add_bucket(switch, index, model, mtu_bytes, parent=netlink.TC_H_ROOT, handle="1:")


def burst_bytes(rate_bits: int, mtu_bytes: int) -> int:
    """What a token bucket that was idle lets through at once: 1 ms of its rate, and at least two
    frames."""
    return max(rate_bits // 8 // 1000, 2 * (mtu_bytes + _ETHERNET_HEADER_BYTES))


def add_bucket(
    switch: "netlink.IPRoute",
    index: int,
    model: Model,
    mtu_bytes: int,
    *,
    parent: int | str,
    handle: str,
) -> None:
    """A token bucket of the model's rate as a queueing discipline at `parent`."""
    switch.tc(
        "add",
        "tbf",
        index=index,
        parent=parent,
        handle=handle,
        rate=model.rate_bits // 8,
        burst=burst_bytes(model.rate_bits, mtu_bytes),
        limit=queue_bytes(model),
    )


def judge(switch: "netlink.IPRoute", index: int, model: Model, redirect: int = 0) -> int:
    """Frames that come in at the interface meet the model's faults, and go on to the interface
    `redirect`, if that is not 0. Returns the id of the counters' map."""
    counters = ebpf.create_counters(len(_COUNTERS))
    try:
        program = fault_program(model, counters, redirect).load_classifier("beowire_port")
        try:
            switch.tc("add", "clsact", index)
            switch.tc(
                "add-filter",
                "bpf",
                index,
                ":1",
                fd=program,
                name="beowire_port",
                parent=_CLSACT_INGRESS,
                prio=1,
                protocol=_ETH_P_ALL,
                classid=1,
                direct_action=True,
            )
        finally:
            os.close(program)
        return ebpf.counters_id(counters)
    finally:
        os.close(counters)


def counts(map_id: int) -> PortCounts:
    """What the program with that map of counters has done so far."""
    return PortCounts(*ebpf.read_counters(map_id, len(_COUNTERS)))
