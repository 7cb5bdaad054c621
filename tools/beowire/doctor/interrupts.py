# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of where a NIC's interrupts are served."""

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
from beowire.doctor.node import Interface, Node, parse_cpus
from beowire.doctor.processes import named
from beowire.doctor.setting import FileSetting
from beowire.doctor.words import counted

_AFFINITY = "kernel: core-api/irq/irq-affinity.rst"
_SCALING = "kernel: networking/scaling.rst"
_FEW = 2
"""A NIC with one pair of queues has little to spread; one interrupt tells of its link."""


def _device(node: Node, interface: Interface) -> str:
    """The directory of the device that has the interrupts: a virtio NIC's is its parent."""
    for place in ("device", "device/.."):
        directory = f"/sys/class/net/{interface.name}/{place}"
        if node.listed(f"{directory}/msi_irqs"):
            return directory
    raise NotApplicable("it has no interrupts of its own")


def _busy_interrupts(node: Node, interface: Interface) -> list[int]:
    """Those of the interface's interrupts that came at all: the queues'."""
    wanted = {int(number) for number in node.names(f"{_device(node, interface)}/msi_irqs")}
    found = []
    lines = node.text("/proc/interrupts").splitlines()
    columns = len(lines[0].split()) if lines else 0
    for line in lines[1:]:
        number, _, rest = line.partition(":")
        counts = rest.split()[:columns]
        if number.strip().isdigit() and int(number) in wanted and any(map(int, counts)):
            found.append(int(number))
    return found


def _serving(node: Node, interrupt: int) -> list[int]:
    """The processors that serve an interrupt."""
    for name in ("effective_affinity_list", "smp_affinity_list"):
        path = f"/proc/irq/{interrupt}/{name}"
        if node.exists(path) and node.text(path).strip():
            return parse_cpus(node.text(path))
    return []


def _moved(node: Node, interrupts: list[int], cpus: list[int]) -> tuple[Change, ...]:
    changes = []
    for position, interrupt in enumerate(interrupts):
        setting = FileSetting(f"/proc/irq/{interrupt}/smp_affinity_list")
        changes.append(Change(setting, setting.read(node), str(cpus[position % len(cpus)])))
    return tuple(changes)


def _spread(node: Node, interface: Interface) -> Verdict:
    interrupts = _busy_interrupts(node, interface)
    cpus = node.cpus()
    if len(interrupts) <= _FEW or len(cpus) < 2:
        raise NotApplicable("it has too few interrupts, or there is one processor")
    serving = {cpu for each in interrupts for cpu in _serving(node, each)[:1]}
    read = f"{counted(len(interrupts), 'interrupt')} on {counted(len(serving), 'processor')}"
    if len(serving) > 1:
        return Good(read)
    return Bad(read, "spread over the processors", _moved(node, interrupts, cpus))


def _near(node: Node, interface: Interface) -> Verdict:
    device = _device(node, interface)
    if len(node.numa_nodes()) < 2:
        raise NotApplicable("there is one NUMA node")
    home = node.number(f"{device}/numa_node")
    if home < 0:
        raise NotApplicable("the firmware does not tell the NIC's NUMA node")
    local = parse_cpus(node.text(f"/sys/devices/system/node/node{home}/cpulist"))
    interrupts = _busy_interrupts(node, interface)
    far = [each for each in interrupts if not set(_serving(node, each)) & set(local)]
    read = f"{len(far)} of {len(interrupts)} interrupts far from NUMA node {home}"
    if not far:
        return Good(read)
    return Bad(read, f"all on node {home}", _moved(node, far, local))


def _balancer(node: Node) -> Verdict:
    if not named(node, "irqbalance"):
        return Good("irqbalance does not run")
    return Bad(
        "irqbalance runs",
        "interrupts that stay where they are",
        advice="systemctl disable --now irqbalance, or ban the NIC's interrupts "
        "(IRQBALANCE_BANNED_CPULIST, --banirq)",
    )


CHECKS = (
    Check(
        name="interrupts.spread",
        title="The NIC's interrupts are served by several processors",
        why="One processor that serves all queues is the bottleneck.",
        sources=(_AFFINITY, _SCALING),
        reads=(
            "/sys/class/net/IFACE/device/msi_irqs",
            "/proc/interrupts",
            "/proc/irq/*/effective_affinity_list",
        ),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look_at=_spread,
    ),
    Check(
        name="interrupts.near",
        title="The NIC's interrupts are served on its own NUMA node",
        why="Elsewhere each frame crosses between the sockets before a program sees it.",
        sources=("[A9]", "[E1]", _SCALING),
        reads=("/sys/class/net/IFACE/device/numa_node", "/proc/irq/*/effective_affinity_list"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look_at=_near,
    ),
    Check(
        name="interrupts.balancer",
        title="Nothing moves the NIC's interrupts about",
        why="After each move caches are cold, and a processor that computes is interrupted.",
        sources=(_AFFINITY,),
        reads=("/proc/*/comm",),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        goals=LATENCY,
        look=_balancer,
    ),
)
