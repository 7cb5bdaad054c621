# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of what the caller's processes may do, as /proc/self/limits tells."""

from functools import partial

from beowire.doctor.check import (
    ALL_GOALS,
    LATENCY,
    Bad,
    Check,
    Fix,
    Good,
    NotApplicable,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Node

_LIMITS = "/proc/self/limits"
_PAM = "man: limits.conf(5)"
_LOCKED_BYTES = 64 * 1024 * 1024
_FILES = 4096
_PRIORITY = 1


def _hard(node: Node, name: str) -> float:
    for line in node.text(_LIMITS).splitlines():
        if line.startswith(name):
            value = line.removeprefix(name).split()[1]
            return float("inf") if value == "unlimited" else float(value)
    raise NotApplicable("the kernel does not list it")


def _limit(name: str, least: int, item: str, node: Node) -> Verdict:
    now = _hard(node, name)
    read = "unlimited" if now == float("inf") else f"{now:.0f}"
    if now >= least:
        return Good(read)
    advice = (
        f"Write '* - {item} {least}' into /etc/security/limits.d/beowire.conf, "
        "and the same limit into the batch system's unit; it holds from the next login."
    )
    return Bad(read, f"at least {least}", advice=advice)


CHECKS = tuple(
    Check(
        name=f"limits.{noun}",
        title=title,
        why=why,
        sources=sources,
        reads=(_LIMITS,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        goals=goals,
        look=partial(_limit, name, least, item),
    )
    for noun, name, least, item, title, why, sources, goals in (
        (
            "locked_memory",
            "Max locked memory",
            _LOCKED_BYTES,
            "memlock",
            "Programs may lock their buffers",
            "Rings mapped from the kernel and registered buffers count; without room they fail or "
            "fall back to copies.",
            (_PAM, "kernel: networking/packet_mmap.rst"),
            ALL_GOALS,
        ),
        (
            "files",
            "Max open files",
            _FILES,
            "nofile",
            "Programs may open many connections",
            "A job of thousands of ranks over TCP needs as many descriptors in each.",
            (_PAM,),
            ALL_GOALS,
        ),
        (
            "priority",
            "Max realtime priority",
            _PRIORITY,
            "rtprio",
            "Jobs may take real-time priority",
            "Without it a rank cannot be put before the node's services.",
            ("[A9]", _PAM),
            LATENCY,
        ),
    )
)
