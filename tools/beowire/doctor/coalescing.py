# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of interrupt coalescing: what suits long messages delays short ones [D5]."""

from beowire.doctor.check import (
    LATENCY,
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
from beowire.doctor.node import Interface, Node
from beowire.doctor.setting import EthtoolSetting

_SHORT_US = 8
_LONG_US = 50
_IGNORING = {"netdevsim"}
"""Drivers that keep what they are told, and coalesce nothing."""
_ADAPTIVE_BY_VALUE = {"e1000", "e1000e", "igb", "igc"}
"""Drivers that take 1 and 3 us for their adaptive modes."""


def _setting(interface: Interface, name: str) -> EthtoolSetting:
    return EthtoolSetting(interface.name, "coalesce", name)


def _coalesce(node: Node, interface: Interface) -> dict[str, int]:
    if not interface.physical or interface.driver in _IGNORING:
        raise NotApplicable("it has no interrupts to coalesce")
    found: dict[str, int] = node.ethtool(interface.name, "coalesce")
    return found


def _adapts(interface: Interface, coalesce: dict[str, int]) -> bool:
    by_value = interface.driver in _ADAPTIVE_BY_VALUE and coalesce.get("rx-usecs") in (1, 3)
    return bool(coalesce.get("adaptive-rx")) or by_value


def _adaptive(node: Node, interface: Interface) -> Verdict:
    coalesce = _coalesce(node, interface)
    if "adaptive-rx" not in coalesce and interface.driver not in _ADAPTIVE_BY_VALUE:
        raise NotApplicable("the driver has no adaptive coalescing")
    if not _adapts(interface, coalesce):
        return Good("adaptive-rx off")
    name, now = ("adaptive-rx", 1) if coalesce.get("adaptive-rx") else ("rx-usecs", 0)
    old = coalesce[name]
    change = Change(_setting(interface, name), str(old), str(1 - now))
    if name == "rx-usecs":
        change = Change(change.setting, str(old), "0")
    return Bad("it adapts to the load", "a fixed short time", (change,))


def _short(node: Node, interface: Interface) -> Verdict:
    coalesce = _coalesce(node, interface)
    if "rx-usecs" not in coalesce:
        raise NotApplicable("the driver has no time to set")
    now = coalesce["rx-usecs"]
    if now <= _SHORT_US:
        return Good(f"rx-usecs {now}")
    change = Change(_setting(interface, "rx-usecs"), str(now), "0")
    return Bad(f"rx-usecs {now}", f"at most {_SHORT_US}", (change,))


def _frames(node: Node, interface: Interface) -> Verdict:
    coalesce = _coalesce(node, interface)
    if "rx-frames" not in coalesce:
        raise NotApplicable("the driver has no number of frames to set")
    now = coalesce["rx-frames"]
    if now <= 1 or coalesce.get("rx-usecs"):
        return Good(f"rx-frames {now}, rx-usecs {coalesce.get('rx-usecs', 'none')}")
    change = Change(_setting(interface, "rx-frames"), str(now), "1")
    return Bad(f"rx-frames {now} without a limit of time", "1", (change,))


def _long(node: Node, interface: Interface) -> Verdict:
    coalesce = _coalesce(node, interface)
    now = coalesce.get("rx-usecs")
    if now is None:
        raise NotApplicable("the driver has no time to set")
    if _adapts(interface, coalesce) or now >= _SHORT_US:
        return Good(
            f"rx-usecs {now}, adaptive-rx {'on' if _adapts(interface, coalesce) else 'off'}"
        )
    if "adaptive-rx" in coalesce:
        change = Change(_setting(interface, "adaptive-rx"), "0", "1")
    else:
        change = Change(_setting(interface, "rx-usecs"), str(now), str(_LONG_US))
    return Bad(f"rx-usecs {now}, adaptive-rx off", "adaptive, or a longer time", (change,))


def _coalescing(name: str, **rest: object) -> Check:
    return Check(
        name=f"coalescing.{name}",
        sources=("[D5]", "kernel: networking/ethtool-netlink.rst"),
        reads=("ethtool netlink COALESCE_GET",),
        fix=Fix.LIVE,
        **rest,  # type: ignore[arg-type]
    )


CHECKS = (
    _coalescing(
        "adaptive",
        title="Interrupts do not wait by an estimate of the load",
        why="After a burst single messages wait for as long as the burst made good.",
        sure=Sure.MEASURED,
        weight=Weight.COSTLY,
        goals=LATENCY,
        look_at=_adaptive,
    ),
    _coalescing(
        "receive_short",
        title="A single frame is told at once",
        why="Each message waits for the time set here, each way: often several times the latency "
        "of the wire.",
        sure=Sure.MEASURED,
        weight=Weight.SEVERE,
        goals=LATENCY,
        look_at=_short,
    ),
    _coalescing(
        "receive_frames",
        title="A single frame does not wait for others",
        why="Without a limit of time a frame waits until enough others have come.",
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        goals=LATENCY,
        look_at=_frames,
    ),
    _coalescing(
        "receive_long",
        title="Frames of long messages share an interrupt",
        why="An interrupt for each frame takes the time that frames need.",
        sure=Sure.MEASURED,
        weight=Weight.COSTLY,
        goals=THROUGHPUT,
        look_at=_long,
    ),
)
