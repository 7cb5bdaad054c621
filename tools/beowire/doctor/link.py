# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of the link itself: speed, duplex, size of frames, faults, what the slot gives."""

import re

from beowire.doctor.check import (
    CLUSTER,
    LATENCY,
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
from beowire.doctor.node import Interface, Node, has_address
from beowire.doctor.rules import exactly, judged
from beowire.doctor.setting import EthtoolSetting, LinkSetting

_JUMBO_BYTES = 9000
_FLAPS = 10
_DAMAGED_SHARE = 1e-6
_DAMAGED_FEW = 10
_DAMAGE = ("rx_crc_errors", "rx_frame_errors", "rx_length_errors", "tx_carrier_errors")
_DAY_S = 86400
_HALF = 0
_NETLINK = "ethtool netlink "
_LINKS = "rtnetlink RTM_GETLINK"
_SYSFS_NET = "kernel: ABI/testing/sysfs-class-net"


def _carrier(_: Node, interface: Interface) -> Verdict:
    link = interface.link
    if not link["up"]:
        return Bad("it is down", "up, with a carrier", advice=f"ip link set {interface.name} up")
    if link["carrier"] == 0:
        advice = "Look at the cable and the switch's port."
        return Bad("it has no carrier", "up, with a carrier", advice=advice)
    return Good("up, with a carrier")


def _address(node: Node, interface: Interface) -> Verdict:
    if has_address(node, interface):
        return Good("it has an address")
    advice = f"Look at what should configure it, or: ip addr add ADDRESS/BITS dev {interface.name}"
    return Bad("it has no address of a network", "an address", advice=advice)


def _megabits(modes: list[str]) -> int:
    found = [int(number) for mode in modes for number in re.findall(r"^(\d+)base", mode)]
    return max(found, default=0)


def _speed(node: Node, interface: Interface) -> Verdict:
    modes = node.ethtool(interface.name, "linkmodes")
    most = _megabits(modes.get("ours-known", []))
    if not most or interface.speed_bits is None:
        raise NotApplicable("the driver names no speeds")
    now = interface.speed_bits // 1_000_000
    peer = _megabits(modes.get("peer", []))
    if now >= most:
        return Good(f"{now} Mbit/s")
    if peer and peer < most:
        advice = f"The other side offers {peer} Mbit/s at most: a faster port or cable."
    else:
        advice = "Look at the cable, and at what the switch's port and this NIC may negotiate."
    weight = Weight.SEVERE if now * 10 <= most else Weight.COSTLY
    return Bad(f"{now} Mbit/s", f"{most} Mbit/s", advice=advice, weight=weight)


def _duplex(node: Node, interface: Interface) -> Verdict:
    duplex = node.ethtool(interface.name, "linkmodes").get("duplex", 255)
    if duplex not in (0, 1):
        raise NotApplicable("the driver names no duplex mode")
    if duplex == _HALF:
        advice = "One side has a fixed setting: let both negotiate."
        return Bad("half duplex", "full duplex", advice=advice)
    return Good("full duplex")


def _mtu(node: Node, interface: Interface) -> Verdict:
    largest = interface.link["max_mtu"] or 0
    now = interface.link["mtu"]
    if not largest:
        raise NotApplicable("the driver names no largest MTU")
    good = min(largest, _JUMBO_BYTES)
    read = f"mtu {now} of at most {largest}"
    if now >= good:
        return Good(read)
    change = Change(LinkSetting(interface.name, "mtu"), str(now), str(good))
    advice = "All nodes and switches of the network have to take it; --peer HOST probes the path."
    weight = None if node.peer else Weight.SLIGHT  # nobody knows what the network takes
    return Bad(read, f"{good}, on the whole path", (change,), advice, weight)


def _damage(_: Node, interface: Interface) -> Verdict:
    counters = interface.link["counters"]
    damaged = sum(counters.get(name, 0) for name in _DAMAGE)
    frames = counters.get("rx_packets", 0) + counters.get("tx_packets", 0)
    read = f"{damaged} damaged of {frames} frames"
    if damaged < _DAMAGED_FEW or damaged <= frames * _DAMAGED_SHARE:
        return Good(read)
    advice = "Clean or replace cable and optics; look at the counters of the switch's port."
    return Bad(read, "less than one in a million", advice=advice)


def _flaps(node: Node, interface: Interface) -> Verdict:
    downs = node.number(f"/sys/class/net/{interface.name}/carrier_down_count")
    days = float(node.text("/proc/uptime").split()[0]) / _DAY_S
    read = f"lost its carrier {downs} times in {days:.1f} days"
    if downs <= _FLAPS or downs <= days:
        return Good(read)
    return Bad(read, f"at most {_FLAPS} times", advice="Look at the cable and the switch's port.")


def _pause(node: Node, interface: Interface) -> Verdict:
    pause = node.ethtool(interface.name, "pause")
    shown = {name: pause.get(name, 0) for name in ("rx", "tx")}
    read = ", ".join(f"{name} pause {'on' if on else 'off'}" for name, on in shown.items())
    if not shown["tx"]:
        return Good(read)
    # What is negotiated cannot be set as well.
    names = ("autoneg", "tx") if pause.get("autoneg") else ("tx",)
    changes = tuple(
        Change(EthtoolSetting(interface.name, "pause", name), str(pause[name]), "0")
        for name in names
    )
    return Bad(read, "tx pause off", changes)


def _eee(node: Node, interface: Interface) -> Verdict:
    eee = node.ethtool(interface.name, "eee")
    if not eee.get("enabled"):
        return Good("switched off")
    change = Change(EthtoolSetting(interface.name, "eee", "enabled"), str(eee["enabled"]), "0")
    state = "in use" if eee.get("active") else "enabled, not in use"
    return Bad(state, "switched off", (change,))


def _pcie(node: Node, interface: Interface) -> Verdict:
    device = f"/sys/class/net/{interface.name}/device"
    shown, short = [], False
    for what in ("speed", "width"):
        now, most = (
            node.text(f"{device}/{which}_link_{what}").split()[0] for which in ("current", "max")
        )
        shown.append(f"{what} {now} of {most}")
        try:
            short = short or float(now) < float(most)
        except ValueError:
            raise NotApplicable(f"the slot's {what} is not known") from None
    read = ", ".join(shown)
    if not short:
        return Good(read)
    advice = "Seat the card anew, or move it to a slot with all lanes; see the board's manual."
    return Bad(read, "all that the card can", advice=advice)


def _queue_length(_: Node, interface: Interface) -> Verdict:
    length = interface.link["txqlen"]
    if length >= 1000:
        return Good(f"{length} frames")
    change = Change(LinkSetting(interface.name, "txqlen"), str(length), "1000")
    return Bad(f"{length} frames", "at least 1000", (change,))


def _xdp(_: Node, interface: Interface) -> Verdict:
    mode = interface.link.get("xdp")
    if mode not in ("skb", "xdpgeneric", 2):
        return Good("no program in generic mode")
    advice = (
        f"Attach it in native mode, or take it off: ip link set {interface.name} xdpgeneric off"
    )
    return Bad("an XDP program in generic mode", "native mode or none", advice=advice)


def _autoneg(node: Node, interface: Interface) -> Verdict:
    modes = node.ethtool(interface.name, "linkmodes")
    if "Autoneg" not in modes.get("ours-known", []):
        raise NotApplicable("the NIC does not negotiate")
    return judged(node, EthtoolSetting(interface.name, "linkmodes", "autoneg"), exactly(1))


CHECKS = (
    Check(
        name="link.carrier",
        title="The interface is up and has a carrier",
        why="Nothing passes otherwise.",
        sources=(_SYSFS_NET,),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_carrier,
    ),
    Check(
        name="link.address",
        title="The interface has an address",
        why="Programs and launchers do not reach the node by it: it was lost, or never given.",
        sources=("man: rtnetlink(7)",),
        reads=("rtnetlink RTM_GETADDR",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_address,
    ),
    Check(
        name="link.speed",
        title="The link runs at the speed of the NIC",
        why="One bad pair of wires makes a 1 Gbit/s link one of 100 Mbit/s; each exchange with the "
        "node waits for it.",
        sources=("IEEE 802.3, clause 28", "[D3]"),
        reads=(_NETLINK + "LINKMODES_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_speed,
    ),
    Check(
        name="link.duplex",
        title="The link is full duplex",
        why="Half duplex against full duplex loses frames by late collisions under load.",
        sources=("IEEE 802.3, clause 28",),
        reads=(_NETLINK + "LINKMODES_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_duplex,
    ),
    Check(
        name="link.autoneg",
        title="The NIC negotiates with its switch",
        why="Where one side has a fixed setting the other falls back to half duplex, and pause "
        "and speed are guessed.",
        sources=("IEEE 802.3, clause 28",),
        reads=(_NETLINK + "LINKMODES_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.INTERRUPTS,
        look_at=_autoneg,
    ),
    Check(
        name="link.mtu",
        title="The MTU is that of jumbo frames",
        why="Six times the frames, and their processing, for the same bytes.",
        sources=("[A8]", "[D6]"),
        reads=(_LINKS,),
        sure=Sure.MEASURED,
        weight=Weight.COSTLY,
        fix=Fix.INTERRUPTS,
        goals=CLUSTER,
        look_at=_mtu,
    ),
    Check(
        name="link.damage",
        title="Frames arrive undamaged",
        why="Each damaged frame is lost and costs its sender a repair.",
        sources=(_SYSFS_NET + "-statistics",),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look_at=_damage,
    ),
    Check(
        name="link.flaps",
        title="The carrier is steady",
        why="Each time it is gone frames are lost for seconds, and timers back off.",
        sources=(_SYSFS_NET,),
        reads=("/sys/class/net/IFACE/carrier_down_count", "/proc/uptime"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_flaps,
    ),
    Check(
        name="link.pause",
        title="The node does not stop the switch by pause frames",
        why="A switch that is told to pause holds back frames for other nodes behind the same "
        "queue.",
        sources=("IEEE 802.3, annex 31B",),
        reads=(_NETLINK + "PAUSE_GET",),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.INTERRUPTS,
        goals=LATENCY,
        look_at=_pause,
    ),
    Check(
        name="link.eee",
        title="The link does not go to sleep",
        why="Energy-Efficient Ethernet takes 4 to 17 us to wake the link for a single frame.",
        sources=("IEEE 802.3az, 78.5",),
        reads=(_NETLINK + "EEE_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.INTERRUPTS,
        look_at=_eee,
    ),
    Check(
        name="link.pcie",
        title="The NIC has all its PCIe lanes at full speed",
        why="A card in a narrow slot cannot take in what the link brings; frames are lost in its "
        "own memory.",
        sources=("kernel: ABI/testing/sysfs-bus-pci",),
        reads=tuple(
            f"/sys/class/net/IFACE/device/{which}_link_{what}"
            for which in ("current", "max")
            for what in ("speed", "width")
        ),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_pcie,
    ),
    Check(
        name="link.queue_length",
        title="The interface's queue holds a burst",
        why="Frames of a burst beyond it are dropped before they leave the node.",
        sources=("kernel: networking/netdevices.rst",),
        reads=(_LINKS,),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look_at=_queue_length,
    ),
    Check(
        name="link.xdp_generic",
        title="No XDP program runs in generic mode",
        why="In generic mode each frame is copied into one piece first.",
        sources=("kernel: bpf/prog_xdp",),
        reads=(_LINKS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.REPORT,
        look_at=_xdp,
    ),
)
