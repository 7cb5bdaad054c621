# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Says what a long command is doing: one line that changes on a terminal, plain lines elsewhere."""

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from beowire.terminal import err

if TYPE_CHECKING:
    from rich.status import Status


class Progress:
    """Steps of a known number, each told when it begins, with the time that has passed."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.step = 0
        self._started_ns = time.monotonic_ns()
        self._status: Status | None = None

    @contextlib.contextmanager
    def shown(self) -> Iterator["Progress"]:
        if not err().is_terminal:
            yield self
            return
        with err().status("") as status:
            self._status = status
            try:
                yield self
            finally:
                self._status = None

    @property
    def elapsed_s(self) -> int:
        return (time.monotonic_ns() - self._started_ns) // 10**9

    def begin(self, text: str) -> None:
        """Begins the next step."""
        self.step += 1
        line = f"[{self.elapsed_s // 60}:{self.elapsed_s % 60:02}] {self.step}/{self.steps} {text}"
        if self._status is not None:
            self._status.update(line.replace("[", "\\[", 1))
        else:
            err().print(line)
