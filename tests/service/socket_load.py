# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Socket programs with the preload library: servers that send back what comes, and clients that
compare it, begin again when a connection ends, and tell how far they are."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from beowire.sockets import cli
from served import OTHER, Service, as_user

PATIENCE_S = 60.0
SWITCH_S = 120.0
"""In which a connection that may leave TCP does so, also on a busy machine."""
BOTH = 3
"""The ways of a connection that sends and receives by Beowire."""
ADDRESS = "10.77.0.2"

SERVER = """
import socket, sys, threading
def echo(one):
    with one:
        try:
            while got := one.recv(65536):
                one.sendall(got)
        except OSError:
            pass
with socket.create_server(("", int(sys.argv[1])), backlog=100) as listener:
    while True:
        threading.Thread(target=echo, args=(listener.accept()[0],), daemon=True).start()
"""

# Lines: rounds, connections that were lost or refused, ways of the present one.
CLIENT = """
import ctypes, random, socket, sys, time
way = ctypes.CDLL(None).beowire_sockets_way
dice = random.Random(int(sys.argv[3]))
rounds = lost = 0
while True:
    try:
        with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5) as one:
            one.settimeout(None)
            while True:
                sent = dice.randbytes(dice.choice((10, 1000, 20000, 150000)))
                one.sendall(sent)
                got = b""
                while len(got) < len(sent):
                    some = one.recv(65536)
                    if not some:
                        raise ConnectionResetError
                    got += some
                if got != sent:
                    print("bad", flush=True)
                    sys.exit(3)
                rounds += 1
                print(rounds, lost, way(one.fileno()), flush=True)
                time.sleep(dice.uniform(0.01, 0.2))
    except OSError:
        lost += 1
        print(rounds, lost, 0, flush=True)
        time.sleep(0.1)
"""


class Program:
    """A running socket program, of a user without privileges."""

    def __init__(self, service: Service, library: Path, script: str, *words: str) -> None:
        variables = {
            "LD_PRELOAD": str(library),
            "BEOWIRE_SOCKETS_AFTER": "0",
            "BEOWIRE_SOCKETS_COMPARE": "off",
            "BEOWIRE_SERVICE": str(service.socket),
            "BEOWIRE_LINKS": "packet",
            "BEOWIRE_SOCKETS_EXPLAIN": "on",
        }
        with_library = ["env", *(f"{name}={value}" for name, value in variables.items())]
        python = ["/usr/bin/python3", "-c", script, *words]
        self.last = (0, 0, 0)
        """What a client has said: rounds, lost connections, ways."""
        self.complaints = ""
        self.process = subprocess.Popen(
            ["ip", "netns", "exec", service.node, *as_user(OTHER), *with_library, *python],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
        )
        self.listening = [
            threading.Thread(target=what, daemon=True) for what in (self._listen, self._collect)
        ]
        for each in self.listening:
            each.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                rounds, lost, way = (int(word) for word in line.split())
                self.last = rounds, lost, way

    def _collect(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.complaints += line

    def kill(self) -> None:
        """At once, without a word."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def await_round(self, more: int = 2) -> None:
        """Until it has made so many rounds more."""
        wanted = self.last[0] + more
        self._await(lambda: self.last[0] >= wanted)

    def await_loss(self, since: int) -> None:
        """Until it has lost more connections than these."""
        self._await(lambda: self.last[1] > since)

    def await_switch(self, peer: "Program") -> None:
        """Until its connection goes by Beowire in both directions."""
        since = self.last[0]  # what it said before may be over
        self._await(lambda: self.last[2] == BOTH and self.last[0] > since, SWITCH_S, peer)

    def await_word(self, word: str) -> None:
        """Until it has complained by this word."""
        self._await(lambda: word in self.complaints)

    def _await(
        self, is_so: Callable[[], bool], for_s: float = PATIENCE_S, peer: "Program | None" = None
    ) -> None:
        until = time.monotonic() + for_s
        while not is_so():
            assert self.process.poll() is None, (self.process.returncode, self.complaints)
            assert time.monotonic() < until, self.why() + (
                f"; its peer: {peer.why()}" if peer else ""
            )
            time.sleep(0.02)

    def why(self) -> str:
        """What it says of its connections at its end."""
        self.process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE_S)
        for each in self.listening:
            each.join(PATIENCE_S)
        return f"{self.last} {self.complaints}"


def library(service: Service) -> Path:
    """A copy of the preload library that its users may read."""
    return Path(shutil.copy(cli.preload()["LD_PRELOAD"], service.directory / "library.so"))


def server(service: Service, library: Path, port: int) -> Program:
    """One that listens soon."""
    return Program(service, library, SERVER, str(port))


def client(service: Service, library: Path, port: int, seed: int) -> Program:
    """One that has a connection soon."""
    return Program(service, library, CLIENT, ADDRESS, str(port), str(seed))
