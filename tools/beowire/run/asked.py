# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands that are executed for what they say, begun before anybody waits for them: several that a
job depends on then take as long as the slowest one."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

LIMIT_S = 120.0
"""For a command that only tells something; ompi_info took 20 s on a machine at a load of 40."""

_Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


class Answer(NamedTuple):
    """How a command ended and what it said, on either output."""

    status: int
    text: str


class _Begun(NamedTuple):
    process: "subprocess.Popen[bytes]"
    said: IO[bytes]
    """A file: a command does not wait until somebody reads a pipe."""


_begun: dict[_Key, _Begun] = {}


def begin(command: Sequence[str], variables: Mapping[str, str] | None = None) -> None:
    """Starts a command that `answer` will be called for soon, with these variables beyond ours."""
    key = _key(command, variables)
    if key in _begun:
        return
    said = tempfile.TemporaryFile()  # noqa: SIM115
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict(key[1])},
        )
    except BaseException:
        said.close()
        raise
    _begun[key] = _Begun(process, said)


def answer(command: Sequence[str], variables: Mapping[str, str] | None = None) -> Answer:
    """What the command says, once for each time that it was begun; it is begun now if it was not.
    OSError if it cannot be executed, subprocess.TimeoutExpired if it does not end."""
    begin(command, variables)
    process, said = _begun.pop(_key(command, variables))
    with said:
        try:
            status = process.wait(timeout=LIMIT_S)
        except BaseException:
            process.kill()
            process.wait()
            raise
        said.seek(0)
        return Answer(status, said.read().decode(errors="replace"))


def _key(command: Sequence[str], variables: Mapping[str, str] | None) -> _Key:
    return tuple(command), tuple(sorted((variables or {}).items()))
