# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A shell to which commands are given one after another, as a reader types them: variables and
background jobs last from one command to the next."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Self

_LIMIT_S = 600


class Shell:
    """Bash in a session of its own; whatever it still runs at the end is killed."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        self._told, told = os.pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-u"],
            cwd=directory,
            env={**os.environ, **variables, "TOLD": str(told)},
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            pass_fds=[told],
            start_new_session=True,
        )
        os.close(told)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._output.close()
        os.close(self._told)

    def run(self, command: str) -> tuple[int, str]:
        """The status of a command, and what came out meanwhile, of background jobs as well."""
        assert self._process.stdin is not None
        before = self._end()
        line = f"{{ {command}\n}} </dev/null\necho $? >&$TOLD\n"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        ready, _, _ = select.select([self._told], [], [], _LIMIT_S)
        assert ready, f"{command}: no end after {_LIMIT_S} s:\n{self._since(before)}"
        status = os.read(self._told, 16)
        return int(status), self._since(before)

    def _end(self) -> int:
        return os.fstat(self._output.fileno()).st_size

    def _since(self, before: int) -> str:
        told = os.pread(self._output.fileno(), self._end() - before, before)
        return told.decode(errors="replace")
