# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks that stop: for good, by SIGKILL or exit(), or for half a minute, by SIGSTOP."""

import pytest
from beowire.run.cluster import Cluster
from beowire.run.mpi import Mpi
from mpi_programs import run_ended, run_given_up, run_killed, run_program

MPIS: tuple[Mpi, ...] = ("openmpi", "mpich")


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_killed_rank_ends_the_job(ranks: int, mpi: Mpi, pair: Cluster) -> None:
    run_killed(pair, ranks, mpi)


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_that_gives_up_ends_the_job(mpi: Mpi, pair: Cluster) -> None:
    """Open MPI's launcher may end the others before they have noticed; MPICH's leaves that to
    them."""
    run_ended(pair, 2, mpi)


@pytest.mark.parametrize("mpi", MPIS)
def test_rank_that_gives_up_is_told_by_the_others(mpi: Mpi, pair: Cluster) -> None:
    run_given_up(pair, 2, mpi)


def test_an_end_is_told_though_the_launcher_loses_it(pair: Cluster) -> None:
    """MPICH's proxy may serve a rank's abort before its stderr, and the line is lost there."""
    assert len(run_given_up(pair, 2, "mpich", without_stderr=True)) == 1


def test_an_end_is_told_once_per_job(four: Cluster) -> None:
    """All three other nodes say it, in the same words, since MPICH's launcher lets them live;
    `beowire run` hands it on once."""
    told = run_given_up(four, 4, "mpich")
    assert len(told) == len(set(told)) > 0, told


@pytest.mark.parametrize(("mpi", "seconds"), [("openmpi", 30), ("mpich", 5)])
def test_stopped_rank_is_waited_for(mpi: Mpi, seconds: int, pair: Cluster) -> None:
    run_program("stopped", pair, 2, mpi, arguments=("--seconds", str(seconds)), payload_bytes=1)
