# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What all nodes told, put together: endpoints know one another's names then."""

import time
from typing import Any

from beowire.run.cluster import Cluster
from beowire.status import everywhere, figures, node, prometheus, tables
from beowire.status.__main__ import INTERVAL_S
from beowire.status.sensible import sensible
from beowire.status.words import called


def look(where: Cluster | None, limit_s: float, ranks: bool = False) -> dict[str, Any]:
    """The state of this node (None), or of all nodes of a cluster."""
    if where is None:
        told = node.look(INTERVAL_S, ranks=ranks)
        nodes, failed = {told["host"]: told}, {}
    else:
        answers = everywhere.ask(where, limit_s, ranks=ranks)
        nodes, failed = answers.told, answers.failed
        for name in [each for each, said in nodes.items() if not _sensible(said)]:
            del nodes[name]
            failed[name] = "it tells what makes no sense"
    return joined(nodes, failed)


def joined(nodes: dict[str, dict[str, Any]], failed: dict[str, str]) -> dict[str, Any]:
    """One object of what several nodes told. Which node tells, and of which process, is known here:
    what it says of that itself gives way."""
    endpoints: list[dict[str, Any]] = []
    processes: dict[str, dict[str, Any]] = {}
    for name, told in nodes.items():
        for each in told["endpoints"]:
            endpoints.append({**each, "node": name})
        for pid, process in told["processes"].items():
            processes[f"{name}:{pid}"] = {**process, "node": name, "pid": int(pid)}
    known = {each["identity"]: each for each in endpoints}
    for each in endpoints:
        for peer in each["peers"]:
            other = known.get(peer["identity"])
            peer["name"] = called(other) if other else _elsewhere(peer)
    figures.add_verdicts(endpoints)
    return {
        "form": node.FORM,
        "time": time.time(),
        "nodes": sorted(nodes),
        "unreached": failed,
        "endpoints": endpoints,
        "processes": processes,
        "kernel": {name: told["kernel"] for name, told in nodes.items() if told["kernel"]},
    }


def _sensible(told: dict[str, Any]) -> bool:
    """Whether all is there that is needed to show what a node told, of the right kind."""
    if not sensible(told):
        return False
    try:
        state = joined({"": told}, {})
        tables.whole(state)
        prometheus.text(state)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        return False
    return True


def _elsewhere(peer: dict[str, Any]) -> str:
    """The same of one that nobody told about."""
    engine = peer["identity"].split("/")[1]
    return f"{peer['host'] or 'unknown'} engine {engine}"
