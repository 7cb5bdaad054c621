# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's own counters of a node: what crossed its interface, what of that was IP.

They know nothing of Beowire and so can bear witness for or against it.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from beowire import namespaces
from beowire.lab.lab import Lab

FILES = ("snmp", "netstat", "dev", "snmp6")
"""Where the kernel keeps them, in /proc/net."""


@dataclass(frozen=True)
class NodeCounters:
    """Totals of one network namespace since it was made; loopback is not counted in `tx`/`rx`."""

    tx_bytes: int
    """Bytes sent over all interfaces but loopback, Ethernet headers included."""
    rx_bytes: int
    tx_frames: int
    rx_frames: int
    ip_out_octets: int
    """Bytes in IP packets sent (versions 4 and 6), IP headers included, over loopback too."""
    ip_in_octets: int
    ip_out_packets: int
    tcp_out_segments: int
    tcp_retransmitted_segments: int
    loopback_bytes: int
    """Bytes sent over the loopback interface."""

    def since(self, before: "NodeCounters") -> "NodeCounters":
        earlier = asdict(before)
        return NodeCounters(**{key: now - earlier[key] for key, now in asdict(self).items()})

    @property
    def raw_bytes(self) -> int:
        """Bytes sent in frames that are not IP, ARP among them. The Ethernet headers of IP packets
        are taken off as one for each packet that IP sent; both interfaces count one."""
        all_bytes = self.tx_bytes + self.loopback_bytes
        return max(all_bytes - self.ip_out_octets - 14 * self.ip_out_packets, 0)


def _named_counters(text: str) -> dict[str, int]:
    """Parses /proc/net/snmp and netstat: pairs of lines, names above numbers."""
    lines = [line.split() for line in text.splitlines()]
    counters = {}
    for names, numbers in zip(lines[::2], lines[1::2], strict=False):
        prefix = names[0].removesuffix(":")
        for name, number in zip(names[1:], numbers[1:], strict=False):
            counters[f"{prefix}.{name}"] = int(number)
    return counters


def _plain_counters(text: str) -> dict[str, int]:
    """Parses /proc/net/snmp6, a name and a number a line; empty where there is no IPv6."""
    pairs = (line.split() for line in text.splitlines())
    return {name: int(number) for name, number in pairs}


def _interfaces(text: str) -> dict[str, list[int]]:
    """Parses /proc/net/dev into the numbers of each interface."""
    table = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        table[name.strip()] = [int(number) for number in numbers.split()]
    return table


def read() -> NodeCounters:
    """The counters of the calling thread's network namespace."""
    net = Path("/proc/thread-self/net")
    return parse({name: (net / name).read_text() for name in FILES if (net / name).exists()})


def parse(texts: dict[str, str]) -> NodeCounters:
    """Counters out of the contents of `FILES`, by name; the last may be empty or missing."""
    named = _named_counters(texts["snmp"] + texts["netstat"])
    named |= _plain_counters(texts.get("snmp6", ""))
    interfaces = _interfaces(texts["dev"])
    outside = [numbers for name, numbers in interfaces.items() if name != "lo"]
    return NodeCounters(
        rx_bytes=sum(numbers[0] for numbers in outside),
        rx_frames=sum(numbers[1] for numbers in outside),
        tx_bytes=sum(numbers[8] for numbers in outside),
        tx_frames=sum(numbers[9] for numbers in outside),
        ip_out_octets=named["IpExt.OutOctets"] + named.get("Ip6OutOctets", 0),
        ip_in_octets=named["IpExt.InOctets"] + named.get("Ip6InOctets", 0),
        ip_out_packets=named["Ip.OutRequests"] + named.get("Ip6OutRequests", 0),
        tcp_out_segments=named["Tcp.OutSegs"],
        tcp_retransmitted_segments=named["Tcp.RetransSegs"],
        loopback_bytes=interfaces.get("lo", [0] * 16)[8],
    )


def of_lab(lab: Lab) -> dict[str, NodeCounters]:
    """The counters of every node. On loopback addresses all nodes share the machine's, which
    stand under `machine`."""
    if lab.mode == "loopback":
        return {"machine": read()}
    return {node: namespaces.within(lab.namespace_path(node), read) for node in lab.node_names()}
