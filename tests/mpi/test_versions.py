# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Open MPI 5 and MPICH 5, which bring newer releases of libfabric: the same programs, unchanged.

A few of the programs stand for all; the rest run in the long tests.
"""

import json
import math
import re

import pytest
from beowire.run import mpi
from beowire.run.cluster import Cluster
from mpi_lab import FaultySwitch
from mpi_programs import PAYLOAD_BYTES, PROGRAMS, run_example, run_killed, run_program

SHORT = ("big", "matching", "onesided")
LOSSY = ("collectives", "matching", "onesided", "storm", "truncation")


@pytest.fixture(params=[("openmpi", 5), ("mpich", 5)], ids=["openmpi5", "mpich5"])
def modern(request: pytest.FixtureRequest, pair: Cluster) -> mpi.Mpi:
    """Where an MPI of this family and major version is installed."""
    family, major = request.param
    if family == "openmpi" and pair.shares_host_name:
        pytest.skip("Open MPI 5 starts nothing on loopback addresses; namespaces are refused here")
    directory = mpi.wheel_dir(f"{family}{major}")
    if not (directory / "bin" / "mpirun").exists():
        pytest.skip(f"{family} {major} is not installed in {directory}")
    found = mpi.find(str(directory))
    assert (found.family, found.version[0]) == (family, major)
    return str(directory)


@pytest.mark.parametrize(
    "name",
    [
        *SHORT,
        *(pytest.param(each, marks=pytest.mark.long) for each in PROGRAMS if each not in SHORT),
    ],
)
def test_between_nodes(name: str, modern: mpi.Mpi, pair: Cluster) -> None:
    run_program(name, pair, 2, modern, payload_bytes=PAYLOAD_BYTES.get(name, 1))


@pytest.mark.parametrize("transport", ["tcp", "beowire"])
def test_pi(transport: str, modern: mpi.Mpi, pair: Cluster) -> None:
    arguments = ("--precision", "1e-6", "--json")
    _, output = run_example("pi", pair, 4, modern, arguments, transport=transport)
    report = json.loads(output)
    assert abs(report["pi"] - math.pi) <= 1e-6
    said = re.sub(r"\s+(Version:\s+|v)", " ", report["library"])
    assert said.startswith(f"{mpi.find(modern).name}.")


def test_killed_rank_ends_the_job(modern: mpi.Mpi, pair: Cluster) -> None:
    run_killed(pair, 4, modern)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "loss", "corrupt"),
    [
        *((name, 0.01, 0.0) for name in LOSSY),
        *((name, 0.0, 0.01) for name in ("sizes", "storm")),
    ],
)
def test_frames_lost_or_damaged(
    name: str, loss: float, corrupt: float, modern: mpi.Mpi, faulty: FaultySwitch
) -> None:
    faulty.shape(loss=loss, corrupt=corrupt)
    record, _ = run_program(name, faulty.cluster, 2, modern, payload_bytes=1)
    lost, damaged = faulty.counts()
    assert (lost > 0, damaged > 0) == (loss > 0, corrupt > 0)
    assert record.retransmits > 0


@pytest.mark.long
@pytest.mark.parametrize("name", ["collectives", "communicators", "crowd"])
def test_sixteen_ranks_on_four_nodes(name: str, modern: mpi.Mpi, four: Cluster) -> None:
    run_program(name, four, 16, modern, payload_bytes=1)
