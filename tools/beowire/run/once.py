# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a job says on its standard error, with each remark of Beowire's own told once.

Every node that notices an event (a peer is gone) tells it, and cannot know what others tell. The
one place where all that is said comes together is where the launcher was started.
"""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from beowire import signals
from beowire.run.endings import tells_of_a_loss
from beowire.run.likewise import Likewise

_OURS = b"beowire: "
_LONGEST = 4096  # bytes of a line that is looked at
_PATIENCE_S = 10.0


class Once:
    """Text that passes, in pieces of any size, but for remarks of Beowire's that passed before, and
    those of a fault that another node told: which nodes they are of is told at the end.

    Other text is handed on at once, byte for byte; a line that begins as Beowire's do is held back
    until its end is known, and so is what begins so within a line, behind what another process has
    not ended yet. There only what tells of a loss is a remark.
    """

    def __init__(self) -> None:
        self._told: set[bytes] = set()
        self._likewise = Likewise()
        self._held = b""
        self._inside = False  # in the middle of a line of somebody else's,
        self._begun = b""  # of which this has passed, the last bytes of a long one
        self.lost = False  # a remark told of a peer that was lost

    def feed(self, piece: bytes) -> bytes:
        """What may be handed on now."""
        data, self._held = self._held + piece, b""
        passed: list[bytes] = []
        while data:
            line, newline, rest = data.partition(b"\n")
            if self._inside or not self._may_be_ours(line):
                at = line.find(_OURS)
                if 0 <= at >= len(line) - _LONGEST:
                    if not newline:
                        self._held = line[at:]
                        line = line[:at]
                    elif line[at:] in self._told and tells_of_a_loss(line[at:]):
                        line = line[:at]
                passed.append(line + newline)
                self._inside = not newline
                self._begun = (self._begun + line)[-_LONGEST:]
                if newline:
                    self._look_within(self._begun)
                    self._begun = b""
            elif newline:
                self.lost = self.lost or tells_of_a_loss(line)
                if line not in self._told and not self._likewise.is_known(line):
                    passed.append(line + newline)
                    self._told.add(line)
            elif len(line) > _LONGEST:
                passed.append(line)
                self._inside = True
            else:
                self._held = line
            data = rest
        return b"".join(passed)

    def _look_within(self, line: bytes) -> None:
        """In a line that has passed a remark of a loss may have begun later: it was told.

        It ends no job, as it may be a program's words about another one.
        """
        at = line.find(_OURS)
        if at >= 0 and tells_of_a_loss(line[at:]):
            self._told.add(line[at:])

    def end(self) -> bytes:
        """What was held back when no more comes."""
        held, self._held = self._held, b""
        rest = self._likewise.rest()
        return held + b"\n" * bool(rest and (held or self._inside)) + rest

    @staticmethod
    def _may_be_ours(line: bytes) -> bool:
        return line.startswith(_OURS) or _OURS.startswith(line)


@dataclass(frozen=True)
class Passage:
    """Where a job's standard error goes in."""

    descriptor: int
    _loss: int
    """A pipe into which the reader writes once it read of a loss."""

    def loss_was_told(self) -> bool:
        """Whether a remark of Beowire's that passed told of a peer that was lost."""
        return bool(select.select([self._loss], [], [], 0)[0])

    def say(self, lines: bytes) -> None:
        """Lets these lines pass as if the job had said them: those that passed before do not."""
        _write(self.descriptor, lines)


@contextlib.contextmanager
def told_once(errors: IO[bytes] | int | None) -> Iterator[Passage]:
    """A way for a job's standard error, whose text goes on to `errors` (None: to ours).

    A process of its own passes the text on, in a session of its own: a launcher has to find a
    reader even when we are killed, or it would die of what it says while it cleans up.
    """
    if errors is None:
        target = sys.stderr.fileno()
    else:
        target = errors if isinstance(errors, int) else errors.fileno()
    reading, writing = os.pipe()
    loss_reading, loss_writing = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with signals.uninterrupted():
        reader = os.fork()
        if reader == 0:
            try:
                os.setsid()
                signals.release(mask)
                os.close(writing)
                _pass_on(reading, target, loss_writing)
            finally:
                os._exit(0)
        os.close(reading)
    try:
        # Our end of the writing side stays open: the reader's end alone is no loss.
        yield Passage(writing, loss_reading)
    finally:
        os.close(writing)
        os.close(loss_reading)
        os.close(loss_writing)
        _await(reader)


def _await(reader: int) -> None:
    """Waits for the reader's end, but not for ever: a process that left the job and lives on may
    hold the other end."""
    ended = os.pidfd_open(reader)
    try:
        waiting = select.poll()
        waiting.register(ended, select.POLLIN)
        if waiting.poll(_PATIENCE_S * 1000):
            os.waitpid(reader, 0)
    finally:
        os.close(ended)


def _pass_on(reading: int, target: int, loss: int) -> None:
    once = Once()
    told = False
    while piece := os.read(reading, 65536):
        _write(target, once.feed(piece))
        if once.lost and not told:
            told = True
            _write(loss, b"!")
    _write(target, once.end())


def _write(target: int, data: bytes) -> None:
    with contextlib.suppress(OSError):  # nobody reads any more; the writers need not know
        while data:
            data = data[os.write(target, data) :]
