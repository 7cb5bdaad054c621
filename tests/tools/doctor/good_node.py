# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A node configured well, by hand: what a network namespace can hold is set there, the rest is
recorded.

Recorded are the settings of a whole machine, which no test may change, and two NICs: `nic0` with
four queues, rings, PCIe and interrupts, and `nic1`, an older one with a single queue. The node has
four processors on two NUMA nodes.
"""

import copy
from typing import Any

CPUS = 4
_QUEUES = range(CPUS)
_HUGE_BUFFER = "268435456"

NETWORK_SYSCTLS = {
    "ipv4/tcp_window_scaling": "1",
    "ipv4/tcp_sack": "1",
    "ipv4/tcp_dsack": "1",
    "ipv4/tcp_recovery": "1",
    "ipv4/tcp_timestamps": "1",
    "ipv4/tcp_moderate_rcvbuf": "1",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_ecn": "2",
    "ipv4/tcp_mtu_probing": "1",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_autocorking": "0",
    "ipv4/tcp_limit_output_bytes": "4194304",
    "ipv4/tcp_adv_win_scale": "1",
    "ipv4/tcp_pacing_ss_ratio": "200",
    "ipv4/tcp_max_syn_backlog": "4096",
    "ipv4/tcp_reordering": "3",
    "ipv4/tcp_retries2": "15",
    "ipv4/ip_local_port_range": "32768 60999",
    "ipv4/tcp_rmem": f"4096 131072 {_HUGE_BUFFER}",
    "ipv4/tcp_wmem": f"4096 16384 {_HUGE_BUFFER}",
    "ipv4/tcp_max_tw_buckets": "131072",
    "ipv4/tcp_notsent_lowat": "4294967295",
    "ipv4/tcp_base_mss": "1024",
    "ipv4/icmp_echo_ignore_all": "0",
    "ipv4/ip_forward": "0",
    "ipv4/conf/all/arp_ignore": "1",
    "ipv4/conf/all/arp_announce": "2",
    "ipv4/conf/all/rp_filter": "0",
    "ipv4/conf/default/rp_filter": "0",
    "core/somaxconn": "4096",
    "core/optmem_max": "131072",
}
"""Below /proc/sys/net, in the namespace."""

_CONFIGURATION = "CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_NO_HZ_FULL=y\n"

_INTERRUPTS = "           CPU0       CPU1       CPU2       CPU3\n" + "".join(
    f" {100 + queue}:  {5000 + queue}  0  0  0  IR-PCI-MSI {queue}-edge  nic0-TxRx-{queue}\n"
    for queue in _QUEUES
)

_LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 1048576              files
Max locked memory         unlimited            unlimited            bytes
Max realtime priority     0                    99
"""

_CPU = "/sys/devices/system/cpu"
_NODE = "/sys/devices/system/node"
_HUGE = "/sys/kernel/mm/transparent_hugepage"
_CLOCK = "/sys/devices/system/clocksource/clocksource0"
_STAT = "4242 (ring) S 1 4242 4242 0 -1 0 0 0 0 0 9 3 0 0 20 {nice} 1 0 100 0 0"


def _machine() -> dict[str, str]:
    """Settings of the whole machine."""
    sysctls = {
        "kernel/hostname": "good",
        "kernel/nmi_watchdog": "0",
        "kernel/sched_autogroup_enabled": "0",
        "kernel/sched_schedstats": "0",
        "kernel/task_delayacct": "0",
        "kernel/bpf_stats_enabled": "0",
        "kernel/numa_balancing": "0",
        "kernel/random/boot_id": "5d1c1f6e-5f0e-4a0c-8f57-0e8a7e5f3c11",
        "vm/swappiness": "10",
        "vm/zone_reclaim_mode": "0",
        "net/core/netdev_budget": "600",
        "net/core/netdev_budget_usecs": "8000",
        "net/core/dev_weight": "64",
        "net/core/busy_read": "50",
        "net/core/busy_poll": "50",
        "net/core/netdev_max_backlog": "10000",
        "net/core/rmem_max": _HUGE_BUFFER,
        "net/core/wmem_max": _HUGE_BUFFER,
        "net/core/rmem_default": "212992",
        "net/core/wmem_default": "212992",
        "net/core/rps_sock_flow_entries": "32768",
        "net/ipv4/tcp_mem": "1000000\t2000000\t4000000",
        "net/ipv4/neigh/default/gc_thresh2": "4096",
        "net/ipv4/neigh/default/gc_thresh3": "8192",
        "net/netfilter/nf_conntrack_max": "262144",
        "net/bridge/bridge-nf-call-iptables": "0",
    }
    files = {f"/proc/sys/{name}": f"{value}\n" for name, value in sysctls.items()}
    files |= {
        "/etc/hosts": "127.0.0.1 localhost\n10.9.9.1 good\n",
        "/proc/cmdline": "root=/dev/sda1 nohz_full=2-3 isolcpus=managed_irq,domain,2-3\n",
        "/proc/config.gz": _CONFIGURATION,
        "/proc/uptime": "86400.00 100000.00\n",
        "/proc/stat": "cpu  1000 0 500 90000 10 0 5 0 0 0\n",
        "/proc/meminfo": "MemTotal: 1000000 kB\nSwapTotal: 500000 kB\nSwapFree: 500000 kB\n",
        "/proc/interrupts": _INTERRUPTS,
        "/proc/net/softnet_stat": "000186a0 00000000 00000000 00000000\n" * CPUS,
        "/proc/self/limits": _LIMITS,
        "/proc/self/cgroup": "0::/job.slice/job7\n",
        "/proc/1/comm": "systemd\n",
        "/proc/4242/comm": "ring\n",
        "/proc/4242/environ": "HOME=/root\0OMPI_COMM_WORLD_RANK=0\0",
        "/proc/4242/stat": _STAT.format(nice=0),
        f"{_CPU}/online": "0-3\n",
        f"{_CPU}/present": "0-3\n",
        f"{_CPU}/nohz_full": "2-3\n",
        f"{_CPU}/isolated": "2-3\n",
        f"{_CPU}/cpufreq/boost": "1\n",
        f"{_NODE}/online": "0-1\n",
        f"{_HUGE}/enabled": "always [madvise] never\n",
        f"{_HUGE}/defrag": "always defer defer+madvise [madvise] never\n",
        f"{_CLOCK}/current_clocksource": "tsc\n",
        f"{_CLOCK}/available_clocksource": "tsc hpet acpi_pm\n",
    }
    for group in ("", "/job.slice", "/job.slice/job7"):
        files[f"/sys/fs/cgroup{group}/cgroup.controllers"] = "cpu memory\n"
    for each in (0, 1):
        files[f"{_NODE}/node{each}/cpulist"] = f"{2 * each}-{2 * each + 1}\n"
        files[f"{_NODE}/node{each}/meminfo"] = f"Node {each} MemTotal:  500000 kB\n"
    for group in ("/job.slice", "/job.slice/job7"):
        files[f"/sys/fs/cgroup{group}/cpu.max"] = "max 100000\n"
        files[f"/sys/fs/cgroup{group}/cpu.stat"] = "usage_usec 12\nnr_throttled 0\n"
        files[f"/sys/fs/cgroup{group}/memory.high"] = "max\n"
    for cpu in range(CPUS):
        policy, idle = f"{_CPU}/cpufreq/policy{cpu}", f"{_CPU}/cpu{cpu}/cpuidle"
        files |= {
            f"{policy}/scaling_governor": "performance\n",
            f"{policy}/energy_performance_preference": "performance\n",
            f"{policy}/scaling_max_freq": "3000000\n",
            f"{policy}/cpuinfo_max_freq": "3000000\n",
            f"{_CPU}/cpu{cpu}/thermal_throttle/core_throttle_count": "0\n",
        }
        for state, (name, wake_us, disable) in enumerate(
            (("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 1))
        ):
            files |= {
                f"{idle}/state{state}/name": f"{name}\n",
                f"{idle}/state{state}/latency": f"{wake_us}\n",
                f"{idle}/state{state}/disable": f"{disable}\n",
            }
    return files


def _nic_files(name: str, queues: int) -> dict[str, str]:
    base = f"/sys/class/net/{name}"
    files = {
        f"{base}/carrier_down_count": "1\n",
        f"{base}/threaded": "0\n",
        f"{base}/gro_flush_timeout": "0\n",
        f"{base}/napi_defer_hard_irqs": "0\n",
        f"{base}/device/current_link_speed": "8.0 GT/s PCIe\n",
        f"{base}/device/max_link_speed": "8.0 GT/s PCIe\n",
        f"{base}/device/current_link_width": "8\n",
        f"{base}/device/max_link_width": "8\n",
        f"{base}/device/numa_node": "0\n",
    }
    for queue in range(queues):
        files |= {
            f"{base}/queues/rx-{queue}/rps_cpus": "0\n",
            f"{base}/queues/rx-{queue}/rps_flow_cnt": "0\n",
            f"{base}/queues/tx-{queue}/xps_cpus": f"{1 << queue:x}\n",
        }
    return files


def _link(name: str, index: int) -> dict[str, Any]:
    return {
        "name": name,
        "index": index,
        "up": True,
        "addresses": [f"10.{index % 250}.0.1/24"],
        "mtu": 9000,
        "min_mtu": 68,
        "max_mtu": 9216,
        "txqlen": 1000,
        "gso_max_size": 65536,
        "gso_max_segs": 65535,
        "tso_max_segs": 65535,
        "arp": True,
        "gro_max_size": 65536,
        "tso_max_size": 65536,
        "tx_queues": CPUS,
        "rx_queues": CPUS,
        "state": "UP",
        "master": None,
        "below": None,
        "carrier": 1,
        "address": f"02:00:00:00:0{index % 10}:01",
        "permanent_address": f"02:00:00:00:0{index % 10}:01",
        "promiscuity": 0,
        "kind": None,
        "xdp": None,
        "counters": {"rx_packets": 10_000_000, "tx_packets": 10_000_000},
    }


_FEATURES = [
    "tx-checksum-ipv4",
    "tx-checksum-ipv6",
    "rx-checksum",
    "tx-scatter-gather",
    "tx-tcp-segmentation",
    "tx-tcp6-segmentation",
    "tx-generic-segmentation",
    "rx-gro",
]
_MODES = ["Autoneg", "1000baseT/Full", "10000baseT/Full"]


def _ethtool(queues: int) -> dict[str, dict[str, Any]]:
    return {
        "linkmodes": {
            "autoneg": 1,
            "ours": _MODES,
            "ours-known": _MODES,
            "peer": _MODES,
            "peer-known": _MODES,
            "speed": 10000,
            "duplex": 1,
        },
        "features": {"hw": [*_FEATURES, "rx-lro"], "active": _FEATURES, "nochange": []},
        "rings": {"rx-max": 4096, "tx-max": 4096, "rx": 4096, "tx": 4096, "tcp-data-split": 2},
        "channels": {"combined-max": queues, "combined": queues},
        "coalesce": {
            "rx-usecs": 0,
            "rx-frames": 1,
            "tx-usecs": 0,
            "adaptive-rx": 0,
            "adaptive-tx": 0,
        },
        "pause": {"autoneg": 0, "rx": 0, "tx": 0},
        "eee": {"active": 0, "enabled": 0},
        "rss": {"hfunc": 1, "indir": [entry % queues for entry in range(128)]},
    }


class GoodNode:
    """What is recorded of the node, for a test to change as it likes."""

    def __init__(self, goal: str) -> None:
        self.files = _machine() | _nic_files("nic0", CPUS) | _nic_files("nic1", 1)
        self.targets = {
            "/sys/class/net/nic0/device/driver": "../../../bus/pci/drivers/fast",
            "/sys/class/net/nic1/device/driver": "../../../bus/pci/drivers/old",
        }
        self.links = [_link("nic0", 1000), _link("nic1", 1001)]
        self.ethtool = copy.deepcopy({"nic0": _ethtool(CPUS), "nic1": _ethtool(1)})
        self.answers: dict[str, Any] = {
            "clock": {"synchronized": True, "offset_us": 3.5, "largest_error_us": 900},
            "qdiscs": [self.qdisc("nic0"), self.qdisc("nic1")],
            "napi": [{"index": 1000 + nic, "id": 1 + nic} for nic in (0, 1)],
        }
        for queue in _QUEUES:
            self.files[f"/sys/class/net/nic0/device/msi_irqs/{100 + queue}"] = "msix\n"
            for name in ("effective_affinity_list", "smp_affinity_list"):
                self.files[f"/proc/irq/{100 + queue}/{name}"] = f"{queue % 2}\n"
        if goal != "latency":
            self._for_throughput()
        if goal == "wan":
            self.files["/proc/sys/net/ipv4/tcp_congestion_control"] = "bbr\n"

    def _for_throughput(self) -> None:
        for nic in self.ethtool.values():
            nic["coalesce"]["adaptive-rx"] = 1
        queue = "/sys/class/net/nic1/queues/rx-0"
        self.files[f"{queue}/rps_cpus"] = "f\n"
        self.files[f"{queue}/rps_flow_cnt"] = "32768\n"

    def qdisc(self, interface: str, kind: str = "fq", **counts: int) -> dict[str, Any]:
        index = next(each["index"] for each in self.links if each["name"] == interface)
        return {
            "index": index,
            "kind": kind,
            "parent": 0xFFFFFFFF,
            "packets": 10_000_000,
            "drops": 0,
            "overlimits": 0,
            "limit": 10_000,
        } | counts

    def link(self, name: str) -> dict[str, Any]:
        return next(each for each in self.links if each["name"] == name)

    def sysctl(self, name: str, value: str) -> None:
        """Changes a recorded sysctl."""
        path = f"/proc/sys/{name}"
        assert path in self.files
        self.files[path] = f"{value}\n"

    def nice(self, value: int) -> None:
        self.files["/proc/4242/stat"] = _STAT.format(nice=value)
