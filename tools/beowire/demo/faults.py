# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration's bad days: frames lost on the way, and a rank killed in the middle."""

import os
import signal
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from beowire import places, signals
from beowire.demo.programs import PROGRAMS
from beowire.errors import BeowireError
from beowire.lab import lab, up
from beowire.run import endings, launch, path
from beowire.run.cluster import Cluster
from beowire.run.job import run, run_captured
from beowire.run.launch import Job

LOSS = 0.01
RUN_LIMIT_S = 300.0
KILL_RANK = 2
KILL_AFTER_S = 1.5
KILL_LIMIT_S = 300.0


@dataclass(frozen=True)
class Lossy:
    """Runs with frames lost at the switch."""

    loss: float
    programs: list[str]
    frames: int
    frames_lost: int
    retransmits: int
    answers_agree: bool


@dataclass(frozen=True)
class Killed:
    """A run one of whose ranks was killed."""

    rank: int
    exit_status: int
    reported_after_s: float
    """From the kill to the end of the job."""
    report: str
    """What the launcher or Beowire said of it."""


def lose_frames(made: lab.Lab, cluster: Cluster, answers: dict[str, str]) -> Lossy:
    """Runs the programs that compute something again over Beowire while the switch loses frames;
    the answers must be those of the loss-free runs."""
    lossy = {node: replace(made.shape(node), loss=LOSS) for node in made.node_names()}
    clear = {node: made.shape(node) for node in made.node_names()}
    up.reshape(made.name, lossy)
    programs = [program for program in PROGRAMS if program.is_example and answers[program.name]]
    retransmits = 0
    try:
        for program in programs:
            executable = str(places.example(program.executable))
            job = Job([executable, *program.arguments], program.ranks, "beowire", bind="core")
            record, output = run_captured(job, cluster, RUN_LIMIT_S)
            path.prove(record)
            answer = program.read(output).answer
            if answer != answers[program.name]:
                raise BeowireError(
                    f"With frames lost {program.name} computes {answer} instead of "
                    f"{answers[program.name]}."
                )
            retransmits += record.retransmits
        counts = up.port_counts(lab.load_ready(made.name)).values()
    finally:
        up.reshape(made.name, clear)
    lost = sum(count.lost for count in counts)
    if lost == 0 or retransmits == 0:
        raise BeowireError(f"{lost} frames were lost and {retransmits} sent again: nothing shown.")
    return Lossy(
        loss=LOSS,
        programs=[program.name for program in programs],
        frames=sum(count.frames for count in counts),
        frames_lost=lost,
        retransmits=retransmits,
        answers_agree=True,
    )


def kill_a_rank(cluster: Cluster) -> Killed:
    """Starts a long pi over Beowire, kills one rank with SIGKILL, and waits for the job to end."""
    executable = str(places.example("pi"))
    job = Job([executable, "--precision", "1e-11"], 4, "beowire")
    assassin = _Assassin(cluster, executable)
    with tempfile.TemporaryFile() as output:
        assassin.start()
        try:
            record = run(
                job, cluster, output=output, errors=output, announce=False, limit_s=KILL_LIMIT_S
            )
        finally:
            assassin.stop()
        ended_ns = time.monotonic_ns()
        output.seek(0)
        text = output.read().decode(errors="replace")
    if assassin.killed_ns == 0:
        raise BeowireError(f"No rank was found to kill. The job said:\n{text[-2000:]}")
    report = endings.report_of_death(text, KILL_RANK, _names(job, cluster))
    if record.timed_out or record.exit_status == 0 or not report:
        raise BeowireError(f"The killed rank was not reported. The job said:\n{text[-2000:]}")
    return Killed(
        rank=KILL_RANK,
        exit_status=record.exit_status,
        reported_after_s=(ended_ns - assassin.killed_ns) / 1e9,
        report=report,
    )


def _names(job: Job, cluster: Cluster) -> list[str]:
    """What the host of the killed rank is called."""
    hosts = [host for host, ranks in launch.place(job, cluster).items() for _ in range(ranks)]
    own = [socket.gethostname()] if cluster.shares_host_name else []
    return [hosts[KILL_RANK], *own]


class _Assassin:
    """Finds the process of one rank and kills it once the program is under way."""

    def __init__(self, cluster: Cluster, executable: str) -> None:
        self.killed_ns = 0
        self._cluster = cluster
        self._executable = executable
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._hunt)

    def start(self) -> None:
        with signals.uninterrupted():
            self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def _victim(self) -> int | None:
        wanted = f"OMPI_COMM_WORLD_RANK={KILL_RANK}".encode()
        for pid in self._cluster.lab.processes() if self._cluster.lab else []:
            try:
                executable = Path(f"/proc/{pid}/exe").readlink()
                environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if executable == Path(self._executable).resolve() and wanted in environment:
                return pid
        return None

    def _hunt(self) -> None:
        victim = None
        while victim is None and not self._ending.wait(0.1):
            victim = self._victim()
        if victim is not None and not self._ending.wait(KILL_AFTER_S):
            self.killed_ns = time.monotonic_ns()
            os.kill(victim, signal.SIGKILL)
