# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration's killed rank: shown by the line that tells of it, or not at all."""

import shutil
from typing import Any

import pytest
from beowire.demo import faults
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire.run import cluster, launch
from beowire.run.launch import Job
from beowire.run.path import JobRecord

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


def test_the_report_tells_of_the_death(job_lab: lab.Lab) -> None:
    killed = faults.kill_a_rank(cluster.of_lab(job_lab.name))
    assert "signal 9" in killed.report or "is gone" in killed.report
    assert killed.exit_status != 0


class Found:
    """An assassin that has killed its rank."""

    killed_ns = 1

    def __init__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass


class NotFound(Found):
    """One that found none."""

    killed_ns = 0


TOLD = "mpirun noticed that process rank 2 with PID 9 on node node3 exited on signal 9 (Killed)."


def shown(
    monkeypatch: pytest.MonkeyPatch,
    said: str,
    status: int = 137,
    *,
    timed_out: bool = False,
    assassin: type[Found] = Found,
) -> faults.Killed:
    """What is shown of a job that says this and ends so."""

    def job_of(job: Job, where: cluster.Cluster, **rest: Any) -> JobRecord:
        assert where.hosts == list(launch.place(job, where))
        rest["output"].write(f"before\n{said}\n".encode())
        return JobRecord(job, "mpirun", status, timed_out, 0, 1)

    monkeypatch.setattr(faults, "run", job_of)
    monkeypatch.setattr(faults, "_Assassin", assassin)
    return faults.kill_a_rank(cluster.Cluster([f"node{n}" for n in range(1, 5)], ["ssh"]))


def test_with_a_report_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    killed = shown(monkeypatch, TOLD)
    assert (killed.rank, killed.exit_status, killed.report) == (2, 137, TOLD)


@pytest.mark.parametrize(
    ("said", "status", "timed_out"),
    [
        ("all is well", 137, False),  # the launcher says nothing of it
        (TOLD.replace("rank 2", "rank 1"), 137, False),
        (TOLD, 0, False),
        (TOLD, 137, True),
    ],
)
def test_without_a_report_nothing_is_shown(
    said: str, status: int, timed_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BeowireError, match="was not reported") as refused:
        shown(monkeypatch, said, status, timed_out=timed_out)
    assert f"before\n{said}" in refused.value.what


def test_without_a_death_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BeowireError, match="No rank was found to kill"):
        shown(monkeypatch, TOLD, assassin=NotFound)
