# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a job says on its standard error, with each remark of Beowire's own told once.

Every node that notices an event (a peer is gone) tells it, and cannot know what others tell. The
one place where all that is said comes together is where the launcher was started.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import IO

from beowire import signals

_OURS = b"beowire: "
_LONGEST = 4096  # bytes of a line that is looked at
_PATIENCE_S = 10.0


class Once:
    """Text that passes, in pieces of any size, but for remarks of Beowire's that passed before.

    Other text is handed on at once, byte for byte; a line that begins as Beowire's do is held back
    until its end is known.
    """

    def __init__(self) -> None:
        self._told: set[bytes] = set()
        self._held = b""
        self._inside = False  # in the middle of a line of somebody else's

    def feed(self, piece: bytes) -> bytes:
        """What may be handed on now."""
        data, self._held = self._held + piece, b""
        passed: list[bytes] = []
        while data:
            line, newline, rest = data.partition(b"\n")
            if self._inside or not self._may_be_ours(line):
                passed.append(line + newline)
                self._inside = not newline
            elif newline:
                if line not in self._told:
                    passed.append(line + newline)
                    self._told.add(line)
            elif len(line) > _LONGEST:
                passed.append(line)
                self._inside = True
            else:
                self._held = line
            data = rest
        return b"".join(passed)

    def end(self) -> bytes:
        """What was held back when no more comes."""
        held, self._held = self._held, b""
        return held

    @staticmethod
    def _may_be_ours(line: bytes) -> bool:
        return line.startswith(_OURS) or _OURS.startswith(line)


@contextlib.contextmanager
def told_once(errors: IO[bytes] | int | None) -> Iterator[int]:
    """A descriptor for a job's standard error, whose text goes on to `errors` (None: to ours).

    A process of its own passes the text on, in a session of its own: a launcher has to find a
    reader even when we are killed, or it would die of what it says while it cleans up.
    """
    if errors is None:
        target = sys.stderr.fileno()
    else:
        target = errors if isinstance(errors, int) else errors.fileno()
    reading, writing = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals.uninterrupted():
        reader = os.fork()
        if reader == 0:
            try:
                os.setsid()
                signals.release(mask)
                os.close(writing)
                _pass_on(reading, target)
            finally:
                os._exit(0)
        os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)
        _await(reader)


def _await(reader: int) -> None:
    """Waits for the reader's end, but not for ever: a process that left the job and lives on may
    hold the other end."""
    patience = time.monotonic() + _PATIENCE_S
    while os.waitpid(reader, os.WNOHANG) == (0, 0) and time.monotonic() < patience:
        time.sleep(0.005)


def _pass_on(reading: int, target: int) -> None:
    once = Once()
    while piece := os.read(reading, 65536):
        _write(target, once.feed(piece))
    _write(target, once.end())


def _write(target: int, data: bytes) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more; the writers need not know
        while data:
            data = data[os.write(target, data) :]
