# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two nodes and, between them, a namespace in which beowire-link joins their cables.

    node a: eth0 ---- pa  [beowire-link]  pb ---- eth0: node b

Senders and receivers are sockets on the nodes; what arrives, and when, is the receiving kernel's
word, not the emulator's.
"""

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from beowire import namespaces, places

ETHERTYPE = 0x88B6
ADDRESS = {"a": "10.79.0.1", "b": "10.79.0.2"}
ADDRESS6 = {"a": "fd79::1", "b": "fd79::2"}
OVERHEAD = 24
"""Preamble, check sequence and gap: what a frame takes on the wire beside its bytes."""

PATIENCE_S = 240.0
"""How long a thing may take that must come; far beyond what it does take."""

_SOL_PACKET = 263
_PACKET_QDISC_BYPASS = 20
_SO_TIMESTAMPNS = 35
_SO_RCVBUFFORCE = 33
_MAC = {"a": bytes.fromhex("02beeeeeee0a"), "b": bytes.fromhex("02beeeeeee0b")}
_numbers = count(1)


def ip(command: str) -> str:
    """Runs ip(8); an error says what ip said."""
    done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {command}: {done.stderr.strip()}")
    return done.stdout


def refusal() -> str | None:
    """Why namespaces cannot be made here; None when they can."""
    name = f"em{os.getpid()}-try"
    try:
        ip(f"netns add {name}")
        ip(f"netns del {name}")
    except OSError as error:
        return f"no network namespaces with raw frames: {error}"
    return None


@dataclass(frozen=True)
class Net:
    """The three namespaces."""

    prefix: str

    def name(self, node: str) -> str:
        return f"{self.prefix}{node}"

    def path(self, node: str) -> Path:
        return namespaces.NETNS_DIR / self.name(node)

    def ip(self, node: str, command: str) -> str:
        return ip(f"-n {self.name(node)} {command}")

    def command(self, *words: str) -> list[str]:
        """These words, to be run in the emulator's namespace."""
        return ["ip", "netns", "exec", self.name("l"), *words]

    def silence(self) -> None:
        """Only what the test sends is sent: the kernel announces no addresses of IPv6, and has
        none any more."""
        for node in "ab":
            words = ["sysctl", "-qw", "net.ipv6.conf.eth0.disable_ipv6=1"]
            subprocess.run(["ip", "netns", "exec", self.name(node), *words], check=True)

    def raw(self, node: str, ethertype: int = ETHERTYPE) -> socket.socket:
        """A raw socket on a node, with the kernel's time stamps."""
        return namespaces.within(self.path(node), partial(_raw_socket, ethertype))

    def udp(self, node: str, port: int = 0, family: int = socket.AF_INET) -> socket.socket:
        """A UDP socket on a node, bound to its address."""
        address = (ADDRESS if family == socket.AF_INET else ADDRESS6)[node]
        return namespaces.within(self.path(node), partial(_udp_socket, address, port, family))

    def tcp(self, port: int) -> tuple[socket.socket, socket.socket]:
        """A TCP connection from node a to node b: its two ends."""
        address = (ADDRESS["b"], port)
        listener = namespaces.within(self.path("b"), partial(socket.create_server, address))
        with listener:
            one = namespaces.within(
                self.path("a"), partial(socket.create_connection, address, timeout=240)
            )
            other, _ = listener.accept()
            other.settimeout(60)
        return one, other

    def counter(self, node: str, group: str, name: str) -> int:
        """A counter of /proc/net/snmp or netstat of a node."""
        text = subprocess.run(
            ["ip", "netns", "exec", self.name(node), "cat", "/proc/net/snmp", "/proc/net/netstat"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = [line.split() for line in text.splitlines() if line.startswith(f"{group}:")]
        return int(dict(zip(rows[0], rows[1], strict=True))[name])


def _raw_socket(ethertype: int) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ethertype))
    raw.setsockopt(_SOL_PACKET, _PACKET_QDISC_BYPASS, 1)
    raw.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 26)
    raw.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    raw.bind(("eth0", ethertype))
    return raw


def _udp_socket(address: str, port: int, family: int) -> socket.socket:
    udp = socket.socket(family, socket.SOCK_DGRAM)
    udp.bind((address, port))
    return udp


@contextlib.contextmanager
def network(mtu: int = 9000) -> Iterator[Net]:
    """The namespaces and their cables, gone afterwards."""
    net = Net(f"em{os.getpid()}-{next(_numbers)}")
    with contextlib.ExitStack() as stack:
        for node in "abl":
            ip(f"netns add {net.name(node)}")
            stack.callback(ip, f"netns del {net.name(node)}")
            settings = [
                "net.ipv6.conf.default.accept_dad=0",
                "net.ipv6.conf.default.router_solicitations=0",
            ]
            if node == "l":
                settings = ["net.ipv6.conf.default.disable_ipv6=1"]
            subprocess.run(
                ["ip", "netns", "exec", net.name(node), "sysctl", "-qw", *settings], check=True
            )
        for node in "ab":
            cable(net, node, mtu)
        yield net


def cable(net: Net, node: str, mtu: int = 9000) -> None:
    """A cable from a node's eth0 to the emulator's namespace."""
    ip(
        f"link add eth0 netns {net.name(node)} mtu {mtu} address {_MAC[node].hex(':')} type veth"
        f" peer name p{node} netns {net.name('l')} mtu {mtu}"
    )
    net.ip(node, f"addr add {ADDRESS[node]}/24 dev eth0")
    net.ip(node, f"addr add {ADDRESS6[node]}/64 dev eth0 nodad")
    net.ip(node, "link set eth0 up")
    net.ip("l", f"link set p{node} up")
    while net.ip(node, "-br link show eth0").split()[1] != "UP":
        time.sleep(0.02)


class Link:
    """A running emulator."""

    def __init__(self, net: Net, *arguments: str) -> None:
        program = str(places.product("emulator/beowire-link"))
        self._directory = tempfile.TemporaryDirectory(prefix="link-")
        self._control = Path(self._directory.name, "control")
        if "--control" not in arguments:
            arguments = ("--control", str(self._control), *arguments)
        self.process = subprocess.Popen(
            net.command(program, "--json", *arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, errors = self.process.communicate()
            raise AssertionError(f"it ended with status {self.process.returncode}: {errors}")
        self.ready: dict[str, Any] = json.loads(line)
        self.report: dict[str, Any] = {}
        self.errors = ""

    def settle(self, frames: int, to: str = "b", missed: bool = False) -> None:
        """Waits until so many frames have come, or with `missed` have come or found the ring full,
        and none of those that came is still held. (Not for a link whose control socket is the
        test's.)"""
        patience = time.monotonic() + PATIENCE_S
        client = Control(self._control)
        while True:
            told = client.ask("stats")["ab" if to == "b" else "ba"]
            went = told["delivered"] - told["duplicated"]
            ended = went + told["lost"] + told["dropped_queue"] + told["too_long"]
            came = told["frames"] + (told["missed"] if missed else 0)
            if came >= frames and ended == told["frames"]:
                break
            assert time.monotonic() < patience, told
            time.sleep(0.01)
        client.close()

    def end(self, sign: signal.Signals = signal.SIGTERM) -> int:
        """Ends it, if it still runs, and reads its report; the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(sign)
        output, self.errors = self.process.communicate()
        if output:
            self.report = json.loads(output)
        return self.process.returncode

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self._directory.cleanup()


@contextlib.contextmanager
def link(net: Net, *settings: str, options: tuple[str, ...] = ()) -> Iterator[Link]:
    """The emulator between the two nodes; ended, with its report, when the context is left."""
    running = Link(net, *options, "pa", "pb", *settings)
    try:
        yield running
        running.end()
    finally:
        running.kill()


class Control:
    """A client of the control socket."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw")

    def ask(self, line: str) -> dict[str, Any]:
        self.file.write(line + "\n")
        self.file.flush()
        answer: dict[str, Any] = json.loads(self.file.readline())
        return answer

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def frame(payload: bytes, to: str = "b", ethertype: int = ETHERTYPE) -> bytes:
    """A frame from the other node to this one."""
    source = _MAC["a" if to == "b" else "b"]
    return _MAC[to] + source + ethertype.to_bytes(2, "big") + payload


def wire_bits(size: int) -> int:
    """Bits that a frame of so many bytes takes on the wire."""
    return 8 * (max(size, 60) + OVERHEAD)


@dataclass(frozen=True)
class Arrival:
    """A received frame and when the kernel got it (CLOCK_REALTIME, ns)."""

    bytes: bytes
    at: int


def received(raw: socket.socket, quiet: float = 1.0, most: int = 1 << 30) -> list[Arrival]:
    """All that arrives until the wire has been quiet for so long, or as many as asked for."""
    arrivals: list[Arrival] = []
    raw.settimeout(quiet)
    with contextlib.suppress(TimeoutError):
        while len(arrivals) < most:
            data, more, _, _ = raw.recvmsg(70000, 64)
            seconds, nanoseconds = struct.unpack("qq", more[0][2])
            arrivals.append(Arrival(data, seconds * 1_000_000_000 + nanoseconds))
    return arrivals
