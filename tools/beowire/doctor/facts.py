# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What should be alike on all nodes of a cluster, as a node tells it."""

import contextlib
from collections.abc import Callable

from beowire import __version__
from beowire.doctor.check import NotApplicable
from beowire.doctor.clock import CURRENT as CURRENT_CLOCK
from beowire.doctor.kernel import preemption
from beowire.doctor.node import Malformed, Node

_DMI = "/sys/class/dmi/id"
_IPV6 = "/proc/sys/net/ipv6/conf"
_GIB_KB = 1024 * 1024


def facts(node: Node) -> dict[str, str]:
    """By name; what cannot be read is left out. Those of interfaces begin with their names."""
    found = {"beowire": __version__}
    told: tuple[tuple[str, Callable[[], str]], ...] = (
        ("kernel", lambda: node.release),
        ("kernel parameters", lambda: " ".join(_parameters(node))),
        ("preemption", lambda: preemption(node)),
        ("processors", lambda: str(len(node.cpus()))),
        ("NUMA nodes", lambda: str(len(node.numa_nodes()))),
        ("memory", lambda: _memory(node)),
        ("clock source", lambda: node.text(CURRENT_CLOCK).strip()),
        ("board", lambda: node.text(f"{_DMI}/product_name").strip()),
        ("firmware", lambda: node.text(f"{_DMI}/bios_version").strip()),
        ("processor model", lambda: _processor(node, "model name")),
        ("microcode", lambda: _processor(node, "microcode")),
    )
    for name, tell in told:
        with contextlib.suppress(OSError, NotApplicable, Malformed):
            found[name] = tell()
    versions: dict[str, str] = {}
    with contextlib.suppress(OSError):
        versions = node.answer("firmware")
    for each in node.interfaces:
        if each.name in versions:
            found[f"{each.name} firmware"] = versions[each.name]
        found[f"{each.name} driver"] = each.driver or each.kind
        found[f"{each.name} mtu"] = str(each.link["mtu"])
        found[f"{each.name} IPv6"] = _six(node, each.name)
        if each.speed_bits:
            found[f"{each.name} speed"] = f"{each.speed_bits // 1_000_000} Mbit/s"
    return found


def _parameters(node: Node) -> list[str]:
    """The kernel's parameters but those that name the node's own disk or address."""
    own = ("root=", "resume=", "ip=", "BOOT_IMAGE=", "initrd=", "BOOTIF=")
    return [word for word in node.command_line if not word.startswith(own)]


def _six(node: Node, interface: str) -> str:
    """Whether the interface speaks IPv6; a kernel may have none at all."""
    try:
        return "off" if node.number(f"{_IPV6}/{interface}/disable_ipv6") else "on"
    except (OSError, Malformed):
        return "off"


def _processor(node: Node, field: str) -> str:
    """What all processors say of themselves, in the order in which they first say it."""
    lines = node.text("/proc/cpuinfo").splitlines()
    pairs = (line.partition(":") for line in lines)
    told = dict.fromkeys(value.strip() for key, _, value in pairs if key.strip() == field)
    if not told:
        raise NotApplicable(f"/proc/cpuinfo has no {field}")
    return ", ".join(told)


def _memory(node: Node) -> str:
    for line in node.text("/proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            return f"{round(int(line.split()[1]) / _GIB_KB)} GiB"
    raise Malformed("/proc/meminfo has no MemTotal")
