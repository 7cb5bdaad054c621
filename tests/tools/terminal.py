# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A command on a terminal of its own, so that Ctrl-C is what it is for a person: a signal from the
terminal to every process of the foreground, launcher and program included."""

import contextlib
import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from beowire.lab.lab import marked_processes
from beowire_cli import COMMAND

PATIENCE_S = 400.0


@dataclass
class Terminal:
    """A running command and what it has written so far."""

    process: "subprocess.Popen[bytes]"
    descriptor: int
    mark: str
    """A variable that every process of it carries."""
    temporary: Path
    """Where it puts temporary files."""
    output: str = field(default="")

    def _read(self, seconds: float) -> bool:
        """Takes what is written within this time; false at the end."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:  # a terminal that nobody has open any more
            return False
        self.output += data.decode(errors="replace")
        return bool(data)

    def expect(self, pattern: str) -> None:
        """Waits until the output matches."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.output):
            assert time.monotonic() < deadline, self.output
            assert self._read(1.0), self.output

    def press_ctrl_c(self) -> None:
        os.write(self.descriptor, b"\x03")

    def wait(self) -> int:
        """The exit status; the output is complete afterwards."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(0.2) and self.process.poll() is None:
            assert time.monotonic() < deadline, self.output
        status = self.process.wait(PATIENCE_S)
        # What it said last may have come since it was read from last.
        while select.select([self.descriptor], [], [], 0)[0] and self._read(0):
            pass
        return status

    def left(self) -> list[str]:
        """What the command has left: processes and temporary files."""
        processes = []
        for pid in marked_processes(self.mark):
            with contextlib.suppress(OSError):  # it has just ended
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                processes.append(words.decode())
        return processes + [str(entry) for entry in self.temporary.iterdir()]


def _take_terminal() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextlib.contextmanager
def on_terminal(temporary: Path, *arguments: str) -> Iterator[Terminal]:
    """Runs the command with these arguments on a terminal."""
    mark = str(uuid.uuid4())
    ours, theirs = pty.openpty()
    environment = {**os.environ, "BEOWIRE_TEST_MARK": mark, "TMPDIR": str(temporary)}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        preexec_fn=_take_terminal,
    )
    os.close(theirs)
    try:
        yield Terminal(process, ours, f"BEOWIRE_TEST_MARK={mark}", temporary)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
