# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Examines many nodes at once; a node that fails is named, the rest goes on."""

import os
import shlex
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from beowire import __version__, places
from beowire.doctor.sensible import sensible
from beowire.doctor.uniformity import Told
from beowire.run.answer import TooMuchError, execute, read_json
from beowire.run.cluster import Cluster

_NOT_FOUND = 127
_UNREACHED = 255
_INTERRUPTED = (-signal.SIGINT, 128 + signal.SIGINT)
_BYTES_MAX = 8 << 20
"""What a node may tell: one with four interfaces tells 40 KiB."""
_VERSION_MAX = 64
_NONSENSE = "it tells what makes no sense"


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
    interrupted = threading.Event()
    pool = ThreadPoolExecutor(max_workers=fanout)
    try:
        asked = {
            node: pool.submit(_one, cluster, node, remote, timeout_s, interrupted)
            for node in cluster.hosts
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


def _one(
    cluster: Cluster, node: str, remote: str, limit_s: float, interrupted: threading.Event
) -> Told | str:
    """What a node told, or why it did not.

    A Ctrl-C ends the agents as well, perhaps before it is known here: once it has ended one of
    them, no more nodes are asked.
    """
    if interrupted.is_set():
        return "it was not asked: interrupted"
    try:
        status, output, errors = execute(
            cluster.reach(node, remote), os.environ | cluster.environment, limit_s, _BYTES_MAX
        )
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except TooMuchError:
        return f"it tells more than {_BYTES_MAX >> 20} MiB"
    except OSError as error:
        return f"{cluster.agent[0]} cannot be executed: {error.strerror}"
    if status in _INTERRUPTED:
        interrupted.set()
    try:
        told = read_json(output)
    except (ValueError, RecursionError):
        return _reason(status, output, errors.decode(errors="replace").strip())
    return _judged(told)


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
