# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs with the preload library on two nodes, what their processes count, and have counted."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from beowire import places
from beowire.sockets import cli
from beowire.status import boards

HERE, THERE = "10.77.0.1", "10.77.0.2"
UNCOMPARED = {"BEOWIRE_SOCKETS_COMPARE": "off"}
"""Connections leave TCP also where cores are short and TCP moves more, as while tests run."""
SOON_S = 60
"""For what takes a moment on an idle machine."""
SWITCHED = "switched"
"""A file in the programs' directory, once their connections go by Beowire."""
FEW = 20_000
"""Bytes of small exchanges that went by Beowire, after which a connection is taken for switched."""


@dataclass
class Nodes:
    """Two nodes; programs run by default with the library, and leave counts in `place`."""

    here: str
    there: str
    place: Path
    variables: dict[str, str] = field(default_factory=dict)

    def words(self, node: str, words: list[str], library: bool = True) -> list[str]:
        """The command line that runs these on a node."""
        variables = cli.preload() | {cli.STATS: str(self.place)} | UNCOMPARED | self.variables
        line = cli.command(words, variables) if library else words
        return ["ip", "netns", "exec", node, *line]

    def run(self, words: list[str], node: str = "", library: bool = True, text: str = "") -> str:
        """What a command printed; it must not fail."""
        done = subprocess.run(
            self.words(node or self.here, words, library),
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=4 * SOON_S,  # a script may wait for a minute more than once
            cwd=self.place,
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout

    @contextlib.contextmanager
    def talking(self, words: list[str]) -> Iterator["Talk"]:
        """A program of this node that does what its input says, and comes to its end by itself once
        the input ends."""
        with (
            (self.place / "errors.log").open("wb") as log,
            subprocess.Popen(
                self.words(self.here, words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self.place,
            ) as child,
        ):
            assert child.stdin is not None
            assert child.stdout is not None
            try:
                yield Talk(child, child.stdin, child.stdout)
                child.stdin.close()
                assert child.wait(SOON_S) == 0, (self.place / "errors.log").read_text()
            finally:
                child.kill()

    def run_switched(self, words: list[str]) -> str:
        """What a command printed that makes small exchanges until there is a file `switched`. It is
        there once these go by Beowire."""
        (self.place / SWITCHED).unlink(missing_ok=True)
        with self.talking(words) as talk:
            self.await_switch(talk.child)
            (self.place / SWITCHED).touch()
            return talk.rest().decode()

    def await_switch(
        self,
        child: subprocess.Popen[bytes],
        exchange: Callable[[], object] | None = None,
        node: str = "",
        least: int = FEW,
    ) -> None:
        """Until what comes to a node, this one if none is named, comes by Beowire. Meanwhile the
        program makes small exchanges, by itself or by `exchange`."""
        until = time.monotonic() + SOON_S
        while (came := self.came_by_beowire(node or self.here)) < least:
            assert child.poll() is None, (self.place / "errors.log").read_text()
            assert time.monotonic() < until, came
            if exchange is not None:
                exchange()
            time.sleep(0.01)

    @staticmethod
    def came_by_beowire(node: str) -> int:
        """Bytes that a node's living processes have received by Beowire, as their boards say."""
        inode = Path("/run/netns", node).stat().st_ino
        return sum(
            link["rx_payload"]
            for board in boards.find()
            if board.head.numbers["network"] == inode
            for link in board.sheet["links"].values()
        )

    @contextlib.contextmanager
    def server(
        self, words: list[str], port: int, library: bool = True, ends: bool = False
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A command that listens on a port of the other node. In the end it is told to stop, or
        stops (`ends`) by itself."""
        log = (self.place / f"server-{port}.log").open("wb")
        line = self.words(self.there, words, library)
        with log, subprocess.Popen(line, stdout=log, stderr=log, cwd=self.place) as child:
            try:
                self._await_port(port, child)
                yield child
                if not ends:
                    child.send_signal(signal.SIGTERM)
                child.wait(SOON_S)
            finally:
                # its children, too
                child.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(5)
                child.kill()

    def _await_port(self, port: int, child: subprocess.Popen[bytes]) -> None:
        wanted = f":{port:04X} "
        until = time.monotonic() + SOON_S
        while time.monotonic() < until and child.poll() is None:
            tables = subprocess.run(
                ["ip", "netns", "exec", self.there, "cat", "/proc/net/tcp", "/proc/net/tcp6"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            if any(wanted in line and " 0A " in line for line in tables.splitlines()):
                return
            time.sleep(0.02)
        raise AssertionError((self.place / f"server-{port}.log").read_text())

    def counted(self) -> dict[str, Any]:
        """What all processes counted since the last time."""
        told = cli.gathered(self.place)
        for file in self.place.glob("sockets-*.json"):
            file.unlink()
        return told


@dataclass
class Talk:
    """A running program: what it is told and what it says."""

    child: subprocess.Popen[bytes]
    input: IO[bytes]
    output: IO[bytes]

    def ask(self, text: str) -> bytes:
        """A line, and the line that answers it."""
        self.input.write(text.encode() + b"\n")
        self.input.flush()
        return self.output.readline()

    def rest(self) -> bytes:
        """There is no more input: what it says until its end."""
        self.input.close()
        return self.output.read()


def by_beowire(told: dict[str, Any], least: int) -> None:
    """So many bytes were sent by Beowire and came by it. No share of all: how many went before it
    took over depends on how busy the machine is."""
    assert told["tx_beowire"] >= least, told
    assert told["rx_beowire"] >= least, told
    assert told["lost"] == 0, told


def program(name: str) -> str:
    """A program of the build."""
    return str(places.product(f"tests/sockets/{name}"))


def free_port() -> int:
    """A port that nobody of this namespace listens on; nodes have all of them."""
    with socket.socket() as one:
        one.bind(("", 0))
        return int(one.getsockname()[1])


def environment() -> dict[str, str]:
    """Without what the tests' own process was given."""
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def load_json(file: Path) -> Any:
    """What a command wrote."""
    return json.loads(file.read_text())
