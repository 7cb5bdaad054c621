# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks that stop: for good, by SIGKILL, or for half a minute, by SIGSTOP."""

import tempfile

import pytest
from beowire.cluster import Cluster
from beowire.launch import Job, Mpi
from beowire.run import run
from mpi_programs import HANG_S, executable, run_program

MPIS: tuple[Mpi, ...] = ("openmpi", "mpich")


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_killed_rank_ends_the_job(ranks: int, mpi: Mpi, pair: Cluster) -> None:
    job = Job([str(executable("tests/mpi/killed", mpi))], ranks, "beowire", mpi=mpi)
    with tempfile.TemporaryFile() as output:
        record = run(job, pair, output=output, errors=output, announce=False, limit_s=HANG_S)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert not record.timed_out, text
    assert record.exit_status != 0, text
    assert f"rank {ranks - 1} goes now" in text
    # Whoever notices first, launcher or transport, says what happened.
    assert "signal 9" in text or "Killed" in text or "EXIT CODE: 9" in text or "told of" in text


@pytest.mark.parametrize(("mpi", "seconds"), [("openmpi", 30), ("mpich", 5)])
def test_stopped_rank_is_waited_for(mpi: Mpi, seconds: int, pair: Cluster) -> None:
    run_program("stopped", pair, 2, mpi, arguments=("--seconds", str(seconds)), payload_bytes=1)
