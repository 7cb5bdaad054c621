# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of memory: pages, NUMA, swap [E1, E2]."""

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
from beowire.doctor.node import Node
from beowire.doctor.rules import at_most, exactly, judged
from beowire.doctor.setting import FileSetting

_HUGE = "/sys/kernel/mm/transparent_hugepage"
_HUGE_DOCUMENT = "kernel: admin-guide/mm/transhuge.rst"
_VM = "kernel: admin-guide/sysctl/vm.rst"
_SWAPPINESS = "/proc/sys/vm/swappiness"
_SWAPPED_SHARE = 0.01
_IMBALANCE = 0.5


def _choice(node: Node, path: str, bad: set[str], better: str) -> Verdict:
    setting = FileSetting(path, of_choices=True)
    now = setting.read(node)
    if now not in bad:
        return Good(f"{path.rpartition('/')[2]} {now}")
    return Bad(f"{path.rpartition('/')[2]} {now}", better, (Change(setting, now, better),))


def _huge(node: Node) -> Verdict:
    return _choice(node, f"{_HUGE}/enabled", {"never"}, "madvise")


def _defragmentation(node: Node) -> Verdict:
    return _choice(node, f"{_HUGE}/defrag", {"always"}, "madvise")


def _balancing(node: Node) -> Verdict:
    if len(node.numa_nodes()) < 2:
        raise NotApplicable("there is one NUMA node")
    return judged(node, FileSetting("/proc/sys/kernel/numa_balancing"), exactly(0))


def _reclaim(node: Node) -> Verdict:
    if len(node.numa_nodes()) < 2:
        raise NotApplicable("there is one NUMA node")
    return judged(node, FileSetting("/proc/sys/vm/zone_reclaim_mode"), exactly(0))


def _information(node: Node, path: str) -> dict[str, int]:
    """The figures of a meminfo file in kB."""
    found = {}
    for line in node.text(path).splitlines():
        name, _, rest = line.rpartition(":")
        words = rest.split()
        if words and words[0].isdigit():
            found[name.split()[-1]] = int(words[0])
    return found


def _swapped(node: Node) -> Verdict:
    memory = _information(node, "/proc/meminfo")
    total = memory.get("SwapTotal", 0)
    if not total:
        return Good("no swap")
    used = total - memory.get("SwapFree", 0)
    read = f"{used} of {total} kB of swap in use"
    if used <= memory["MemTotal"] * _SWAPPED_SHARE:
        return Good(read)
    advice = "Give the node's jobs less memory, or swapoff -a once there is room."
    return Bad(read, "none to speak of", advice=advice)


def _swappiness(node: Node) -> Verdict:
    if not _information(node, "/proc/meminfo").get("SwapTotal"):
        raise NotApplicable("there is no swap")
    return judged(node, FileSetting(_SWAPPINESS), at_most(10))


def _uneven(node: Node) -> Verdict:
    nodes = node.numa_nodes()
    if len(nodes) < 2:
        raise NotApplicable("there is one NUMA node")
    base = "/sys/devices/system/node"
    sizes = {
        each: _information(node, f"{base}/node{each}/meminfo").get("MemTotal", 0) for each in nodes
    }
    read = ", ".join(f"node {each}: {size // 1024} MiB" for each, size in sizes.items())
    if min(sizes.values()) >= _IMBALANCE * max(sizes.values()):
        return Good(read)
    return Bad(read, "alike on all nodes", advice="Put the memory modules in evenly.")


CHECKS = (
    Check(
        name="memory.huge_pages",
        title="Programs can get huge pages",
        why="Large buffers need hundreds of times the TLB entries without them.",
        sources=("[E2]", _HUGE_DOCUMENT),
        reads=(f"{_HUGE}/enabled",),
        sure=Sure.MEASURED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_huge,
    ),
    Check(
        name="memory.defragmentation",
        title="Touching memory does not wait for huge pages",
        why="With always a page fault may compact memory for milliseconds.",
        sources=(_HUGE_DOCUMENT,),
        reads=(f"{_HUGE}/defrag",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        goals=LATENCY,
        look=_defragmentation,
    ),
    Check(
        name="memory.balancing",
        title="The kernel does not move pages between NUMA nodes",
        why="It unmaps pages to see who uses them; bound ranks gain nothing by it.",
        sources=("[E1]", "kernel: admin-guide/sysctl/kernel.rst"),
        reads=("/proc/sys/kernel/numa_balancing", "/sys/devices/system/node/online"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_balancing,
    ),
    Check(
        name="memory.reclaim",
        title="A full NUMA node takes memory from the other ones",
        why="Otherwise the page cache is written out while other nodes have memory to spare.",
        sources=("[E1]", _VM),
        reads=("/proc/sys/vm/zone_reclaim_mode",),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look=_reclaim,
    ),
    Check(
        name="memory.swapped",
        title="Nothing lies in swap",
        why="A rank that waits for a disk makes all others wait.",
        sources=(_VM,),
        reads=("/proc/meminfo",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
        fix=Fix.REPORT,
        look=_swapped,
    ),
    Check(
        name="memory.uneven",
        title="NUMA nodes have memory alike",
        why="What does not fit the near node goes over the link between the sockets.",
        sources=("[A9]", "[E1]"),
        reads=("/sys/devices/system/node/node*/meminfo",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.REPORT,
        look=_uneven,
    ),
    Check(
        name="memory.swappiness",
        title="Programs' memory is kept rather than files'",
        why="At the usual value idle buffers of a job go to disk while files are cached.",
        sources=(_VM,),
        reads=(_SWAPPINESS, "/proc/meminfo"),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_swappiness,
    ),
)
