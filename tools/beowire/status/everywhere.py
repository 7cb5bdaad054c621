# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The same question to many nodes at once, by the way that jobs are started there."""

import os
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from beowire import places
from beowire.run.answer import TooMuchError, execute, read_json
from beowire.run.cluster import Cluster
from beowire.status.node import FORM

_FANOUT = 64
_UNREACHED = 255
_BYTES_MAX = 32 << 20
"""What a node may tell: of some hundred endpoints, all with as many peers as a board has."""


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


def _one(cluster: Cluster, host: str, command: str, limit_s: float) -> dict[str, Any] | str:
    """What a node told, or why it did not."""
    try:
        status, answer, errors = execute(
            cluster.reach(host, command), os.environ | cluster.environment, limit_s, _BYTES_MAX
        )
    except TimeoutError:
        return f"no answer within {limit_s:g} s"
    except TooMuchError:
        return f"it tells more than {_BYTES_MAX >> 20} MiB"
    except OSError as error:
        return f"{cluster.agent[0]} cannot be executed: {error.strerror}"
    try:
        told = read_json(answer)
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
