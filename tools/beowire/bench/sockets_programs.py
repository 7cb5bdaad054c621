# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that a measurement starts: what one printed, and servers while they are needed."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import IO

from beowire import child
from beowire.errors import BeowireError
from beowire.sockets import cli as preloading

LIMIT_S = 300.0
START_S = 120.0
"""On a busy machine each look whether it listens may take seconds."""


def output(words: list[str]) -> str:
    """What the program printed; it must end well, and in time."""
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        with child.running(words, said, errors) as program:
            try:
                status = program.wait(LIMIT_S)
            except subprocess.TimeoutExpired as error:
                raise BeowireError(
                    f"{words[-1]}: no end after {LIMIT_S:.0f} s", " ".join(words)
                ) from error
        if status:
            told = _text(said) + _text(errors)
            raise BeowireError(f"A program ended with {status}:\n{told}", " ".join(words))
        return _text(said)


@contextlib.contextmanager
def running(words: list[str], name: str, ready: Callable[[], bool]) -> Iterator[None]:
    """A server, from when it is ready to the end of the block."""
    with tempfile.TemporaryFile() as said, child.running(words, said, said) as server:
        until = time.monotonic() + START_S
        while not ready():
            if server.poll() is not None or time.monotonic() > until:
                raise BeowireError(f"{name} does not serve:\n{_text(said)}", " ".join(words))
            time.sleep(0.05)
        yield


@contextlib.contextmanager
def serving(
    lab: str,
    node: str,
    words: list[str],
    name: str,
    port: int,
    answers: Callable[[], bool] | None = None,
) -> Iterator[None]:
    """A server on a node of a lab, from when it listens on the port, and `answers` says so too."""
    if _listens(lab, node, port):
        raise BeowireError(f"{node}: port {port} is taken.", "End who listens there.")
    line = [*preloading.where(lab, node), *words]

    def ready() -> bool:
        return _listens(lab, node, port) and (answers is None or answers())

    with running(line, name, ready):
        yield


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode(errors="replace")


def _listens(lab: str, node: str, port: int) -> bool:
    """Is there a socket that listens on this port? (proc(5): /proc/net/tcp, state 0A)"""
    text = output([*preloading.where(lab, node), "cat", "/proc/net/tcp", "/proc/net/tcp6"])
    rows = [line.split() for line in text.splitlines()]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows if len(row) > 3)
