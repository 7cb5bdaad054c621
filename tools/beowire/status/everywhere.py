# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same question to many nodes at once, by the way that jobs are started there."""

import json
import math
import os
import selectors
import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from beowire import places
from beowire.run.cluster import Cluster
from beowire.status.node import FORM

_FANOUT = 64
_UNREACHED = 255
_BYTES_MAX = 32 << 20
"""What a node may tell: of some hundred endpoints, all with as many peers as a board has."""
_ERRORS_MAX = 65536
_READ_BYTES = 65536


class TooMuchError(Exception):
    """A node tells more than is read."""


@dataclass
class Answers:
    """What nodes told, by the names that we call them by, and why the others did not."""

    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def _command(cluster: Cluster, ranks: bool) -> str:
    """What a node executes: no more of Python than is needed where all nodes are one machine."""
    if cluster.lab is None:
        return shlex.join([str(places.command()), "status", "--node"])
    options = ["--ranks"] if ranks else []
    if cluster.lab.mode != "loopback":
        options.append("--own-network")
    return shlex.join([*places.module("beowire.status"), *options])


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


def execute(
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


def _no_number(text: str) -> float:
    """NaN and Infinity are no numbers of JSON (RFC 8259), though Python reads and writes them."""
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text)


def _one(cluster: Cluster, host: str, command: str, limit_s: float) -> dict[str, Any] | str:
    """What a node told, or why it did not."""
    try:
        status, answer, errors = execute(
            cluster.reach(host, command), os.environ | cluster.environment, limit_s
        )
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except TooMuchError:
        return f"it tells more than {_BYTES_MAX >> 20} MiB"
    except OSError as error:
        return f"{cluster.agent[0]} cannot be executed: {error.strerror}"
    try:
        told = json.loads(answer, parse_constant=_no_number, parse_float=_finite)
        form = told["form"]
    except (ValueError, KeyError, TypeError, RecursionError):
        words = errors.decode(errors="replace").strip().splitlines()
        silent = f"status {status}" if status else "it tells what makes no sense"
        last = words[-1] if words else silent
        return f"it is not reached: {last}" if status == _UNREACHED else last
    if form != FORM or isinstance(form, bool | float):
        return f"it tells another form, here form {FORM} is read"
    return dict(told)


def ask(cluster: Cluster, limit_s: float, *, ranks: bool) -> Answers:
    """What all nodes of a cluster tell. Nodes on loopback addresses are one node."""
    alone = cluster.lab is not None and cluster.lab.mode == "loopback"
    hosts = cluster.hosts[:1] if alone else cluster.hosts
    command = _command(cluster, ranks)
    answers = Answers()
    with ThreadPoolExecutor(max_workers=_FANOUT) as pool:
        asked = {host: pool.submit(_one, cluster, host, command, limit_s) for host in hosts}
        for host, future in asked.items():
            said = future.result()
            if isinstance(said, str):
                answers.failed[host] = said
            else:
                answers.told[host] = said
    return answers
