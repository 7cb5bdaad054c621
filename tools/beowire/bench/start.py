# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long a job takes in which ranks only meet: MPI_Init, one MPI_Allreduce, MPI_Finalize.

It runs over TCP and over Beowire in turn, started by the MPI's own launcher and by `run`; what is
timed are whole commands.
"""

import contextlib
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from beowire import places
from beowire.bench import pingpong, samples
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.run import launch, mpi, path
from beowire.run.cluster import Cluster, of_lab
from beowire.run.job import session
from beowire.run.launch import Job, Transport
from beowire.run.mpi import Mpi

Way = Literal["mpirun", "run"]
"""By the MPI's launcher, with the command line that `run` prints, or by `run` itself."""

WAYS: tuple[Way, ...] = ("mpirun", "run")
TRANSPORTS: tuple[Transport, ...] = ("tcp", "beowire")
RANKS = (2, 16)
LIMIT_S = 300.0


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    ranks: tuple[int, ...] = RANKS
    rounds: int = 11
    """Of both ways over both transports."""
    mpi: Mpi = "openmpi"


@dataclass(frozen=True)
class Figure:
    """Jobs of so many ranks, started in one way. Times in seconds, one from each round."""

    ranks: int
    way: Way
    tcp_s: list[float]
    beowire_s: list[float]
    ratio: samples.Ratio
    """The median of Beowire's times over TCP's in the same round."""


@dataclass
class Report:
    """All figures and how they came about."""

    plan: Plan
    figures: list[Figure] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    """By ranks, way and transport."""
    load: list[float] = field(default_factory=list)
    """Of the machine, over a minute: before and afterwards."""

    def as_json(self) -> dict[str, Any]:
        return {
            "ranks": list(self.plan.ranks),
            "rounds": self.plan.rounds,
            "mpi": self.plan.mpi,
            "figures": [{**vars(each), "ratio": vars(each.ratio)} for each in self.figures],
            "commands": self.commands,
            "load": self.load,
            "order": "A B A B, A is TCP",
            "machine": pingpong.machine(),
        }


def parse_ranks(text: str) -> tuple[int, ...]:
    """Numbers of ranks out of a list with commas, two or more each."""
    words = [each.strip() for each in text.split(",")]
    if not all(each.isdecimal() and int(each) > 1 for each in words):
        raise BeowireError(f"--ranks {text}?", "Give numbers of 2 or more, such as 2,16.")
    return tuple(int(each) for each in words)


@contextlib.contextmanager
def own_lab() -> Iterator[Cluster]:
    """Two nodes at a switch, gone afterwards."""
    name = f"start-{os.getpid()}"
    up.up(name, 2, 9000)
    try:
        yield of_lab(name)
    finally:
        up.down(name)


def measure(plan: Plan, cluster: Cluster, tell: Callable[[str], None]) -> Report:
    """Runs the plan; `tell` hears of each round before it begins."""
    report = Report(plan)
    report.load.append(os.getloadavg()[0])
    for ranks in plan.ranks:
        times: dict[tuple[Way, Transport], list[float]] = {
            (way, transport): [] for way in WAYS for transport in TRANSPORTS
        }
        for number in range(plan.rounds + 1):  # the first is not counted: files get into memory
            tell(f"{ranks} ranks: round {number} of {plan.rounds}")
            for (way, transport), taken in times.items():
                job = _job(plan, ranks, transport)
                took_s, command = _timed(job, cluster, way)
                report.commands[f"{ranks} {way} {transport}"] = command
                if number:
                    taken.append(took_s)
        report.figures += [
            figure(ranks, way, times[way, "tcp"], times[way, "beowire"]) for way in WAYS
        ]
    report.load.append(os.getloadavg()[0])
    return report


def figure(ranks: int, way: Way, tcp_s: list[float], beowire_s: list[float]) -> Figure:
    return Figure(ranks, way, tcp_s, beowire_s, samples.paired(beowire_s, tcp_s))


def medians(told: Figure) -> tuple[float, float]:
    """Over TCP and over Beowire, in seconds."""
    return median(told.tcp_s), median(told.beowire_s)


def _job(plan: Plan, ranks: int, transport: Transport) -> Job:
    suffix = ".mpich" if mpi.find(plan.mpi).family == "mpich" else ""
    return Job([str(places.example(f"meet{suffix}"))], ranks, transport, mpi=plan.mpi)


def _timed(job: Job, cluster: Cluster, way: Way) -> tuple[float, str]:
    """How long the whole command takes, in seconds, and the command; it has to go well, over the
    transport that it names."""
    with session(cluster) as directory:
        if way == "run":
            words, variables = _run_words(job, cluster), {}
        else:
            stats = {"BEOWIRE_STATS": str(directory)} if cluster.lab else {}
            plain = launch.command(replace(job, environment=stats), cluster)
            words, variables = plain.arguments, plain.environment
        began_ns = time.monotonic_ns()
        _execute(words, variables)
        took_s = (time.monotonic_ns() - began_ns) / 1e9
        if way == "mpirun" and cluster.lab:
            _check_endpoints(job, directory)
        return took_s, shlex.join(words)


def _run_words(job: Job, cluster: Cluster) -> list[str]:
    if cluster.lab is not None:
        where = ["--lab", cluster.lab.name]
    else:
        where = ["--hosts", ",".join(cluster.hosts), "--ssh", shlex.join(cluster.agent)]
        where += ["--network", cluster.network] if cluster.network else []
    words = [str(places.command()), "run", *where, "-n", str(job.ranks)]
    return [*words, "--transport", job.transport, "--mpi", job.mpi, "--prove", "--", *job.program]


def _execute(words: list[str], variables: dict[str, str]) -> None:
    with tempfile.TemporaryFile() as said:
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, **variables},
                timeout=LIMIT_S,
                check=False,
            )
            ending = f"ended with {done.returncode}" if done.returncode else ""
        except subprocess.TimeoutExpired:
            ending = f"did not end within {LIMIT_S:.0f} s"
        if ending:
            said.seek(0)
            tail = said.read().decode(errors="replace").splitlines()[-30:]
            raise BeowireError(f"A job {ending}:\n" + "\n".join(tail), shlex.join(words))


def _check_endpoints(job: Job, directory: Path) -> None:
    """Fails unless each rank had an endpoint of Beowire, or none over TCP."""
    expected = job.ranks if job.transport == "beowire" else 0
    found = len(path.read_endpoints(directory))
    if found != expected:
        raise BeowireError(
            f"A job of {job.ranks} ranks over {job.transport} had {found} endpoints of Beowire, "
            f"not {expected}.",
            code=4,
        )
