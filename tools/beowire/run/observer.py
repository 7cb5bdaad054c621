# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Watches a job from outside: the kernel's counters on every node before and after, and the
directory into which Beowire's endpoints write theirs.

In a lab both are at hand; on real hosts they are fetched over ssh, and what else the hosts send
meanwhile is counted too. What a job left in the hosts' shared memory is removed on the same way. A
host that was lost with the job does not answer then: that is noted, and the others are asked all
the same.
"""

import base64
import contextlib
import shlex
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from beowire import places, private_dir, signals
from beowire.errors import BeowireError
from beowire.lab import counters
from beowire.lab.counters import NodeCounters
from beowire.run import remote
from beowire.run.cluster import Cluster
from beowire.terminal import note

_SEPARATOR = "-- beowire --"
_BEGAN = ".began"
"""A file that was made when the job began."""
_LIMIT_S = 10.0
"""For a host to answer when the job has ended."""


@dataclass
class Observation:
    """What was seen, complete once the context of `observed` has ended."""

    stats_dir: str
    """Where the endpoints write their counters, on the nodes."""
    nodes: dict[str, NodeCounters] = field(default_factory=dict)
    exclusive: bool = True
    """The nodes' counters hold nothing but this job's traffic."""
    unheard: list[str] = field(default_factory=list)
    """Hosts of which nothing is known, as they did not answer when the job had ended."""


@contextlib.contextmanager
def observed(cluster: Cluster, directory: Path) -> Iterator[Observation]:
    """Observes the job that runs while the context lasts; the endpoints' files are in `directory`
    afterwards."""
    if cluster.lab is None:
        with _observed_hosts(cluster, directory) as observation:
            yield observation
        return
    observation = Observation(str(directory))
    if cluster.lab.mode == "loopback":  # the machine's counters tell nothing of single nodes
        yield observation
        return
    before = counters.of_lab(cluster.lab)
    yield observation
    after = counters.of_lab(cluster.lab)
    observation.nodes = {node: after[node].since(before[node]) for node in after}


@contextlib.contextmanager
def _observed_hosts(cluster: Cluster, directory: Path) -> Iterator[Observation]:
    # Hosts may share the directory (and the test of this does): all get the same name.
    distant = f"/tmp/beowire-{uuid.uuid4()}"
    observation = Observation(distant, exclusive=False)
    name = shlex.quote(distant)
    began: dict[str, bytes] = {}
    try:
        start = f"{private_dir.make_script(name)} && touch {name}/{_BEGAN} && {_READ_COUNTERS}"
        began = remote.execute_everywhere(cluster, start)
        yield observation
        _collect(cluster, began, observation, directory)
    finally:
        left = _sweep(cluster, name)
        for host, error in left.items() if began else ():
            note(f"what the job left on {host} was not removed: {error.what}")


def _collect(
    cluster: Cluster, began: dict[str, bytes], observation: Observation, directory: Path
) -> None:
    """Fetches what was counted on each host."""
    name = shlex.quote(observation.stats_dir)
    pack = f"tar -C {name} --exclude {_BEGAN} -cf - . | base64"
    script = f"{_READ_COUNTERS}; echo '{_SEPARATOR}'; {pack}"
    ended = remote.ask_everywhere(cluster, script, limit_s=_LIMIT_S)
    unknown = {host: error.what for host, error in ended.failed.items()}
    for host, told in ended.told.items():
        try:
            *texts, archive = told.decode().split(f"{_SEPARATOR}\n")
            before = _parsed(began[host].decode().split(f"{_SEPARATOR}\n"))
            counted = _parsed(texts).since(before)
            remote.unpack(base64.b64decode(archive), directory)
        except (ValueError, LookupError, tarfile.TarError):
            unknown[host] = "it tells what makes no sense."
        else:
            observation.nodes[host] = counted
    observation.unheard += unknown
    for host, why in unknown.items():
        note(f"what was counted on {host} is not known: {why}")


@signals.uninterrupted()
def _sweep(cluster: Cluster, name: str) -> dict[str, BeowireError]:
    """Removes what the job left on the hosts; the failures of those where it stays."""
    sweep = shlex.quote(places.package_file("run/sweep.sh").read_text())
    script = f"sh -c {sweep} sweep.sh {name}/{_BEGAN}; rm -rf {name}"
    return remote.ask_everywhere(cluster, script, limit_s=_LIMIT_S).failed


_READ_COUNTERS = f" && echo '{_SEPARATOR}' && ".join(
    f"{{ cat /proc/net/{name} 2>/dev/null || true; }}" for name in counters.FILES
)


def _parsed(texts: list[str]) -> NodeCounters:
    return counters.parse(dict(zip(counters.FILES, texts, strict=True)))
