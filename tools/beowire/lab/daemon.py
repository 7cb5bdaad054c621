# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that live on with a lab: in a namespace of it, with a log, ready when they say so."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from beowire import places, signals
from beowire.errors import BeowireError
from beowire.lab.lab import Lab

_WORDS_MAX = 60
"""Of what a command that did not start said last."""


def start(
    lab: Lab,
    namespace: str,
    command: Sequence[str],
    log: Path,
    limit_s: float,
    ready: Callable[[str], bool],
    failure: tuple[str, str],
) -> int:
    """Starts a command in a namespace of the lab, in a session of its own; its process id, once
    `ready` finds in the log that it is ready. Who calls keeps Ctrl-C away until the id is noted.
    `failure`: what did not start, and what to do about it."""
    enter = [places.program("nsenter", "util-linux"), f"--net={lab.namespace_path(namespace)}"]
    pid = spawn([*enter, *command], log)
    try:
        await_ready(pid, log, limit_s, ready, failure)
    except BaseException:
        kill(pid)
        raise
    return pid


def spawn(words: list[str], log: Path) -> int:
    """Starts a command in a session of its own, with what it says in the log; its process id. Who
    calls keeps Ctrl-C away until the id is noted."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return os.posix_spawn(
        words[0],
        words,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
    )


def await_ready(
    pid: int,
    log: Path,
    limit_s: float,
    ready: Callable[[str], bool],
    failure: tuple[str, str],
) -> None:
    """Returns once `ready` finds in the log that a child of this process is ready; that it ended
    before, or that it takes longer, is an error with what it said last."""
    deadline = time.monotonic() + limit_s
    while True:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        text = log.read_text(errors="replace") if log.exists() else ""
        if ready(text):
            return
        if ended or time.monotonic() > deadline:
            why = " ".join(text.split()[-_WORDS_MAX:]) or "it said nothing"
            what, fix = failure
            raise BeowireError(f"{what} did not start: {why}", fix)
        signals.check_interrupted()
        time.sleep(0.002)


def kill(pid: int) -> None:
    """Ends a process and, where it is a child of this one, takes its status."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    reap(pid)


def reap(pid: int) -> None:
    """Takes the status of a process that this one has started. It has been killed, but for one
    that had not come to its node yet, where such are looked for: it is killed here."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG) == (0, 0):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
