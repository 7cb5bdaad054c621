# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The labs in which the MPI programs run, made once for all tests of this directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire.run.cluster import Cluster
from mpi_lab import FaultySwitch, lab_behind, lab_of
from mpi_programs import key_file


@pytest.fixture(scope="session")
def pair() -> Iterator[Cluster]:
    """Two nodes."""
    with lab_of(2) as made:
        yield made


@pytest.fixture(scope="session")
def four() -> Iterator[Cluster]:
    """Four nodes."""
    with lab_of(4) as made:
        yield made


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Three nodes, of which the last is a hostile program's."""
    with lab_of(3) as made:
        yield made


@pytest.fixture
def key(tmp_path: Path) -> str:
    """A file with a cluster's key."""
    return key_file(tmp_path / "key", "c0ffee")


@pytest.fixture
def faulty(pair: Cluster) -> Iterator[FaultySwitch]:
    """Two nodes and a switch that loses and damages frames as the test says."""
    if lab_behind(pair).mode == "loopback":
        pytest.skip(f"no switch that could lose frames: {lab_behind(pair).reason}")
    switch = FaultySwitch(pair)
    yield switch
    switch.shape()
