# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two nodes with the service, peers of libbeowire and socket programs on both, and what happens to
them: deaths of programs and of services, cut cables. In the end nothing is left."""

import contextlib
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import socket_load
import user_net
from beowire.status import boards
from mesh import BUSY_S, Mesh
from own_shm import own_shared_memory
from served import OTHER, USER, Service, served
from socket_load import Program

POLICY = f"users = {USER}, {OTHER}\ninterfaces = eth0\n"
PORTS = (7950, 7951)
SHARES = 3
"""Peers on each side."""
RISE_KB = 4096
"""Of memory that a service may hold at the end beyond what it began with."""


@dataclass
class Cluster:
    """What runs, and what of it has happened so often."""

    nodes: tuple[str, str]
    services: tuple[Service, Service]
    dice: random.Random
    library: Path
    mesh: Mesh = field(init=False)
    servers: list[Program] = field(default_factory=list)
    clients: list[Program] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Everybody is there and has been heard of."""
        self.mesh = Mesh(self.dice, self.services)
        for side in (0, 1) * SHARES:
            self.mesh.join(side)
        for port in PORTS:
            self.servers.append(socket_load.server(self.services[1], self.library, port))
            self.clients.append(self._client(port))
        self.await_switches()

    def _client(self, port: int) -> Program:
        seed = self.dice.randrange(1 << 30)
        return socket_load.client(self.services[0], self.library, port, seed)

    def go_on(self) -> None:
        """Nothing happens but messages."""
        self.mesh.land(self.mesh.launch(self.dice.randrange(1, 30)))

    def kill_peers(self) -> None:
        """One, or several at once."""
        count = self.dice.choice((1, 1, 1, 2, SHARES))
        victims = self.dice.sample(self.mesh.members, count)
        self.mesh.kill(victims)
        for each in victims:
            self.mesh.join(each.side)

    def kill_client(self) -> None:
        """Its server forgets it, and serves another one."""
        k = self.dice.randrange(len(PORTS))
        self.clients[k].kill()
        self._await_connections(PORTS[k], 0)
        self.clients[k] = self._client(PORTS[k])
        self.clients[k].await_round()

    def kill_server(self) -> None:
        """Its client is told, and has another connection once there is a server."""
        k = self.dice.randrange(len(PORTS))
        self.clients[k].await_round(1)
        lost = self.clients[k].last[1]
        self.servers[k].kill()
        self.clients[k].await_loss(lost)
        self.servers[k] = socket_load.server(self.services[1], self.library, PORTS[k])
        self.clients[k].await_round()

    def _kept(self, what: Callable[[], None]) -> None:
        """Messages are under way, and connections: all of them come to their end, and none is
        lost."""
        lost = [each.last[1] for each in self.clients]
        flights = self.mesh.launch(20)
        what()
        self.mesh.land(flights)
        for each in self.clients:
            each.await_round(3)
        assert [each.last[1] for each in self.clients] == lost

    def kill_service(self) -> None:
        """Whoever has a socket keeps it, and asks the next service."""
        self._restart(signal.SIGKILL)

    def stop_service(self) -> None:
        """An upgrade, perhaps."""
        self._restart(signal.SIGTERM)

    def _restart(self, number: int) -> None:
        side = self.dice.randrange(2)
        service = self.services[side]

        def restart() -> None:
            service.stop(number)
            if self.dice.random() < 0.5 and number == signal.SIGKILL:
                self.go_on()  # what the kernel does for its clients goes on
            time.sleep(self.dice.uniform(0, 0.5))
            service.start()

        self._kept(restart)
        # all peers have asked it
        until = time.monotonic() + BUSY_S
        while (living := service.counts()["living"]) < SHARES:
            assert time.monotonic() < until, living
            time.sleep(0.05)

    def cut(self) -> None:
        """Shorter than it takes to give somebody up."""

        def for_a_while() -> None:
            side = self.dice.randrange(2)
            user_net.link_set(self.nodes[side], "eth0", "down")
            time.sleep(self.dice.uniform(0.05, 2))
            user_net.link_set(self.nodes[side], "eth0", "up")

        self._kept(for_a_while)

    def cut_for_long(self) -> None:
        """Both sides give each other up. One of them begins anew."""
        side = self.dice.randrange(2)
        lost = [each for each in self.mesh.members if each.side != side]
        user_net.link_set(self.nodes[0], "eth0", "down")
        for each in lost:
            self.mesh.members.remove(each)
        self.mesh.bereave(lost, [])
        for each in lost:
            each.stack.close()
        user_net.link_set(self.nodes[0], "eth0", "up")
        for each in lost:
            self.mesh.join(each.side)
        for program in self.clients:
            program.await_round()

    def await_switches(self) -> None:
        """Nothing is in the way any more: all connections go by Beowire, or will."""
        for each, its_server in zip(self.clients, self.servers, strict=True):
            each.await_switch(its_server)

    def _await_connections(self, port: int, count: int) -> None:
        """Until a server has so many."""
        until = time.monotonic() + BUSY_S
        while (have := len(connections(self.nodes[1], port))) > count:
            assert time.monotonic() < until, have
            time.sleep(0.05)

    def end(self) -> None:
        """Everybody leaves; the services have nothing left of them."""
        self.mesh.quiet()
        self.mesh.close()
        for each in (*self.clients, *self.servers):
            each.kill()
            assert "Traceback" not in each.complaints, each.complaints

    def remove(self) -> None:
        """In any way."""
        self.mesh.remove()
        for each in (*self.clients, *self.servers):
            each.process.kill()


def connections(node: str, port: int) -> list[str]:
    """Those of a server that have not ended."""
    command = ["ip", "netns", "exec", node, "cat", "/proc/net/tcp"]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()[1:]]
    return [row[2] for row in rows if row[1].endswith(f":{port:04X}") and row[3] != "0A"]


@dataclass(frozen=True)
class Held:
    """What a service holds."""

    descriptors: list[str]
    threads: int
    resident_kb: int
    rings: int


def held(service: Service) -> Held:
    """As the kernel says."""
    proc = Path(f"/proc/{service.process.pid}")
    kinds = []
    for each in (proc / "fd").iterdir():
        with contextlib.suppress(OSError):
            kinds.append(str(each.readlink()).partition(":[")[0])
    status = (proc / "status").read_text()
    maps = (proc / "maps").read_text()
    return Held(
        sorted(kinds),
        int(status.split("\nThreads:")[1].split()[0]),
        int(status.split("\nVmRSS:")[1].split()[0]),
        maps.count("socket:["),
    )


def seen(node: str) -> str:
    """What a node has of interfaces and rules, and who runs there."""
    rules = ["tc", "-n", node, "qdisc", "show"]
    filters = ["tc", "-n", node, "filter", "show", "dev", "eth0", "ingress"]
    told = [user_net.ip(f"-n {node} -o -br link"), user_net.ip(f"netns pids {node}")]
    for command in (rules, filters):
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        # others may have filters at an interface by then, so the place for these stays
        told += [line for line in lines.splitlines() if " clsact " not in line]
    return "\n".join(told)


def run(seconds: float, seed: int) -> dict[str, int]:
    """So long, by dice that begin with this seed: what has happened, and how often."""
    print(f"mixed load: {seconds:g} s, seed {seed}")
    with own_shared_memory(), user_net.pair() as nodes:
        before = [seen(node) for node in nodes]
        with served(nodes[0], POLICY) as one, served(nodes[1], POLICY) as two:
            first = [held(each) for each in (one, two)]
            cluster = Cluster(nodes, (one, two), random.Random(seed), socket_load.library(one))
            with _removed(cluster):
                cluster.begin()
                _happen(cluster, seconds)
                cluster.end()
            for service, was in zip((one, two), first, strict=True):
                service.await_living(0)
                _same(was, held(service))
        boards.find()  # takes away what the dead have left
        assert not list(Path("/dev/shm").iterdir())
        after = [seen(node) for node in nodes]
        assert after == before, f"{before} {after}"
        for node in nodes:
            command = ["ip", "netns", "exec", node, "grep", "beowire", "/proc/net/unix"]
            names = subprocess.run(command, capture_output=True, text=True, check=False).stdout
            assert not names
        return {**cluster.happened, "messages": cluster.mesh.messages}


@contextlib.contextmanager
def _removed(cluster: Cluster) -> Iterator[None]:
    try:
        yield
    finally:
        cluster.remove()


def _happen(cluster: Cluster, seconds: float) -> None:
    """Everything once, and then by the dice."""
    often = {
        cluster.go_on: 6,
        cluster.kill_peers: 4,
        cluster.kill_client: 2,
        cluster.kill_server: 2,
        cluster.kill_service: 2,
        cluster.stop_service: 1,
        cluster.cut: 2,
        cluster.cut_for_long: 0.3,
    }
    until = time.monotonic() + seconds
    todo = list(often)
    cluster.dice.shuffle(todo)
    while todo or time.monotonic() < until:
        step = todo.pop() if todo else cluster.dice.choices(list(often), list(often.values()))[0]
        began = time.monotonic()
        name = step.__name__
        step()
        cluster.mesh.quiet()
        took = time.monotonic() - began
        cluster.await_switches()
        cluster.happened[name] = cluster.happened.get(name, 0) + 1
        again = time.monotonic() - began - took
        print(f"{name}: {took:.1f} s, by Beowire after {again:.1f} s", flush=True)
        time.sleep(cluster.dice.uniform(0, 1))


def _same(was: Held, now: Held) -> None:
    assert now.descriptors == was.descriptors
    assert (now.threads, now.rings) == (was.threads, was.rings)
    assert now.resident_kb < was.resident_kb + RISE_KB, (was, now)
