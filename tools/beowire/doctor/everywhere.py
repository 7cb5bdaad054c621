# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Examines many nodes at once; a node that fails is named, the rest goes on."""

import json
import math
import os
import selectors
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from beowire import __version__, places
from beowire.doctor.sensible import sensible
from beowire.doctor.uniformity import Told
from beowire.run.cluster import Cluster

_NOT_FOUND = 127
_UNREACHED = 255
_BYTES_MAX = 8 << 20
"""What a node may tell: one with four interfaces tells 40 KiB."""
_ERRORS_MAX = 65536
_READ_BYTES = 65536
_VERSION_MAX = 64
_NONSENSE = "it tells what makes no sense"


class TooMuchError(Exception):
    """A node tells more than is read."""


@dataclass
class Answers:
    """What nodes told, and why the others did not."""

    told: dict[str, Told] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def command(cluster: Cluster, arguments: list[str]) -> str:
    """What a node executes to run `beowire doctor ARGUMENTS`."""
    if cluster.lab is not None:
        # One machine: no bootstrap script for each node, and no more of Python than is needed.
        program = places.module("beowire.doctor")
    else:
        program = [str(places.command()), "doctor"]
    return shlex.join([*program, *arguments])


def ask(cluster: Cluster, arguments: list[str], fanout: int, timeout_s: float) -> Answers:
    """Runs `beowire doctor ARGUMENTS`, which tells JSON, on all nodes of the cluster."""
    remote = command(cluster, arguments)
    answers = Answers()
    pool = ThreadPoolExecutor(max_workers=fanout)
    try:
        asked = {
            node: pool.submit(_one, cluster, node, remote, timeout_s) for node in cluster.hosts
        }
        for node, future in asked.items():
            said = future.result()
            if isinstance(said, str):
                answers.failed[node] = said
            else:
                answers.told[node] = said
    finally:
        pool.shutdown(cancel_futures=True)  # who interrupts this wants no more nodes to be asked
    return answers


def _one(cluster: Cluster, node: str, remote: str, limit_s: float) -> Told | str:
    """What a node told, or why it did not."""
    try:
        status, output, errors = _execute(
            cluster.reach(node, remote), os.environ | cluster.environment, limit_s
        )
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except TooMuchError:
        return f"it tells more than {_BYTES_MAX >> 20} MiB"
    except OSError as error:
        return f"{cluster.agent[0]} cannot be executed: {error.strerror}"
    try:
        told = json.loads(output, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        return _reason(status, output, errors.decode(errors="replace").strip())
    return _judged(told)


def _execute(
    words: list[str], environment: dict[str, str], limit_s: float
) -> tuple[int, bytes, bytes]:
    """Status, output and errors of a command; TimeoutError if it has not ended by then."""
    until = time.monotonic() + limit_s
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(
        words, stdin=nothing, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        try:
            answer, errors = _collect(process, until)
            status = process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise TimeoutError from error
        finally:
            process.kill()  # which does nothing to one that has ended
    return status, answer, errors


def _collect(process: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes]:
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
            if len(answer) > _BYTES_MAX:
                raise TooMuchError
    return bytes(answer), bytes(errors)


def _no_number(text: str) -> float:
    """NaN and Infinity are no numbers of JSON (RFC 8259), though Python reads and writes them."""
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _judged(told: object) -> Told | str:
    """An examination by the same version; else what is wrong with it."""
    if not isinstance(told, dict):
        return _NONSENSE
    theirs = told.get("version")
    if theirs == __version__:
        return told if sensible(told) else _NONSENSE
    if isinstance(theirs, str) and theirs.isprintable() and len(theirs) <= _VERSION_MAX:
        return f"it has version {theirs} of beowire, here is {__version__}"
    return _NONSENSE


def _reason(status: int, output: bytes, errors: str) -> str:
    """Why what a node told is no JSON."""
    last = errors.splitlines()[-1] if errors else ""
    if status == _NOT_FOUND:
        return f"{places.command()} is not there ({last})"
    if status == _UNREACHED:
        return f"it is not reached: {last or 'no reason was told'}"
    return last or (_NONSENSE if output else f"it told nothing; status {status}")
