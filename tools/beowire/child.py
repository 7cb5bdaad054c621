# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program that a command starts, with a process group of its own, and ends with all of it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import IO

from beowire import signals
from beowire.errors import BeowireError

_PATIENCE_S = 15.0
"""For a program that was told to end, to clean up behind itself."""


@contextlib.contextmanager
def running(
    words: list[str], output: IO[bytes], errors: IO[bytes]
) -> "Iterator[subprocess.Popen[bytes]]":
    """The program, started; it and all of its process group are ended with the block.
    BeowireError: it cannot be started."""
    child: subprocess.Popen[bytes] | None = None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # An interruption while it is being started would leave it running, unknown to us.
        with signals.uninterrupted():
            child = _start(words, output, errors, mask)
        yield child
    finally:
        if child is not None:
            _end(child)


def _start(
    words: list[str], output: IO[bytes], errors: IO[bytes], mask: set[signal.Signals | int]
) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
            preexec_fn=lambda: signals.release(mask),
        )
    except OSError as error:
        raise BeowireError(
            f"{words[0]} cannot be started: {error.strerror or error}.", "Name a program."
        ) from error


@signals.uninterrupted()
def _end(child: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_PATIENCE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)  # what outlived its leader
