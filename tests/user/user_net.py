# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Small networks of namespaces in every shape that a cluster's interfaces come in.

Each test builds what it needs with ip(8); leaving the context removes all of it.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from itertools import count

_numbers = count(1)


def ip(command: str) -> str:
    """Runs ip(8); an error says what ip said."""
    done = subprocess.run(["ip", *command.split()], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {command}: {done.stderr.strip()}")
    return done.stdout


def refusal() -> str | None:
    """Why namespaces cannot be made here; None when they can."""
    name = f"us{os.getpid()}-try"
    try:
        ip(f"netns add {name}")
        ip(f"netns del {name}")
    except OSError as error:
        return f"no network namespaces with raw frames: {error}"
    return None


class Net:
    """Namespaces that belong together."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._prefix = f"us{os.getpid()}-{next(_numbers)}"

    def node(self, short: str) -> str:
        """A new namespace, with its loopback interface up."""
        name = f"{self._prefix}{short}"
        ip(f"netns add {name}")
        self._stack.callback(ip, f"netns del {name}")
        ip(f"-n {name} link set lo up")
        return name

    def veth(self, one: str, other: str, names: tuple[str, str], mtu: int = 9000) -> None:
        """A cable between two namespaces, both ends up."""
        ip(
            f"link add {names[0]} netns {one} mtu {mtu} type veth"
            f" peer name {names[1]} netns {other} mtu {mtu}"
        )
        ip(f"-n {one} link set {names[0]} up")
        ip(f"-n {other} link set {names[1]} up")
        for node, name in ((one, names[0]), (other, names[1])):
            _await_carrier(node, name)

    def bridge(self, where: str, ports: list[str], name: str = "br0") -> None:
        """A switch of these interfaces."""
        ip(f"-n {where} link add {name} type bridge forward_delay 0")
        for port in ports:
            ip(f"-n {where} link set {port} master {name}")
        ip(f"-n {where} link set {name} up")


def _await_carrier(node: str, interface: str) -> None:
    """The kernel tells of a carrier up to a second after it is there."""
    while ip(f"-n {node} -br link show {interface}").split()[1] != "UP":
        time.sleep(0.02)


def address(node: str, interface: str, number: int, net: str = "10.77.0") -> None:
    """Gives an interface an IPv4 address of a /24."""
    ip(f"-n {node} addr add {net}.{number}/24 dev {interface}")


def link_set(node: str, interface: str, what: str) -> None:
    """`ip link set` in a namespace."""
    ip(f"-n {node} link set {interface} {what}")


def shape(node: str, interface: str, rate: str) -> None:
    """What leaves by this interface, through a socket or as a switch, is no faster."""
    command = f"tc -n {node} qdisc add dev {interface} root tbf rate {rate} burst 20kb limit 200kb"
    subprocess.run(command.split(), check=True)


@contextlib.contextmanager
def network() -> Iterator[Net]:
    """A network that is gone afterwards."""
    with contextlib.ExitStack() as stack:
        yield Net(stack)


@contextlib.contextmanager
def pair(mtu: int = 9000, ips: bool = True) -> Iterator[tuple[str, str]]:
    """Two nodes and a cable: interfaces eth0, addresses 10.77.0.1 and .2."""
    with network() as net:
        one, two = net.node("a"), net.node("b")
        net.veth(one, two, ("eth0", "eth0"), mtu)
        if ips:
            address(one, "eth0", 1)
            address(two, "eth0", 2)
        yield one, two
