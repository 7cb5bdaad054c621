# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs of Slurm: whose they are, which processes are theirs, and which of them are ranks."""

import os
import shutil
import subprocess
import time
from typing import Any

import pytest
from beowire.status import cluster, job, processes, slurm


def process(rank: int, **changes: Any) -> dict[str, Any]:
    """What a node tells of a process of the job 4711."""
    told = {"state": "R", "frozen": False, "rank": rank, "size": None, "job": "j"}
    return {**told, "slurm": "4711", **changes}


def joined(
    told: dict[str, dict[str, Any]], endpoints: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    node = {"endpoints": endpoints or [], "processes": told, "kernel": None}
    return cluster.joined({"node1": node}, {})


def known_job(uid: int) -> slurm.Known:
    return slurm.Known(4711, uid, "node[1-2]")


def test_what_slurm_knows_is_its_word_alone() -> None:
    """No line of another job counts, nor one that is not as asked for."""
    told = "12 0 evil\n4711 1000 node[1-2]\n4711 1000 node7\n"
    assert slurm.read(4711, told) == known_job(1000)
    for text in ("", "4711 1000 ", "4711 x node1", "4711 1000 node1 node2", "47110 1000 node1"):
        assert slurm.read(4711, text) is None, text


def test_a_job_of_slurm_has_no_processes_of_other_users() -> None:
    """Whatever these have in their environment: job number and job's name."""
    users = {10: 1000, 11: 1000, 12: 666}
    state = joined({str(pid): process(pid - 10, uid=uid) for pid, uid in users.items()})
    found = job.members(state, 4711, "node1", known_job(1000))
    assert [each.pid for each in found] == [10, 11]
    assert len(job.members(state, 4711, "node1")) == 3


def test_who_starts_ranks_is_none() -> None:
    """A daemon of Open MPI that srun started has a rank of srun's; its children are ranks."""
    rank = {"identity": f"{1:016x}/1/00000001", "host": "node1", "pid": 21, "peers": []}
    told = {"20": process(0, job=None), "21": process(0, parent=20)}
    found = job.members(joined(told, [rank]), 4711, "nowhere")
    assert [each.pid for each in found] == [21]


def test_a_number_of_both_kinds_is_slurms_unless_a_launcher_has_it() -> None:
    own = os.getpid()
    assert job.names_process(own, None)
    assert not job.names_process(own, known_job(0))
    with subprocess.Popen(["srun", "infinity"], executable=shutil.which("sleep")) as launcher:
        try:
            until_named(launcher.pid, "srun")
            assert job.names_process(launcher.pid, known_job(0))
        finally:
            launcher.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="processes of another user")
@pytest.mark.parametrize("uid", [0, 65534])
def test_nodes_are_not_taken_from_another_users_environment(uid: int) -> None:
    """Who asks would go where that user likes."""
    number = str(2**31 + os.getpid())
    claims = {"SLURM_JOB_ID": number, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}
    claims["SLURM_JOB_NODELIST"] = "node[1-2]"
    with subprocess.Popen(["sleep", "infinity"], env={**os.environ, **claims}, user=uid) as rank:
        try:
            until_named(rank.pid, "sleep")
            assert job.hosts_of_slurm(number) == (None if uid else "node[1-2]")
        finally:
            rank.kill()


def until_named(pid: int, name: str) -> None:
    """Waits until a process has become the program of that name."""
    deadline = time.monotonic() + 60
    while processes.words(pid)[:1] != [name]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
