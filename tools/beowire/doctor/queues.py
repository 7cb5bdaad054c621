# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of a NIC's queues and of how frames are spread over processors."""

from beowire.doctor.check import (
    THROUGHPUT,
    Bad,
    Change,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Goal, Interface, Node, parse_mask
from beowire.doctor.setting import EthtoolSetting, FileSetting

_SCALING = "kernel: networking/scaling.rst"
_FLOWS = 32768
_FLOW_ENTRIES = "/proc/sys/net/core/rps_sock_flow_entries"


def format_mask(cpus: list[int]) -> str:
    """The kernel's form of a set of processors: words of 32 bits, the highest first."""
    mask = sum(1 << cpu for cpu in cpus)
    words = []
    while True:
        words.append(f"{mask & 0xFFFF_FFFF:x}" if mask < 1 << 32 else f"{mask & 0xFFFF_FFFF:08x}")
        mask >>= 32
        if not mask:
            return ",".join(reversed(words))


def queue_files(node: Node, interface: Interface, side: str, name: str) -> list[str]:
    """The files of that name of all queues of a side ("rx", "tx"), in their order."""
    directory = f"/sys/class/net/{interface.name}/queues"
    queues = [each for each in node.listed(directory) if each.startswith(f"{side}-")]
    queues.sort(key=lambda each: int(each.removeprefix(f"{side}-")))
    return [f"{directory}/{queue}/{name}" for queue in queues]


def _channels(node: Node, interface: Interface) -> Verdict:
    channels = node.ethtool(interface.name, "channels")
    cpus = len(node.cpus())
    sides = ("combined",) if channels.get("combined-max") else ("rx", "tx")
    shown, changes = [], []
    for side in sides:
        most = min(channels.get(f"{side}-max", 0), cpus)
        if not most:
            continue
        now = channels.get(side, 0)
        shown.append(f"{side} {now} of {channels[f'{side}-max']}")
        if now < most:
            setting = EthtoolSetting(interface.name, "channels", side)
            changes.append(Change(setting, str(now), str(most)))
    if not shown:
        raise NotApplicable("the driver has no number of queues to choose")
    read = f"queues: {', '.join(shown)}; {cpus} processors"
    if not changes:
        return Good(read)
    return Bad(read, "a queue for each processor", tuple(changes))


def _receive_masks(node: Node, interface: Interface) -> dict[str, int]:
    files = queue_files(node, interface, "rx", "rps_cpus")
    if not files:
        raise NotApplicable("it has no receive queues in sysfs")
    return {path: parse_mask(node.text(path)) for path in files}


def _steering(node: Node, interface: Interface) -> Verdict:
    masks = _receive_masks(node, interface)
    cpus = node.cpus()
    if len(cpus) < 2:
        raise NotApplicable("there is one processor")
    on = [path for path, mask in masks.items() if mask]
    read = f"RPS on {len(on)} of {len(masks)} receive queues"
    if node.goal is Goal.LATENCY or len(masks) >= len(cpus):
        good, value = "off: the processor that was interrupted goes on", "0"
        wrong = on
    else:
        good, value = "on for all queues, since they are fewer than processors", format_mask(cpus)
        wrong = [path for path, mask in masks.items() if not mask]
    if not wrong:
        return Good(read)
    changes = tuple(Change(FileSetting(path), node.text(path), value) for path in wrong)
    return Bad(read, good, changes)


def _flows(node: Node, interface: Interface) -> Verdict:
    if not any(_receive_masks(node, interface).values()):
        raise NotApplicable("RPS is off")
    files = queue_files(node, interface, "rx", "rps_flow_cnt")
    share = _FLOWS // max(len(files), 1)
    changes = [
        Change(FileSetting(path), node.text(path), str(share))
        for path in files
        if node.number(path) == 0
    ]
    if node.exists(_FLOW_ENTRIES) and node.number(_FLOW_ENTRIES) == 0:
        changes.append(Change(FileSetting(_FLOW_ENTRIES), node.text(_FLOW_ENTRIES), str(_FLOWS)))
    if not changes:
        return Good("flows are steered to the processors of their programs")
    read = "no table of flows: " + ", ".join(str(change.setting) for change in changes)
    return Bad(read, f"{_FLOWS} flows", tuple(changes))


def _send_masks(node: Node, interface: Interface) -> Verdict:
    files = queue_files(node, interface, "tx", "xps_cpus")
    cpus = node.cpus()
    if len(files) < 2 or len(cpus) < 2:
        raise NotApplicable("there is one send queue or one processor")
    unset = [path for path in files if not parse_mask(node.text(path))]
    read = f"XPS on {len(files) - len(unset)} of {len(files)} send queues"
    if not unset or (len(files) > len(cpus) and len(unset) <= len(files) - len(cpus)):
        return Good(read)
    changes = tuple(
        Change(FileSetting(path), node.text(path), format_mask(mine))
        for position, path in enumerate(files)
        if path in unset and (mine := cpus[position :: len(files)])
    )
    return Bad(read, "each processor sends on a queue of its own", changes)


def _table(node: Node, interface: Interface) -> Verdict:
    table = node.ethtool(interface.name, "rss").get("indir")
    channels = node.ethtool(interface.name, "channels")
    queues = max(channels.get("combined", 0), channels.get("rx", 0))
    if not table or queues < 2:
        raise NotApplicable("it has one receive queue, or no table that spreads flows")
    shares = [table.count(queue) for queue in range(queues)]
    read = f"entries of the table for each queue: {', '.join(map(str, shares))}"
    if min(shares) and max(shares) <= 2 * min(shares):
        return Good(read)
    return Bad(read, "equal shares", advice=f"ethtool -X {interface.name} equal {queues}")


CHECKS = (
    Check(
        name="queues.channels",
        title="The NIC has a queue for each processor",
        why="Processors that share a queue wait for one another and move its lines between caches.",
        sources=(_SCALING,),
        reads=("ethtool netlink CHANNELS_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.INTERRUPTS,
        look_at=_channels,
    ),
    Check(
        name="queues.steering",
        title="Received frames are spread over processors where that helps",
        why="With fewer queues than processors one of them does all of the stack's work (for "
        "throughput); handing a frame on costs an interrupt between processors (for latency).",
        sources=(_SCALING,),
        reads=("/sys/class/net/IFACE/queues/rx-*/rps_cpus",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look_at=_steering,
    ),
    Check(
        name="queues.flows",
        title="Frames are handed to the processor of their program",
        why="Otherwise their data crosses from one cache to another.",
        sources=(_SCALING,),
        reads=("/sys/class/net/IFACE/queues/rx-*/rps_flow_cnt", _FLOW_ENTRIES),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        goals=THROUGHPUT,
        look_at=_flows,
    ),
    Check(
        name="queues.send",
        title="Each processor sends on a queue of its own",
        why="Otherwise processors contend for a queue's lock, and completions come elsewhere.",
        sources=(_SCALING,),
        reads=("/sys/class/net/IFACE/queues/tx-*/xps_cpus",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look_at=_send_masks,
    ),
    Check(
        name="queues.table",
        title="The NIC spreads flows evenly over its queues",
        why="A queue that gets most of the flows makes its processor the bottleneck.",
        sources=(_SCALING,),
        reads=("ethtool netlink RSS_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_table,
    ),
)
