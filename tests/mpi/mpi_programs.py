# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the MPI programs of this directory and the examples, and believes nothing unproved.

A run counts only if the program says `ok`, ends with 0, and the counters of Beowire's endpoints
and of the kernel agree that the payload went the way that was asked for.
"""

import re
import shlex
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from beowire import places
from beowire.run import endings, launch, path
from beowire.run.cluster import Cluster
from beowire.run.job import run, run_captured
from beowire.run.launch import Job, Transport
from beowire.run.mpi import Mpi, find
from beowire.run.path import JobRecord
from mpi_lab import MODULE, NODES_WITHOUT

HANG_S = 240.0
"""A run that takes longer hangs; nothing is measured by it."""

TOLD_S = 30.0
"""A job that cannot begin ends within this: what it is told takes 3 s (BW_KEY_PATIENCE)."""

MEBI = 1 << 20

RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}
"""In which variable a launcher tells a process its rank."""

PROGRAMS = (
    "big",
    "cancel",
    "collectives",
    "communicators",
    "crowd",
    "datatypes",
    "matching",
    "modes",
    "onesided",
    "overlap",
    "probe",
    "self",
    "sizes",
    "storm",
    "threads",
    "truncation",
    "unexpected",
)

ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    # Where messages move only inside MPI calls, this fails instead of only saying so.
    "overlap": ("--require", "1"),
}

PAYLOAD_BYTES: Mapping[str, int] = {
    # What the programs of two ranks send at least between them.
    "big": 2 * sum(3 * (MEBI << step) - 4096 for step in range(7)),
    "overlap": 32 * MEBI,
    "self": 0,
    "sizes": 2 * sum(range(10001)),
    "unexpected": 100_000 * 8 + 5001 * 3000 + 101 * 300_000,
}


def key_file(path: Path, begins: str) -> str:
    """A file with a cluster's key, which begins with these digits."""
    path.touch(0o600)
    path.write_text(f"{begins:5<64}\n")
    return str(path)


def executable(relative: str, mpi: Mpi) -> Path:
    """A program built for this MPI, by its path in the build directory."""
    return places.product(relative + (".mpich" if find(mpi).family == "mpich" else ""))


def run_program(
    name: str,
    cluster: Cluster,
    ranks: int,
    mpi: Mpi,
    *,
    transport: Transport = "beowire",
    arguments: tuple[str, ...] | None = None,
    environment: Mapping[str, str] | None = None,
    per_node: int = 0,
    payload_bytes: int = 0,
) -> tuple[JobRecord, str]:
    """Runs a test program to its `ok`, proves the path and returns its output."""
    program = executable(f"tests/mpi/{name}", mpi)
    job = Job(
        [str(program), *(ARGUMENTS.get(name, ()) if arguments is None else arguments)],
        ranks,
        transport,
        mpi=mpi,
        per_node=per_node,
        environment=dict(environment or {}),
    )
    record, output = run_captured(job, cluster, HANG_S)
    assert f"ok {program.name}" in output.splitlines(), output
    path.prove(record, payload_bytes)
    if MODULE.exists() and transport == "beowire":
        links = ("kernel", "packet") if NODES_WITHOUT else ("kernel",)
        assert all(record.sum("tx_frames", link) for link in links)
        assert record.payload_bytes == record.sum("rx_payload", *links)
        assert record.sum("tx_payload", "udp") == 0
    return record, output


def run_example(
    name: str,
    cluster: Cluster,
    ranks: int,
    mpi: Mpi,
    arguments: tuple[str, ...],
    *,
    transport: Transport = "beowire",
    environment: Mapping[str, str] | None = None,
    payload_bytes: int = 0,
) -> tuple[JobRecord, str]:
    """Runs an example program, proves the path and returns its output."""
    program = executable(f"examples/{name}", mpi)
    job = Job(
        [str(program), *arguments], ranks, transport, mpi=mpi, environment=dict(environment or {})
    )
    record, output = run_captured(job, cluster, HANG_S)
    path.prove(record, payload_bytes)
    return record, output


def _run_badly(job: Job, cluster: Cluster) -> tuple[JobRecord, str]:
    """Runs a job that ends, but not well. Its record, and all that was said."""
    record, text = run_to_its_end(job, cluster)
    assert record.exit_status != 0, text
    return record, text


def run_to_its_end(job: Job, cluster: Cluster, limit_s: float = HANG_S) -> tuple[JobRecord, str]:
    """Runs a job that ends, well or not. Its record, and all that was said."""
    with tempfile.TemporaryFile() as output:
        record = run(job, cluster, output=output, errors=output, announce=False, limit_s=limit_s)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert not record.timed_out, text
    return record, text


def _last_hosts(job: Job, cluster: Cluster) -> list[str]:
    """The names that the last rank's host may go by."""
    hosts = [list(launch.place(job, cluster))[-1]]
    if cluster.shares_host_name:
        hosts.append(socket.gethostname())
    return hosts


def run_killed(cluster: Cluster, ranks: int, mpi: Mpi) -> str:
    """Runs the program whose last rank kills itself: the job ends, not well, and whoever noticed
    first, launcher or Beowire, has said which rank or whose peer it was. All that was said. (What
    the rank itself said last is lost by MPICH's launcher at times.)"""
    job = Job([str(executable("tests/mpi/killed", mpi))], ranks, "beowire", mpi=mpi)
    _, text = _run_badly(job, cluster)
    assert endings.report_of_death(text, ranks - 1, _last_hosts(job, cluster)), text
    return text


LEAVE_IT_TO_THE_RANKS = {"OMPI_MCA_orte_enable_recovery": "1"}
"""By which Open MPI's launcher ends nobody because another rank has failed: it may be faster than
the ranks. It then has no error of its own to end with."""


def run_given_up(
    cluster: Cluster, ranks: int, mpi: Mpi, *, without_stderr: bool = False
) -> list[str]:
    """Runs the program whose last rank ends by exit() with an error, while the others wait for a
    message of anybody: Beowire tells them that this rank is gone, and their receive ends. The
    lines by which it told. `without_stderr`: what the ranks write to stderr is lost."""
    program = [str(executable("tests/mpi/failed", mpi))]
    if without_stderr:
        program = ["sh", "-c", f"exec {shlex.quote(program[0])} 2>/dev/null"]
    job = Job(program, ranks, "beowire", mpi=mpi)
    if find(mpi).family == "openmpi":
        with pytest.MonkeyPatch.context() as patch:
            for name, value in LEAVE_IT_TO_THE_RANKS.items():
                patch.setenv(name, value)
            text = run_to_its_end(job, cluster)[1]
    else:
        text = _run_badly(job, cluster)[1]
    host = "|".join(re.escape(each) for each in _last_hosts(job, cluster))
    gone = re.compile(rf"beowire: (?:{host}) \(node [0-9a-f]+\) engine \d+ is gone \(.+\): .*")
    told = [line for line in text.splitlines() if gone.fullmatch(line)]
    assert told, text
    assert "ok failed" not in text, text
    return told


def run_ended(cluster: Cluster, ranks: int, mpi: Mpi) -> str:
    """The same program, whose end is left to the launcher, or to the ranks, as either comes first:
    the job ends, not well. All that was said."""
    job = Job([str(executable("tests/mpi/failed", mpi))], ranks, "beowire", mpi=mpi)
    return _run_badly(job, cluster)[1]
