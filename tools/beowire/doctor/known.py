# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The settings that the doctor changes, and which of them are one for the whole machine.

An undo file is a file: what stands in it is written only where a check or `persist` could have
written too.
"""

import re

_NAME = r"[^/\0]+"
_CPU = "/sys/devices/system/cpu"
_FILES = re.compile(
    "|".join(
        (
            rf"/proc/sys/net/(?:{_NAME}/)*{_NAME}",
            r"/proc/sys/kernel/(?:nmi_watchdog|sched_autogroup_enabled|numa_balancing)",
            r"/proc/sys/vm/(?:swappiness|zone_reclaim_mode)",
            r"/proc/irq/\d+/smp_affinity_list",
            rf"/sys/class/net/{_NAME}/(?:threaded|gro_flush_timeout|napi_defer_hard_irqs)",
            rf"/sys/class/net/{_NAME}/queues/[rt]x-\d+/(?:rps_cpus|rps_flow_cnt|xps_cpus)",
            rf"{_CPU}/cpufreq/policy\d+/"
            r"(?:scaling_governor|scaling_max_freq|energy_performance_preference)",
            rf"{_CPU}/(?:cpufreq/boost|intel_pstate/no_turbo)",
            rf"{_CPU}/cpu\d+/cpuidle/state\d+/disable",
            r"/sys/kernel/mm/transparent_hugepage/(?:enabled|defrag)",
            r"/sys/devices/system/clocksource/clocksource0/current_clocksource",
        )
    )
)
_CONFIGURATIONS = re.compile(
    rf"(?:/{_NAME})*/etc/(?:sysctl\.d/90-beowire\.conf|tmpfiles\.d/beowire\.conf"
    rf"|systemd/network/10-beowire-{_NAME}\.link|tuned/(?:profiles/)?beowire/tuned\.conf)"
)
"""Below any folder: that of an image."""
_INTERFACE = re.compile(r"[^/\s:\0]{1,15}")
_OF_NETWORK = ("/proc/sys/net/", "/sys/class/net/")
_SHOWN_ONLY = re.compile(r"/proc/sys/net/core/[rw]mem_(?:max|default)")
"""Every network namespace shows these values of the first one, and lets nobody change them."""


def _plain(path: str) -> bool:
    return not {"", ".", ".."} & set(path.split("/")[1:])


def file(path: str) -> bool:
    """Whether the doctor changes this file of the kernel's."""
    return _plain(path) and bool(_FILES.fullmatch(path))


def configuration(path: str) -> bool:
    """Whether `persist` writes this file."""
    return _plain(path) and bool(_CONFIGURATIONS.fullmatch(path))


def interface(name: str) -> bool:
    """Whether an interface can have this name (dev_valid_name() in net/core/dev.c)."""
    return name not in {".", ".."} and bool(_INTERFACE.fullmatch(name))


def of_machine(path: str) -> bool:
    """Whether a file of the kernel's holds for all network namespaces."""
    return not path.startswith(_OF_NETWORK) or bool(_SHOWN_ONLY.fullmatch(path))
