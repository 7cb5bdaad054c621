# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Commands whose output is another node's word: so much of it is read, for so long, and of JSON
only what is JSON."""

import json
import math
import os
import selectors
import subprocess
import time
from typing import Any

_ERRORS_MAX = 65536
_READ_BYTES = 65536


class TooMuchError(Exception):
    """A command says more than is read."""


def _collect(process: subprocess.Popen[bytes], until: float, most: int) -> tuple[bytes, bytes]:
    """What a process says on both ways, so much of it and until then."""
    assert process.stdout is not None
    assert process.stderr is not None
    said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    answer, errors = said.values()
    with selectors.DefaultSelector() as ready:
        for file in said:
            ready.register(file, selectors.EVENT_READ)
        while ready.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in ready.select(left):
                data = os.read(key.fd, _READ_BYTES)
                said[key.fd] += data
                if not data:
                    ready.unregister(key.fd)
            del errors[:-_ERRORS_MAX]
            if len(answer) > most:
                raise TooMuchError
    return bytes(answer), bytes(errors)


def execute(
    words: list[str], environment: dict[str, str], limit_s: float, most: int
) -> tuple[int, bytes, bytes]:
    """Status, output and errors of a command. TimeoutError if it has not ended by then;
    TooMuchError if it says more than `most` bytes, while of its errors the last are kept."""
    until = time.monotonic() + limit_s
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        words, stdin=nothing, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        try:
            answer, errors = _collect(process, until, most)
            status = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        finally:
            process.kill()  # which does nothing to one that has ended
    return status, answer, errors


def _no_number(text: str) -> float:
    """NaN and Infinity are no numbers of JSON (RFC 8259), though Python reads and writes them."""
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def read_json(text: bytes) -> Any:
    """ValueError if it is not JSON; RecursionError if it is nested beyond what Python reads."""
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)
