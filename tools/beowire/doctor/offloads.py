# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of what the NIC, or the kernel just before it, does for many frames at once [A8]."""

from functools import partial

from beowire.doctor.check import (
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
from beowire.doctor.node import Interface, Node
from beowire.doctor.setting import EthtoolSetting, LinkSetting

_SEGMENTATION = "kernel: networking/segmentation-offloads.rst"
_CHECKSUMS = "kernel: networking/checksum-offloads.rst"
_SEGMENTS = 45
"""Of 1448 bytes, in 64 KiB."""
_LARGE_BYTES = 65536


def _on(features: tuple[str, ...], node: Node, interface: Interface) -> Verdict:
    """Those of the features that the interface can switch are on."""
    answer = node.ethtool(interface.name, "features")
    can = [
        each
        for each in features
        if each in answer.get("hw", []) and each not in answer.get("nochange", [])
    ]
    if not can:
        raise NotApplicable("the interface cannot switch it")
    off = [each for each in can if each not in answer["active"]]
    if not off:
        return Good(f"{', '.join(can)} on")
    changes = tuple(
        Change(EthtoolSetting(interface.name, "features", each), "0", "1") for each in off
    )
    return Bad(f"{', '.join(off)} off", "on", changes)


def _lro(node: Node, interface: Interface) -> Verdict:
    answer = node.ethtool(interface.name, "features")
    if "rx-lro" not in answer.get("hw", []):
        raise NotApplicable("the interface has no LRO")
    if "rx-lro" not in answer["active"]:
        return Good("rx-lro off")
    change = Change(EthtoolSetting(interface.name, "features", "rx-lro"), "1", "0")
    return Bad("rx-lro on", "off", (change,))


def _largest(name: str, _: Node, interface: Interface) -> Verdict:
    now = interface.link.get(name)
    most = interface.link.get("tso_max_size") or 0
    if not now or (name == "gso_max_size" and most < _LARGE_BYTES):
        raise NotApplicable("the interface names no such size, or cannot take one of 64 KiB")
    if now >= _LARGE_BYTES:
        return Good(f"{name} {now}")
    change = Change(LinkSetting(interface.name, name), str(now), str(_LARGE_BYTES))
    return Bad(f"{name} {now}", f"at least {_LARGE_BYTES}", (change,))


def _segments(_: Node, interface: Interface) -> Verdict:
    now, most = interface.link.get("gso_max_segs"), interface.link.get("tso_max_segs")
    if not now or not most:
        raise NotApplicable("the kernel does not tell it")
    read = f"gso_max_segs {now}"
    if now >= min(most, _SEGMENTS):
        return Good(read)
    change = Change(LinkSetting(interface.name, "gso_max_segs"), str(now), str(most))
    return Bad(read, f"at least {min(most, _SEGMENTS)}", (change,))


_FEATURES = (
    (
        "checksum_send",
        ("tx-checksum-ip-generic", "tx-checksum-ipv4", "tx-checksum-ipv6"),
        "Checksums of what is sent are left to the NIC",
        "Otherwise the processor reads each byte once more, and segmentation is off as well.",
        _CHECKSUMS,
        Weight.COSTLY,
    ),
    (
        "checksum_receive",
        ("rx-checksum",),
        "Checksums of what is received are verified by the NIC",
        "Otherwise the processor reads each byte once more.",
        _CHECKSUMS,
        Weight.COSTLY,
    ),
    (
        "scatter_gather",
        ("tx-scatter-gather",),
        "Frames are sent from where their parts lie",
        "Otherwise each frame is copied into one piece, and segmentation is off as well.",
        _SEGMENTATION,
        Weight.COSTLY,
    ),
    (
        "tso",
        ("tx-tcp-segmentation", "tx-tcp6-segmentation"),
        "The NIC cuts long TCP segments",
        "Otherwise each frame of a long message takes its own way through the stack.",
        _SEGMENTATION,
        Weight.COSTLY,
    ),
    (
        "gso",
        ("tx-generic-segmentation",),
        "Long segments are cut just before the NIC",
        "Otherwise each frame of a long message takes its own way through the stack.",
        _SEGMENTATION,
        Weight.COSTLY,
    ),
    (
        "gro",
        ("rx-gro",),
        "Frames of one message are joined on receipt",
        "Otherwise each frame of a long message takes its own way through the stack. [A11] saw a "
        "case in which it cost time: measure.",
        _SEGMENTATION,
        Weight.COSTLY,
    ),
)


CHECKS = (
    *(
        Check(
            name=f"offloads.{name}",
            title=title,
            why=why,
            sources=("[A8]", source),
            reads=("ethtool netlink FEATURES_GET",),
            sure=Sure.DOCUMENTED,
            weight=weight,
            fix=Fix.LIVE,
            look_at=partial(_on, features),
        )
        for name, features, title, why, source, weight in _FEATURES
    ),
    Check(
        name="offloads.lro",
        title="The NIC does not join frames beyond recognition",
        why="LRO holds frames back to join them and loses their boundaries; GRO does not.",
        sources=(_SEGMENTATION,),
        reads=("ethtool netlink FEATURES_GET",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        goals=LATENCY,
        look_at=_lro,
    ),
    *(
        Check(
            name=f"offloads.{name}",
            title=f"Super-frames may be 64 KiB long when {done}",
            why="Smaller ones mean more ways through the stack for the same bytes.",
            sources=("[A8]", _SEGMENTATION),
            reads=("rtnetlink RTM_GETLINK",),
            sure=Sure.DOCUMENTED,
            weight=Weight.SLIGHT,
            fix=Fix.LIVE,
            look_at=partial(_largest, attribute),
        )
        for name, attribute, done in (
            ("gso_size", "gso_max_size", "sent"),
            ("gro_size", "gro_max_size", "received"),
        )
    ),
    Check(
        name="offloads.gso_segments",
        title="Super-frames may have all the segments that fill them",
        why="With few segments they are short, whatever their size may be.",
        sources=("man: ip-link(8)", _SEGMENTATION),
        reads=("rtnetlink RTM_GETLINK",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look_at=_segments,
    ),
)
