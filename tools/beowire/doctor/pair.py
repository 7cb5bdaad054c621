# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""This node and a peer, and beowire-pingpong between the two.

The peer is reached by ssh, or what stands for it in a lab. What is started there ends when its
standard input does: with the block that started it, and also when this process was killed.
"""

import contextlib
import json
import os
import random
import select
import shlex
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from beowire import places, signals
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster, of_hosts, of_lab

_PORTS = range(20000, 30000)
"""Below those that the kernel gives away by itself (net.ipv4.ip_local_port_range)."""
_TRIES = 5
_READY = "waiting for a client"
_START_S = 60.0
_END_S = 30.0
_SERVER = "{program} --port {port} </dev/null & p=$!; cat >/dev/null; kill $p; wait $p"
_CLIENT = (
    "exec 3<&0; {words} </dev/null & p=$!; {{ cat <&3; kill $p; }} >/dev/null 2>&1 & w=$!; "
    "wait $p; s=$?; kill $w; exit $s"
)


@dataclass(frozen=True)
class Pair:
    """The two nodes."""

    cluster: Cluster
    """The peer alone, and how it is reached."""
    address: str
    """The peer's, as it is reached from here."""
    mine: str
    """This node's, as the peer reaches it."""

    @property
    def peer(self) -> str:
        """The peer's name."""
        return self.cluster.hosts[0]

    def command(self, script: str, *, there: bool) -> list[str]:
        """The words that execute a shell script on one of the two."""
        return self.cluster.reach(self.peer, script) if there else ["sh", "-c", script]

    def popen(self, script: str, *, there: bool) -> "subprocess.Popen[bytes]":
        """Starts a script, in a session of its own: Ctrl-C is for us, who end it."""
        command = self.command(script, there=there)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        try:
            with signals.uninterrupted():
                return subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env=os.environ | self.cluster.environment,
                    preexec_fn=partial(signals.release, mask),
                )
        except OSError as error:
            raise BeowireError(
                f"{command[0]} cannot be executed: {error.strerror}.",
                "Install ssh (apt-get install openssh-client), or name another command by --ssh.",
            ) from error


def find(peer: str, ssh: str) -> Pair:
    """The pair of this node and a peer; on a lab's node the peer is another one of the lab."""
    lab = os.environ.get("BEOWIRE_LAB")
    cluster = of_lab(lab) if lab else of_hosts([peer], ssh)
    if cluster.lab is not None:
        cluster.lab.check_node(peer)
        cluster = replace(cluster, hosts=[peer])
    if len(cluster.hosts) != 1:
        raise BeowireError(f"{peer} is more than one node.", "Name one of them.")
    places.product("programs/beowire-pingpong")
    name = cluster.hosts[0].rpartition("@")[2]
    try:
        address = str(socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0])
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.connect((address, 9))
            mine = str(asker.getsockname()[0])
    except OSError as error:
        raise BeowireError(
            f"There is no way to {name}: {error.strerror or error}.",
            "Name a node by a name or IPv4 address that is known here.",
        ) from error
    return Pair(cluster, address, mine)


class Server:
    """A beowire-pingpong that waits on one of the two nodes."""

    def __init__(self, pair: Pair, *, there: bool) -> None:
        self.pair = pair
        self.there = there
        said = ""
        for port in random.sample(_PORTS, _TRIES):
            self.port = port
            self._process = self._start()
            try:
                ready, said = self._await()
            except BaseException:
                self.close()
                raise
            if ready:
                return
            self.close()
            if "ddress already in use" not in said:
                break
        where = pair.peer if there else "this node"
        raise BeowireError(
            f"The ping-pong does not start on {where}: {said or 'it said nothing'}.",
            f"Try it by hand: {shlex.join(pair.command('true', there=there))}. Beowire has to lie "
            "at the same path on both nodes.",
        )

    def _start(self) -> "subprocess.Popen[bytes]":
        program = shlex.quote(str(places.product("programs/beowire-pingpong")))
        script = _SERVER.format(program=program, port=self.port)
        return self.pair.popen(script, there=self.there)

    def _await(self) -> tuple[bool, str]:
        """Whether it waits for clients, and what it said last."""
        assert self._process.stderr is not None
        descriptor = self._process.stderr.fileno()
        deadline = time.monotonic() + _START_S
        said = b""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([descriptor], [], [], left)[0]:
                break
            piece = os.read(descriptor, 65536)
            said += piece
            if _READY.encode() in said:
                return True, ""
            if not piece or (b"beowire-pingpong: " in said and said.endswith(b"\n")):
                break
        return False, said.decode(errors="replace").strip()[-300:]

    def close(self) -> None:
        _end(self._process)


def client(server: Server, words: list[str], limit_s: float) -> dict[str, Any]:
    """The report of a run from the other node to the server. It fails when it takes longer."""
    pair = server.pair
    host = pair.address if server.there else pair.mine
    program = str(places.product("programs/beowire-pingpong"))
    whole = shlex.join([program, *words, "--port", str(server.port), "--json", "-", host])
    script = _CLIENT.format(words=whole)
    process = pair.popen(script, there=not server.there)
    try:
        output, errors = _communicated(process, limit_s)
    finally:
        _end(process)
    if process.returncode != 0:
        said = errors.decode(errors="replace").strip()
        raise BeowireError(said.removeprefix("beowire-pingpong: ")[-300:] or "it said nothing")
    try:
        report: dict[str, Any] = json.loads(output)
    except ValueError:
        raise BeowireError("it told something else than a report") from None
    return report


def _communicated(process: "subprocess.Popen[bytes]", limit_s: float) -> tuple[bytes, bytes]:
    """What it says until its end; its standard input stays open meanwhile."""
    assert process.stdout is not None
    assert process.stderr is not None
    first, second = process.stdout.fileno(), process.stderr.fileno()
    told = {first: b"", second: b""}
    open_ = [first, second]
    deadline = time.monotonic() + limit_s
    while open_:
        ready = select.select(open_, [], [], max(deadline - time.monotonic(), 0))[0]
        if not ready:
            raise BeowireError(f"it did not end within {limit_s:.0f} s")
        for descriptor in ready:
            piece = os.read(descriptor, 65536)
            told[descriptor] += piece
            if not piece:
                open_.remove(descriptor)
    process.wait()
    return told[first], told[second]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Closes its standard input, by which it ends, and waits; kills it if that does not help, with
    all that it started here."""
    with signals.uninterrupted():
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
