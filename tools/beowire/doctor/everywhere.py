# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Examines many nodes at once by ClusterShell; a node that fails is named, the rest goes on."""

import json
import shlex
from dataclasses import dataclass, field

from ClusterShell.NodeSet import NodeSet
from ClusterShell.Task import task_self
from ClusterShell.Worker.Exec import ExecWorker

from beowire import __version__, places
from beowire.doctor.uniformity import Told
from beowire.run.cluster import Cluster

FINDINGS = 1
_HOST = "%h"
"""Where ClusterShell puts a node's name."""
_NOT_FOUND = 127
_UNREACHED = 255


@dataclass
class Answers:
    """What nodes told, and why the others did not."""

    told: dict[str, Told] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def command(cluster: Cluster, arguments: list[str]) -> str:
    """The shell command that runs `beowire doctor ARGUMENTS` on a node, with %h for its name. The
    shell becomes it: who is late is killed, and not only the shell."""
    if cluster.lab is not None:
        # One machine: no bootstrap script for each node, and no more of Python than is needed.
        program = places.module("beowire.doctor")
    else:
        program = [str(places.command()), "doctor"]
    remote = shlex.join([*program, *arguments])
    variables = [f"{name}={value}" for name, value in cluster.environment.items()]
    words = ["env", *variables, *cluster.reach(_HOST, remote)]
    escaped = [word if word == _HOST else word.replace("%", "%%") for word in words]
    return f"exec {shlex.join(escaped)} </dev/null"


def ask(cluster: Cluster, arguments: list[str], fanout: int, timeout_s: float) -> Answers:
    """Runs `beowire doctor ARGUMENTS`, which tells JSON, on all nodes of the cluster."""
    task = task_self()
    task.set_info("fanout", fanout)
    task.set_default("stderr", True)
    nodes = NodeSet.fromlist(cluster.hosts)
    worker = ExecWorker(
        nodes,
        handler=None,
        timeout=timeout_s,
        command=command(cluster, arguments),
        stderr=True,
    )
    task.schedule(worker)
    task.resume()
    statuses = {str(node): status for status, those in worker.iter_retcodes() for node in those}
    late = {str(node) for node in worker.iter_keys_timeout()}
    answers = Answers()
    for node in map(str, nodes):
        output = bytes(worker.node_buffer(node) or b"")
        errors = bytes(worker.node_error(node) or b"").decode(errors="replace").strip()
        if node in late:
            answers.failed[node] = f"no answer within {timeout_s:g} s"
        else:
            _sort(answers, node, statuses.get(node, _UNREACHED), output, errors)
    return answers


def _sort(answers: Answers, node: str, status: int, output: bytes, errors: str) -> None:
    try:
        told = json.loads(output)
        told["outcomes"], told["facts"]
    except (ValueError, KeyError, TypeError):
        answers.failed[node] = _reason(status, errors)
        return
    if told.get("version") != __version__:
        theirs = told.get("version")
        answers.failed[node] = f"it has version {theirs} of beowire, here is {__version__}"
        return
    answers.told[node] = told


def _reason(status: int, errors: str) -> str:
    last = errors.splitlines()[-1] if errors else ""
    if status == _NOT_FOUND:
        return f"{places.command()} is not there ({last})"
    if status == _UNREACHED:
        return f"it is not reached: {last or 'no reason was told'}"
    return last or f"it told nothing; status {status}"
