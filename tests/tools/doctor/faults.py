# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One fault for each check, planted into the good node.

Real ones are planted in the network namespace itself. Recorded ones stand where no namespace can
show the fault: settings of the whole machine, which a test must not touch, and hardware.
"""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire.doctor.check import ALL_GOALS
from beowire.doctor.ethtool_netlink import Ethtool
from beowire.doctor.node import Goal
from beowire.doctor.registry import ALL
from pyroute2 import IPRoute
from pyroute2.nftables.main import NFTables
from world import World

_LATENCY = frozenset({Goal.LATENCY})
_CLUSTER = frozenset({Goal.LATENCY, Goal.THROUGHPUT})
_THROUGHPUT = frozenset({Goal.THROUGHPUT, Goal.WAN})
_ETH_P_ALL = 3
_IFF_PROMISC = 0x100
_NUD_REACHABLE = 0x02
_CPU = "/sys/devices/system/cpu"


@dataclass(frozen=True)
class Fault:
    """What is planted, and which checks have to find it."""

    check: str
    plant: Callable[[World], None]
    recorded: bool
    goals: frozenset[Goal]
    touches: frozenset[str]
    """Of two faults that touch the same thing only one is planted."""
    also: frozenset[str] = frozenset()
    """Other checks that see it too."""


FAULTS: dict[str, Fault] = {}


def _fault(
    check: str,
    plant: Callable[[World], None],
    *,
    recorded: bool = False,
    goals: frozenset[Goal] = ALL_GOALS,
    touches: str = "",
    also: tuple[str, ...] = (),
) -> None:
    goals = goals & ALL[check].goals
    assert check not in FAULTS
    assert goals, check
    FAULTS[check] = Fault(
        check, plant, recorded, goals, frozenset((touches or check).split()), frozenset(also)
    )


# In the namespace.


def _sysctl(name: str, value: str) -> Callable[[World], None]:
    return lambda world: world.sysctl(name, value)


def _off(feature: str) -> Callable[[World], None]:
    def plant() -> None:
        ethtool = Ethtool()
        ethtool.set("n0", "features", feature, 0)
        ethtool.close()

    return lambda world: world.run(plant)


def _set(**attributes: Any) -> Callable[[World], None]:
    def plant() -> None:
        with IPRoute() as route:
            route.link("set", index=route.link_lookup(ifname="n0")[0], **attributes)

    return lambda world: world.run(plant)


def _file(name: str, text: str) -> Callable[[World], None]:
    return lambda world: world.run(Path("/sys/class/net/n0", name).write_text, text)


def _few_channels(world: World) -> None:
    def plant() -> None:
        ethtool = Ethtool()
        ethtool.set("n0", "channels", "tx", 1)
        ethtool.close()

    world.run(plant)


def _flapping() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n1")[0]
        for state in ("down", "up") * 12:
            route.link("set", index=index, state=state)


def _lost_address() -> None:
    with IPRoute() as route:
        route.flush_addr(index=route.link_lookup(ifname="n0")[0], family=socket.AF_INET)


def _promiscuous() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        route.link("set", index=index, flags=_IFF_PROMISC, change=_IFF_PROMISC)


def _twin() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        mine = next(iter(route.get_links(index))).get_attr("IFLA_ADDRESS")
        route.neigh("add", dst="10.9.9.66", lladdr=mine, ifindex=index, state=_NUD_REACHABLE)


def _short_queue() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        route.tc("add", "pfifo", index=index, handle="1:", limit=2)


def _losing(world: World) -> None:
    """The other node answers no more than an echo in each tick of its clock."""

    def plant() -> None:
        for name, value in (("icmp_ratelimit", "1"), ("icmp_ratemask", "1")):
            Path("/proc/sys/net/ipv4", name).write_text(value)

    world.run_there(plant)


def _same_address() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n1")[0]
        route.addr("add", index=index, address="10.9.9.1", prefixlen=24)


def _held_back() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        metrics = {"lock": 1 << 2, "mtu": 1000, "advmss": 500, "rto_min": 3000}
        route.route("add", dst="10.77.0.0/16", oif=index, metrics=metrics)


def _no_neighbours() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        route.addr("del", index=index, address="10.9.9.1", prefixlen=24)
        route.addr("add", index=index, address="10.9.9.1", prefixlen=32)


def _narrow() -> None:
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="n1")[0], mtu=1500)


def _shaped() -> None:
    with IPRoute() as route:
        index = route.link_lookup(ifname="n0")[0]
        route.tc("add", "tbf", index=index, handle="1:", rate=10**8, burst=10**6, limit=10**7)


def _filtered() -> None:
    with IPRoute() as route:
        route.tc("add", "clsact", route.link_lookup(ifname="n0")[0])


def _in_bridge() -> None:
    with IPRoute() as route:
        route.link("add", ifname="br0", kind="bridge")
        bridge = route.link_lookup(ifname="br0")[0]
        route.link("set", index=route.link_lookup(ifname="n0")[0], master=bridge)


def _tapped(world: World) -> None:
    world.keep(
        world.run(socket.socket, socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    )


def _ruled() -> None:
    with NFTables(nfgen_family=2) as netfilter:
        netfilter.table("add", name="planted")
        netfilter.chain("add", table="planted", name="input")
        netfilter.rule("add", table="planted", chain="input", expressions=())


_TCP = (
    ("window_scaling", "tcp_window_scaling", "0"),
    ("sack", "tcp_sack", "0"),
    ("dsack", "tcp_dsack", "0"),
    ("recovery", "tcp_recovery", "0"),
    ("timestamps", "tcp_timestamps", "0"),
    ("moderate_rcvbuf", "tcp_moderate_rcvbuf", "0"),
    ("slow_start_after_idle", "tcp_slow_start_after_idle", "1"),
    ("ecn", "tcp_ecn", "0"),
    ("mtu_probing", "tcp_mtu_probing", "0"),
    ("no_metrics_save", "tcp_no_metrics_save", "0"),
    ("autocorking", "tcp_autocorking", "1"),
    ("limit_output_bytes", "tcp_limit_output_bytes", "65536"),
    ("pacing", "tcp_pacing_ss_ratio", "110"),
    ("syn_backlog", "tcp_max_syn_backlog", "64"),
    ("ports", "ip_local_port_range", "50000 50999"),
    ("reordering", "tcp_reordering", "1"),
    ("retries", "tcp_retries2", "3"),
    ("time_wait", "tcp_max_tw_buckets", "16"),
    ("unsent", "tcp_notsent_lowat", "1000"),
    ("base_mss", "tcp_base_mss", "88"),
)
for _name, _setting, _value in _TCP:
    _fault(f"tcp.{_name}", _sysctl(f"ipv4/{_setting}", _value))
_fault("tcp.listen_backlog", _sysctl("core/somaxconn", "128"))


def _reno(world: World) -> None:
    world.good.files.pop("/proc/sys/net/ipv4/tcp_congestion_control", None)
    world.sysctl("ipv4/tcp_congestion_control", "reno")


_fault("tcp.congestion_control", _reno, goals=frozenset({Goal.WAN}))
_BIG = "268435456"
for _side, _setting in (("receive", "tcp_rmem"), ("send", "tcp_wmem")):
    _fault(f"buffers.tcp_{_side}", _sysctl(f"ipv4/{_setting}", "4096 131072 262144"), touches=_side)
    _fault(
        f"buffers.tcp_{_side}_first",
        _sysctl(f"ipv4/{_setting}", f"4096 8192 {_BIG}"),
        touches=_side,
    )
_fault("buffers.control", _sysctl("core/optmem_max", "4096"))
_fault("path.forwarding", _sysctl("ipv4/ip_forward", "1"), touches="forwarding")
_fault("path.answers", _sysctl("ipv4/conf/all/arp_ignore", "0"))
_fault("path.return", _sysctl("ipv4/conf/all/rp_filter", "1"))
_fault(
    "path.bridge",
    lambda world: world.run(_in_bridge),
    touches="carrier",
    also=("path.mtu",),
)
_fault("path.mtu", lambda world: world.run_there(_narrow), touches="carrier link.mtu")
_fault("path.taps", _tapped)
_fault("netfilter.rules", lambda world: world.run(_ruled))

_OFFLOADS = (
    ("checksum_send", "tx-checksum-ip-generic", ("offloads.tso",)),
    ("checksum_receive", "rx-checksum", ()),
    ("scatter_gather", "tx-scatter-gather", ("offloads.tso", "offloads.gso")),
    ("tso", "tx-tcp-segmentation", ()),
    ("gso", "tx-generic-segmentation", ()),
    ("gro", "rx-gro", ()),
)
for _name, _feature, _also in _OFFLOADS:
    _fault(f"offloads.{_name}", _off(_feature), touches="offloads", also=_also)
_fault("offloads.gso_size", _set(gso_max_size=16384))
_fault("offloads.gro_size", _set(gro_max_size=16384))
_fault("link.queue_length", _set(txqlen=10))
_fault("link.mtu", _set(mtu=1500))
_fault("link.carrier", _set(state="down"), touches="carrier", also=("path.mtu",))
_fault(
    "link.address", lambda world: world.run(_lost_address), touches="carrier", also=("path.mtu",)
)
_fault("link.flaps", lambda world: world.run_there(_flapping), touches="carrier")
_fault("link.arp", _set(arp=False), touches="carrier", also=("path.mtu",))
_fault("link.promiscuous", lambda world: world.run(_promiscuous))
_fault("link.unique", lambda world: world.run(_twin), touches="carrier")
_fault("offloads.gso_segments", _set(gso_max_segs=1))
_fault(
    "qdisc.limit", lambda world: world.run(_short_queue), touches="qdisc.shaping", goals=_CLUSTER
)
_fault("path.loss", _losing, touches="carrier")
_fault(
    "path.holders",
    lambda world: world.run_there(_same_address),
    touches="carrier",
    also=("path.mtu",),
)
_fault("path.echo", _sysctl("ipv4/icmp_echo_ignore_all", "1"))
_fault("path.metrics", lambda world: world.run(_held_back), touches="carrier link.mtu")
_fault(
    "path.network",
    lambda world: world.run(_no_neighbours),
    touches="carrier path.answers path.return",
    also=("path.mtu",),
)
_fault("qdisc.shaping", lambda world: world.run(_shaped))
_fault("qdisc.filters", lambda world: world.run(_filtered))
_fault("queues.channels", _few_channels, touches="queues")
_fault("queues.steering", _file("queues/rx-0/rps_cpus", "1"), goals=_LATENCY, touches="queues")
_fault("queues.send", _file("queues/tx-0/xps_cpus", "0"), touches="queues")
_fault("napi.threaded", _file("threaded", "1"), touches="offloads carrier")
_fault("napi.flush", _file("gro_flush_timeout", "20000"))
_fault("napi.deferral", _file("napi_defer_hard_irqs", "2"))

# On the record.


def _recorded(check: str, plant: Callable[[World], None], **rest: Any) -> None:
    _fault(check, plant, recorded=True, **rest)


def _write(path: str, text: str) -> Callable[[World], None]:
    def plant(world: World) -> None:
        assert path in world.good.files, path
        world.good.files[path] = text

    return plant


def _add(path: str, text: str) -> Callable[[World], None]:
    return lambda world: world.good.files.__setitem__(path, text)


def _machine(name: str, value: str) -> Callable[[World], None]:
    return lambda world: world.good.sysctl(name, value)


def _nic(kind: str, **values: Any) -> Callable[[World], None]:
    return lambda world: world.good.ethtool["nic0"][kind].update(values)


def _link(**values: Any) -> Callable[[World], None]:
    return lambda world: world.good.link("nic0").update(values)


def _counted(**counters: int) -> Callable[[World], None]:
    return lambda world: world.good.link("nic0")["counters"].update(counters)


def _moved_interrupts(cpu: dict[int, int]) -> Callable[[World], None]:
    def plant(world: World) -> None:
        for interrupt, home in cpu.items():
            for name in ("effective_affinity_list", "smp_affinity_list"):
                world.good.files[f"/proc/irq/{interrupt}/{name}"] = f"{home}\n"

    return plant


def _dropping(world: World) -> None:
    world.good.answers["qdiscs"][0]["drops"] = 50_000


def _unpaced(world: World) -> None:
    world.good.answers["qdiscs"][0]["kind"] = "pfifo_fast"


def _deep_sleep(world: World) -> None:
    for cpu in range(4):
        world.good.files[f"{_CPU}/cpu{cpu}/cpuidle/state2/disable"] = "0\n"


def _no_napi(world: World) -> None:
    world.good.answers["napi"] = [{"index": 1001, "id": 2}]


def _lro(world: World) -> None:
    world.good.ethtool["nic0"]["features"]["active"].append("rx-lro")


def _interrupted(world: World) -> None:
    world.good.answers["clock"]["synchronized"] = False


def _far_off(world: World) -> None:
    world.good.answers["clock"]["offset_us"] = -25_000.0


_recorded("link.speed", _nic("linkmodes", speed=1000))
_recorded("link.duplex", _nic("linkmodes", duplex=0), touches="link.autoneg")
_recorded("link.autoneg", _nic("linkmodes", autoneg=0))
_recorded("link.damage", _counted(rx_crc_errors=700))
_recorded("link.pause", _nic("pause", tx=1))
_recorded("link.dropped", _counted(rx_dropped=90_000))
_recorded("path.name", _write("/etc/hosts", "127.0.0.1 localhost\n127.0.1.1 good\n"))
_recorded("link.eee", _nic("eee", enabled=1, active=1))
_recorded("link.pcie", _write("/sys/class/net/nic0/device/current_link_width", "1\n"))
_recorded("link.xdp_generic", _link(xdp="xdpgeneric"))
_recorded("rings.receive", _nic("rings", rx=256))
_recorded("rings.send", _nic("rings", tx=256))
_recorded("rings.lost", _counted(rx_missed_errors=900))
_recorded("rings.header_split", _nic("rings", **{"tcp-data-split": 1}))
_recorded("coalescing.adaptive", _nic("coalesce", **{"adaptive-rx": 1}))
_recorded("coalescing.receive_short", _nic("coalesce", **{"rx-usecs": 100}), touches="coalesce")
_recorded("coalescing.receive_frames", _nic("coalesce", **{"rx-frames": 32}), touches="coalesce")
_recorded("coalescing.receive_long", _nic("coalesce", **{"adaptive-rx": 0, "rx-usecs": 1}))
_recorded("queues.flows", _write("/sys/class/net/nic1/queues/rx-0/rps_flow_cnt", "0\n"))
_recorded("queues.table", _nic("rss", indir=[0] * 96 + [1, 2, 3] * 10))
_recorded("interrupts.spread", _moved_interrupts(dict.fromkeys(range(100, 104), 0)), touches="irq")
_recorded("interrupts.near", _moved_interrupts({100: 3}), touches="irq")
_recorded("interrupts.balancer", _add("/proc/77/comm", "irqbalance\n"))
_recorded("offloads.lro", _lro)
_recorded("napi.driver", _no_napi)
_recorded("qdisc.dropped", _dropping)
_recorded("qdisc.pacing", _unpaced, touches="tcp.congestion_control")
_recorded("path.tunnel", _link(kind="vxlan"))

MACHINE = (
    ("napi.budget", "net/core/netdev_budget", "300"),
    ("napi.budget_time", "net/core/netdev_budget_usecs", "2000"),
    ("napi.weight", "net/core/dev_weight", "16"),
    ("napi.busy_read", "net/core/busy_read", "0"),
    ("napi.busy_poll", "net/core/busy_poll", "0"),
    ("softnet.backlog", "net/core/netdev_max_backlog", "300"),
    ("buffers.receive_most", "net/core/rmem_max", "212992"),
    ("buffers.send_most", "net/core/wmem_max", "212992"),
    ("buffers.receive_default", "net/core/rmem_default", "65536"),
    ("buffers.send_default", "net/core/wmem_default", "65536"),
    ("tcp.memory", "net/ipv4/tcp_mem", "100 200 300"),
    ("path.neighbours_kept", "net/ipv4/neigh/default/gc_thresh2", "16"),
    ("path.neighbours", "net/ipv4/neigh/default/gc_thresh3", "128"),
    ("kernel.watchdog", "kernel/nmi_watchdog", "1"),
    ("kernel.autogroup", "kernel/sched_autogroup_enabled", "1"),
    ("accounting.scheduler", "kernel/sched_schedstats", "1"),
    ("accounting.delays", "kernel/task_delayacct", "1"),
    ("accounting.programs", "kernel/bpf_stats_enabled", "1"),
    ("memory.balancing", "kernel/numa_balancing", "1"),
    ("memory.reclaim", "vm/zone_reclaim_mode", "1"),
    ("memory.swappiness", "vm/swappiness", "60"),
    ("netfilter.bridged", "net/bridge/bridge-nf-call-iptables", "1"),
)
"""Sysctls of the whole machine: check, name below /proc/sys, faulty value."""
for _check_name, _setting, _value in MACHINE:
    _recorded(_check_name, _machine(_setting, _value))


def _full_table(world: World) -> None:
    world.good.files["/proc/sys/net/netfilter/nf_conntrack_count"] = "262000\n"


_recorded(
    "netfilter.tracking",
    _add("/proc/sys/net/netfilter/nf_conntrack_count", "12\n"),
    touches="conntrack",
)
_recorded("netfilter.table_full", _full_table, touches="conntrack", also=("netfilter.tracking",))

_SOFTNET = "{:08x} {:08x} {:08x} 00000000\n"
for _check_name, _row in (
    ("softnet.dropped", (100_000, 400, 0)),
    ("softnet.squeezed", (100_000, 0, 4000)),
):
    _recorded(
        _check_name,
        _write("/proc/net/softnet_stat", _SOFTNET.format(*_row) * 4),
        touches="softnet_stat",
    )

_HUGE = "/sys/kernel/mm/transparent_hugepage"
_LIMITS = "/proc/self/limits"


def _limit(name: str, value: str) -> Callable[[World], None]:
    def plant(world: World) -> None:
        lines = world.good.files[_LIMITS].splitlines()
        kept = [line for line in lines if not line.startswith(name)]
        world.good.files[_LIMITS] = "\n".join([*kept, f"{name}  {value} {value} units"]) + "\n"

    return plant


def _built(text: str) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.good.files["/proc/config.gz"] += text

    return plant


def _started(words: str) -> Callable[[World], None]:
    def plant(world: World) -> None:
        world.good.files["/proc/cmdline"] = (
            world.good.files["/proc/cmdline"].strip() + f" {words}\n"
        )

    return plant


for _check_name, _path, _text in (
    ("cpu.governor", f"{_CPU}/cpufreq/policy2/scaling_governor", "powersave\n"),
    ("cpu.preference", f"{_CPU}/cpufreq/policy1/energy_performance_preference", "power\n"),
    ("cpu.limit", f"{_CPU}/cpufreq/policy0/scaling_max_freq", "1200000\n"),
    ("cpu.boost", f"{_CPU}/cpufreq/boost", "0\n"),
    ("cpu.throttled", f"{_CPU}/cpu1/thermal_throttle/core_throttle_count", "12\n"),
    ("cpu.stolen", "/proc/stat", "cpu  1000 0 500 90000 10 0 5 9000 0 0\n"),
    ("cpu.offline", f"{_CPU}/present", "0-7\n"),
    ("kernel.tickless", f"{_CPU}/nohz_full", "(null)\n"),
    ("kernel.isolation", f"{_CPU}/isolated", "\n"),
    ("groups.quota", "/sys/fs/cgroup/job.slice/cpu.max", "50000 100000\n"),
    ("groups.memory", "/sys/fs/cgroup/job.slice/job7/memory.high", "1000000\n"),
    ("memory.huge_pages", f"{_HUGE}/enabled", "always madvise [never]\n"),
    ("memory.defragmentation", f"{_HUGE}/defrag", "[always] defer madvise never\n"),
    ("memory.uneven", "/sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 90000 kB\n"),
    ("memory.swapped", "/proc/meminfo", "MemTotal: 1000 kB\nSwapTotal: 500 kB\nSwapFree: 9 kB\n"),
):
    _recorded(_check_name, _write(_path, _text), touches="nohz" if "kernel." in _check_name else "")

_recorded(
    "clock.source",
    _write("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
)
_recorded("clock.synchronized", _interrupted, touches="clock")
_recorded("clock.offset", _far_off, touches="clock")
_recorded("cpu.sleep", _deep_sleep)
_recorded("kernel.preemption", _started("preempt=full"))
_recorded("kernel.debugging", _built("CONFIG_KASAN=y\n"))
_recorded("kernel.hardening", _started("init_on_alloc=1"))
_recorded("accounting.audit", _add("/proc/88/comm", "auditd\n"))
_recorded("accounting.pressure", _add("/proc/pressure/cpu", "some avg10=0.00\n"))
_recorded("jobs.priority", lambda world: world.good.nice(5))
_recorded("limits.locked_memory", _limit("Max locked memory", "65536"))
_recorded("limits.files", _limit("Max open files", "1024"))
_recorded("limits.priority", _limit("Max realtime priority", "0"))


def _old_kernel(world: World) -> None:
    world.good.files["/proc/sys/kernel/osrelease"] = "5.10.0-30-amd64\n"
    world.good.files["/proc/sys/net/ipv4/tcp_adv_win_scale"] = "-2\n"


_recorded("tcp.window_overhead", _old_kernel)
