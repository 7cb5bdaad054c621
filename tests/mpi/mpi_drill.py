# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A job of two nodes that goes on and on, and what befalls its network meanwhile.

The job (onward.c) compares every byte of each round. A drill is a function that runs beside it: it
waits for rounds, breaks something, and waits for more; when it returns the job ends in good order.
"""

import os
import re
import shlex
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from beowire import namespaces
from beowire.lab import jobs, up
from beowire.lab.lab import Lab, Shape
from beowire.run.cluster import Cluster
from beowire.run.job import run
from beowire.run.launch import Job
from beowire.run.mpi import Mpi
from beowire.run.path import JobRecord
from mpi_lab import lab_behind
from mpi_programs import executable

LIMIT_S = 400.0
"""A job that takes longer hangs; nothing is measured by it."""
LOOK_S = 0.02

# Raw frames and UDP, also where the kernel module would take the place of both.
LINKS = {"BEOWIRE_LINKS": "local,packet,udp"}


class DrillError(Exception):
    """The job ended, or stood still, before the drill was through."""


class Onward:
    """The running job as a drill sees it."""

    def __init__(self, cluster: Cluster, output: IO[bytes], told: Path) -> None:
        self.lab: Lab = lab_behind(cluster)
        self._output = output
        self._told = told
        self.ended = threading.Event()
        self.struck_at_s = 0.0

    def text(self) -> str:
        """What it has said so far."""
        length = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), length, 0).decode(errors="replace")

    def rounds(self) -> int:
        """How many it has played, as it writes down itself: what its launcher passes on may be of
        rounds before a strike."""
        return int.from_bytes(self._told.read_bytes(), sys.byteorder) if self._told.exists() else 0

    def await_rounds(self, more: int) -> None:
        """Waits until it has played so many rounds more than now."""
        wanted = self.rounds() + more
        patience = time.monotonic() + LIMIT_S
        while self.rounds() < wanted:
            if self.ended.wait(LOOK_S) or time.monotonic() > patience:
                raise DrillError(f"at round {self.rounds()} of {wanted}: {self.text()}")

    def strike(self, shapes: dict[str, Shape]) -> None:
        """Gives the links of these nodes new shapes, and notes when."""
        self.struck_at_s = time.monotonic()
        up.reshape(self.lab.name, shapes)


Drill = Callable[[Onward], None]


@dataclass(frozen=True)
class Outcome:
    """How a job with a drill ended."""

    record: JobRecord
    text: str
    after_s: float
    """From the drill's last strike to the end."""
    told_s: Mapping[int, float]
    """How long after its last message each rank was told of an error, by its own clock."""

    def assert_went_on(self) -> None:
        """The job ended well: a peer that is given up ends it with an error. How long a round took
        says nothing more, on a machine where a rank may wait for a processor."""
        assert self.record.exit_status == 0, self.text
        assert "ok onward" in self.text.splitlines(), self.text
        assert re.search(r"^longest round: \d+ ms$", self.text, re.MULTILINE), self.text


@contextmanager
def _beside(job: Onward, drill: Drill, end: Path) -> Iterator[None]:
    """Runs the drill in a thread; its failure is the context's."""
    failure: list[BaseException] = []

    def work() -> None:
        try:
            drill(job)
        except BaseException as error:
            failure.append(error)
        finally:
            end.touch()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        job.ended.set()
        thread.join()
    if failure:
        raise failure[0]


def _text_of(file: Path) -> str:
    """Nothing if it is not there."""
    return file.read_text().strip() if file.exists() else ""


def run_drill(
    cluster: Cluster,
    drill: Drill,
    give_up_s: int,
    environment: Mapping[str, str] | None = None,
    mpi: Mpi = "openmpi",
    without_stderr: bool = False,
) -> Outcome:
    """Runs the job with a drill beside it; peers are given up after so many seconds.
    `without_stderr`: what the ranks write to stderr is lost."""
    program = [str(executable("tests/mpi/onward", mpi))]
    if without_stderr:
        program = ["sh", "-c", f"exec {shlex.quote(program[0])} 2>/dev/null"]
    with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as output:
        end = Path(directory) / "end"
        settings = {
            "BEOWIRE_DEAD_TIMEOUT": str(give_up_s),
            "ONWARD_END": str(end),
            **LINKS,
        }
        job = Job(
            program,
            2,
            "beowire",
            mpi=mpi,
            environment={**settings, **(environment or {})},
        )
        onward = Onward(cluster, output, end.with_name(f"{end.name}.round"))
        with _beside(onward, drill, end):
            record = run(
                job,
                cluster,
                output=output,
                errors=output,
                announce=False,
                limit_s=LIMIT_S,
            )
            ended_at_s = time.monotonic()
        told_s = {
            rank: int(text) / 1000
            for rank in range(job.ranks)
            if (text := _text_of(end.with_name(f"{end.name}.{rank}")))
        }
        outcome = Outcome(record, onward.text(), ended_at_s - onward.struck_at_s, told_s)
    assert not record.timed_out, outcome.text
    return outcome


def left_behind(cluster: Cluster) -> list[str]:
    """What a job has left on the nodes of a lab: processes, and files of the launcher's."""
    lab = lab_behind(cluster)
    networks = [lab.namespace_path(node) for node in lab.node_names()]
    left = [f"process {pid}" for pid in namespaces.processes(networks)]
    return left + [str(path) for path in lab.directory.glob(f"{jobs.PREFIX}*")]
