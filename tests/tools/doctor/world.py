# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A network namespace of a test's own with the good node in it, and a source that reads both.

    n0 ---- n1      a pair with a queue for each processor, n0 under examination; n1 is another
                    node, in a namespace of its own
    m0 ---- m1      another one, m0 in the network of n0
    other           a bridge that has nothing to do with them

Everything happens in one thread, which lives in the namespaces and ends them with itself.
"""

import contextlib
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from beowire.doctor.ethtool_netlink import Ethtool
from beowire.doctor.examine import Examination, State, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Source
from good_node import CPUS, NETWORK_SYSCTLS, GoodNode
from pyroute2 import IPRoute

T = TypeVar("T")

_CLONE_NEWNS = 0x0002_0000
_CLONE_NEWNET = 0x4000_0000
_MS_REC_PRIVATE = 0x4000 | (1 << 18)
_PATIENCE_S = 240.0
_libc = ctypes.CDLL(None, use_errno=True)

PEER = "10.9.9.9"
EXAMINED = ("n0", "nic0", "nic1")
_SWITCHED_ON = ("tx-checksum-ip-generic", "tx-scatter-gather", "tx-tcp-segmentation", "rx-gro")
_LIVE = (
    "/proc/sys/net/",
    "/proc/net/",
    "/proc/sys/kernel/osrelease",
    "/sys/class/net/n0/",
    "/sys/class/net/m0/",
)
"""What is read from the namespace, unless it is recorded."""


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Layered(Source):
    """What is recorded, before what the namespace has; nothing else of the machine."""

    def __init__(self, good: GoodNode) -> None:
        super().__init__()
        self.good = good
        self.before_write: Callable[[str], None] = lambda _: None

    def text(self, path: str) -> str:
        if path in self.good.files:
            return self.good.files[path]
        if path.startswith(_LIVE):
            return super().text(path)
        raise FileNotFoundError(2, "No such file or directory", path)

    def names(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        found = {
            each.removeprefix(prefix).partition("/")[0]
            for each in self.good.files
            if each.startswith(prefix)
        }
        if path.startswith(_LIVE):
            found |= set(super().names(path))
        if not found:
            raise FileNotFoundError(2, "No such file or directory", path)
        return sorted(found)

    def target(self, path: str) -> str:
        if path in self.good.targets:
            return self.good.targets[path]
        raise FileNotFoundError(2, "No such file or directory", path)

    def write(self, path: str, text: str) -> None:
        self.before_write(path)
        if path in self.good.files:
            self.good.files[path] = text
        else:
            assert path.startswith(_LIVE), f"a test must not write {path}"
            super().write(path, text)

    def ethtool(self, interface: str, kind: str) -> dict[str, Any]:
        if interface in self.good.ethtool:
            if kind not in self.good.ethtool[interface]:
                raise OSError(95, "Operation not supported")
            return self.good.ethtool[interface][kind]
        return super().ethtool(interface, kind)

    def set_ethtool(self, interface: str, kind: str, name: str, value: int) -> None:
        self.before_write(f"{interface} {kind} {name}")
        if interface not in self.good.ethtool:
            super().set_ethtool(interface, kind, name, value)
        elif kind == "features":
            features = self.good.ethtool[interface][kind]
            rest = [each for each in features["active"] if each != name]
            features["active"] = [*rest, name] if value else rest
        else:
            self.good.ethtool[interface][kind][name] = value

    def answer(self, what: str) -> Any:
        if what == "links":
            return super().answer(what) + self.good.links
        if what in ("clock", "firmware"):
            return self.good.answers.get(what, {})
        return super().answer(what) + self.good.answers.get(what, [])

    def set_link(self, interface: str, name: str, value: int) -> None:
        self.before_write(f"{interface} {name}")
        if interface in self.good.ethtool:
            self.good.link(interface)[name] = value
        else:
            super().set_link(interface, name, value)


class World:
    """The namespace and the good node, in a thread of their own."""

    def __init__(self, goal: str) -> None:
        self.goal = Goal(goal)
        self.good = GoodNode(goal)
        self.source = Layered(self.good)
        self._kept: list[Any] = []
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._other = ThreadPoolExecutor(max_workers=1)
        self.run(self._enter)

    def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls the function in the namespace."""
        return self._thread.submit(function, *arguments).result()

    def renew(self) -> None:
        """What is recorded is good again."""
        self.good = self.source.good = GoodNode(self.goal)

    def keep(self, kept: Any) -> None:
        """Closes this with the namespace."""
        self._kept.append(kept)

    def run_there(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls the function on the other node."""
        return self._other.submit(function, *arguments).result()

    def close(self) -> None:
        for each in self._kept:
            each.close()
        self.run(self.source.close)
        self._thread.shutdown()
        self._other.shutdown()

    def _enter(self) -> None:
        _check(_libc.unshare(_CLONE_NEWNET | _CLONE_NEWNS))
        _check(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC_PRIVATE), None))
        _check(_libc.mount(b"sysfs", b"/sys", b"sysfs", ctypes.c_ulong(0), None))
        for name, value in NETWORK_SYSCTLS.items():
            Path("/proc/sys/net", name).write_text(value)
        allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
        control = "cubic" if "cubic" in allowed else "reno"
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(control)
        with IPRoute() as route:
            route.link("set", index=1, state="up")
            for name, number in (("n", 1), ("m", 2)):
                queues = {"num_rx_queues": CPUS, "num_tx_queues": CPUS, "mtu": 9000}
                peer = {"ifname": f"{name}1", **queues}
                route.link("add", ifname=f"{name}0", kind="veth", peer=peer, **queues)
                for side in "01":
                    index = route.link_lookup(ifname=f"{name}{side}")[0]
                    route.link("set", index=index, state="up")
                index = route.link_lookup(ifname=f"{name}0")[0]
                route.addr("add", index=index, address=f"10.9.9.{number}", prefixlen=24)
            route.link("add", ifname="other", kind="bridge")
            n1 = route.link_lookup(ifname="n1")[0]
            route.link("set", index=n1, net_ns_fd=self.run_there(self._enter_other))
        self.run_there(self._start_other)
        self._await_carrier()
        ethtool = Ethtool()
        for side in ("rx", "tx"):
            ethtool.set("n0", "channels", side, CPUS)
        for feature in _SWITCHED_ON:
            ethtool.set("n0", "features", feature, 1)
        ethtool.close()
        here = os.cpu_count() or 1
        for queue in range(CPUS):
            mask = f"{1 << queue % here:x}"
            Path(f"/sys/class/net/n0/queues/tx-{queue}/xps_cpus").write_text(mask)

    def _enter_other(self) -> str:
        _check(_libc.unshare(_CLONE_NEWNET))
        return f"/proc/self/task/{threading.get_native_id()}/ns/net"

    def _start_other(self) -> None:
        with IPRoute() as route:
            index = route.link_lookup(ifname="n1")[0]
            route.addr("add", index=index, address=PEER, prefixlen=24)
            route.link("set", index=index, state="up")

    def _await_carrier(self) -> None:
        """The kernel drops what is sent until it has dealt with the other side's start."""
        patience = time.monotonic() + _PATIENCE_S
        with IPRoute() as route:
            index = route.link_lookup(ifname="n0")[0]
            while next(iter(route.get_links(index))).get_attr("IFLA_OPERSTATE") != "UP":
                assert time.monotonic() < patience
                time.sleep(0.002)

    def sysctl(self, name: str, value: str) -> None:
        """Changes a sysctl of the namespace, below net."""
        self.run(Path("/proc/sys/net", name).write_text, value)

    def node(self) -> Node:
        return Node(self.source, self.goal, peer=PEER)

    def examine(self, *names: str) -> Examination:
        """Examines by all checks, or those named."""
        checks = [ALL[name] for name in names] or list(ALL.values())
        return self.run(lambda: examine(self.node(), checks, EXAMINED))

    def found(self, *names: str) -> set[str]:
        """The names of the checks with findings; nothing may be beyond judgement."""
        done = self.examine(*names)
        assert not [each for each in done.outcomes if each.state in (State.DENIED, State.FAILED)]
        return {each.check.name for each in done.findings()}


@contextlib.contextmanager
def world(goal: str) -> Iterator[World]:
    made = World(goal)
    try:
        yield made
    finally:
        made.close()
