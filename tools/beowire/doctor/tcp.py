# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Checks of TCP's settings, which carry whatever does not go by Beowire."""

from beowire.doctor.check import (
    CLUSTER,
    LATENCY,
    Bad,
    Change,
    Check,
    Fix,
    Good,
    Sure,
    Verdict,
    Weight,
)
from beowire.doctor.node import Goal, Node
from beowire.doctor.rules import at_least, exactly, field_at_least, none_of, sysctl
from beowire.doctor.setting import FileSetting

_IP_SYSCTL = "kernel: networking/ip-sysctl.rst"
_CONGESTION = "/proc/sys/net/ipv4/tcp_congestion_control"
_AVAILABLE = "/proc/sys/net/ipv4/tcp_available_congestion_control"
_CONTROLS = {
    Goal.LATENCY: ("cubic", "dctcp", "reno"),
    Goal.THROUGHPUT: ("cubic", "dctcp", "reno"),
    Goal.WAN: ("bbr", "cubic", "htcp"),
}
_ALLOWED = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
"""What other network namespaces than the first may choose."""
_PORTS = 28000


def _congestion(node: Node) -> Verdict:
    setting = FileSetting(_CONGESTION)
    old = setting.read(node)
    wanted = _CONTROLS[node.goal]
    if old.strip() in wanted:
        return Good(f"{setting} = {old.strip()}")
    available = node.text(_AVAILABLE if node.in_first_network else _ALLOWED).split()
    better = next((each for each in wanted if each in available), None)
    return Bad(
        f"{setting} = {old.strip()}",
        " or ".join(wanted),
        (Change(setting, old, better),) if better else (),
        "" if better else f"Load one of them: modprobe tcp_{wanted[0]}",
    )


def _ports(node: Node) -> Verdict:
    setting = FileSetting("/proc/sys/net/ipv4/ip_local_port_range")
    old = setting.read(node)
    first, last = node.numbers(setting.path)[:2]
    read = f"{setting} = {first} {last}: {last - first + 1} ports"
    if last - first + 1 >= _PORTS:
        return Good(read)
    return Bad(read, f"at least {_PORTS} ports", (Change(setting, old, "32768 60999"),))


CHECKS = (
    sysctl(
        "tcp.window_scaling",
        "net.ipv4.tcp_window_scaling",
        exactly(1),
        title="TCP scales its windows",
        why="Without it at most 64 KiB are under way, whatever the buffers.",
        sources=("RFC 7323", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SEVERE,
    ),
    sysctl(
        "tcp.sack",
        "net.ipv4.tcp_sack",
        exactly(1),
        title="TCP acknowledges selectively",
        why="Without it each loss in a window costs a round trip, or a timeout of 200 ms.",
        sources=("RFC 2018", "RFC 6675", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "tcp.dsack",
        "net.ipv4.tcp_dsack",
        exactly(1),
        title="TCP reports duplicates",
        why="Without it a sender cannot tell reordering from loss and slows down for nothing, "
        "as over bonded channels.",
        sources=("RFC 2883", _IP_SYSCTL, "[D4]"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.recovery",
        "net.ipv4.tcp_recovery",
        none_of({"0"}, "1"),
        title="TCP finds losses by time (RACK)",
        why="Without it a lost tail or a lost retransmission waits for a timeout of 200 ms.",
        sources=("RFC 8985", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "tcp.timestamps",
        "net.ipv4.tcp_timestamps",
        none_of({"0"}, "1"),
        title="TCP carries time stamps",
        why="Without them sequence numbers may be mistaken above 1 Gbit/s (no PAWS), and round "
        "trips are sampled seldom.",
        sources=("RFC 7323", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.moderate_rcvbuf",
        "net.ipv4.tcp_moderate_rcvbuf",
        exactly(1),
        title="TCP grows its receive buffers by need",
        why="Without it each connection keeps the buffer it began with.",
        sources=(_IP_SYSCTL, "[A11]"),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "tcp.slow_start_after_idle",
        "net.ipv4.tcp_slow_start_after_idle",
        exactly(0),
        title="TCP keeps its window over a pause",
        why="Otherwise a connection that was idle for a timeout begins with ten segments again, "
        "after each phase of computing.",
        sources=("RFC 2861", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
    ),
    Check(
        name="tcp.congestion_control",
        title="TCP's congestion control suits the goal",
        why="A control made for other paths is slow here: delay-based ones give way to all "
        "others, and Reno needs minutes to fill a distant path.",
        sources=("RFC 9438", "RFC 8257", _IP_SYSCTL),
        reads=(_CONGESTION, _AVAILABLE, _ALLOWED),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
        fix=Fix.LIVE,
        look=_congestion,
    ),
    sysctl(
        "tcp.ecn",
        "net.ipv4.tcp_ecn",
        none_of({"0"}, "2"),
        title="TCP accepts congestion marks when the other side asks",
        why="Without them a marking switch has to drop frames to be heard.",
        sources=("RFC 3168", _IP_SYSCTL, "[A5]"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.mtu_probing",
        "net.ipv4.tcp_mtu_probing",
        at_least(1),
        title="TCP finds the size that passes",
        why="On a path that drops long packets silently a connection hangs for ever.",
        sources=("RFC 4821", _IP_SYSCTL, "[D6]"),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        goals=frozenset({Goal.WAN}),
    ),
    sysctl(
        "tcp.no_metrics_save",
        "net.ipv4.tcp_no_metrics_save",
        exactly(1),
        title="TCP forgets the slow past of a path",
        why="One bad connection caps the slow start of all later ones to that host.",
        sources=(_IP_SYSCTL,),
        sure=Sure.RULE,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.autocorking",
        "net.ipv4.tcp_autocorking",
        exactly(0),
        title="TCP sends short messages at once",
        why="Corking holds a short message back while an earlier frame is in the queue.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        goals=LATENCY,
    ),
    sysctl(
        "tcp.limit_output_bytes",
        "net.ipv4.tcp_limit_output_bytes",
        at_least(1024 * 1024),
        title="A connection may keep the NIC's queue filled",
        why="Too low a limit empties the queue before the next acknowledgement comes.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        goals=frozenset({Goal.THROUGHPUT, Goal.WAN}),
    ),
    sysctl(
        "tcp.window_overhead",
        "net.ipv4.tcp_adv_win_scale",
        lambda node: exactly(1) if node.kernel < (6, 6) else at_least(-31),
        title="Half of a receive buffer is offered as window",
        why="Before Linux 6.6 this fixes which share of a buffer counts; another value wastes it "
        "or invites collapses. Later kernels measure it.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.pacing",
        "net.ipv4.tcp_pacing_ss_ratio",
        at_least(200),
        title="TCP paces slow start at twice its window",
        why="A lower ratio keeps the window from doubling in each round trip.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.listen_backlog",
        "net.core.somaxconn",
        at_least(4096),
        title="Many ranks can connect at once",
        why="Beyond it connections are dropped and tried again after a second: start-up of large "
        "jobs takes minutes.",
        sources=("kernel: admin-guide/sysctl/net.rst", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.COSTLY,
        goals=CLUSTER,
    ),
    sysctl(
        "tcp.syn_backlog",
        "net.ipv4.tcp_max_syn_backlog",
        at_least(1024),
        title="Many handshakes can be under way",
        why="Beyond it a rank's SYN is dropped and sent again after a second.",
        sources=(_IP_SYSCTL,),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        goals=CLUSTER,
    ),
    Check(
        name="tcp.ports",
        title="There are ports for many connections",
        why="Each pair of ranks takes a port on one side; when they are used up, jobs fail.",
        sources=(_IP_SYSCTL,),
        reads=("/proc/sys/net/ipv4/ip_local_port_range",),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
        fix=Fix.LIVE,
        look=_ports,
    ),
    sysctl(
        "tcp.reordering",
        "net.ipv4.tcp_reordering",
        at_least(3),
        title="TCP tolerates some reordering",
        why="Below three duplicates each reordered frame counts as a loss.",
        sources=("RFC 5681", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.retries",
        "net.ipv4.tcp_retries2",
        at_least(8),
        title="TCP outlives a short outage",
        why="RFC 1122 wants at least 100 s; with fewer tries a job dies of a switch's restart.",
        sources=("RFC 1122, 4.2.3.5", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.memory",
        "net.ipv4.tcp_mem",
        lambda node: field_at_least(
            2, 2 * 16 * node.bandwidth_delay_bytes() // 4096, "limit, pages,"
        ),
        title="There is memory for full buffers of all connections",
        why="Near the limit the kernel shrinks windows and drops segments of all connections.",
        sources=(_IP_SYSCTL,),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "tcp.time_wait",
        "net.ipv4.tcp_max_tw_buckets",
        at_least(4096),
        title="Closed connections are remembered long enough",
        why="Beyond it TIME-WAIT is cut short, and late segments reach the next connection.",
        sources=("RFC 9293, 3.6.1", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
    sysctl(
        "tcp.unsent",
        "net.ipv4.tcp_notsent_lowat",
        at_least(16384),
        title="A send buffer may hold what is not sent yet",
        why="With less a sender is woken for each few segments, and the line runs empty meanwhile.",
        sources=(_IP_SYSCTL,),
        sure=Sure.RULE,
        weight=Weight.COSTLY,
    ),
    sysctl(
        "tcp.base_mss",
        "net.ipv4.tcp_base_mss",
        at_least(512),
        title="Probing for the size that passes begins with segments of use",
        why="After a timeout a connection that probes sends segments of this size.",
        sources=("RFC 4821, 7.2", _IP_SYSCTL),
        sure=Sure.DOCUMENTED,
        weight=Weight.SLIGHT,
    ),
)
