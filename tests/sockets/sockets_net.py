# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs with the preload library on two nodes, and what their processes counted."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire import places
from beowire.sockets import cli

HERE, THERE = "10.77.0.1", "10.77.0.2"
SOON_S = 60
"""For what takes a moment on an idle machine."""


@dataclass
class Nodes:
    """Two nodes; programs run by default with the library, and leave counts in `place`."""

    here: str
    there: str
    place: Path
    variables: dict[str, str] = field(default_factory=dict)

    def words(self, node: str, words: list[str], library: bool = True) -> list[str]:
        """The command line that runs these on a node."""
        variables = cli.preload() | {cli.STATS: str(self.place)} | self.variables
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
            timeout=2 * SOON_S,
            cwd=self.place,
        )
        assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
        return done.stdout

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


def by_beowire(told: dict[str, Any], least: int, share: float = 0.9) -> None:
    """So many bytes went, most of them by Beowire, and those sent by it have come by it."""
    assert told["tx_bytes"] >= least, told
    assert told["tx_beowire"] >= share * told["tx_bytes"], told
    assert told["rx_beowire"] >= share * told["rx_bytes"], told
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
