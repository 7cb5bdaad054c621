# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fixtures of the tools' tests: labs that are gone after the test."""

from collections.abc import Iterator

import beowire_cli
import pytest
from beowire.lab import lab, up
from hypothesis import HealthCheck, settings
from own_shm import own_shared_memory

# No test asserts how long something takes; hypothesis would, by default.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture
def lab_name() -> Iterator[str]:
    """The name of a lab that the test may make and that is removed afterwards."""
    name = beowire_cli.fresh_name()
    yield name
    beowire_cli.remove(name)


@pytest.fixture
def two_nodes(lab_name: str) -> lab.Lab:
    """A lab of two nodes whose frames all carry what TCP segments carry: offloads are off."""
    if beowire_cli.NO_NAMESPACES:
        pytest.skip(f"raw frames: {beowire_cli.NO_NAMESPACES}")
    return up.up(lab_name, 2, 9000, offloads=False)


@pytest.fixture(scope="module")
def own_shm() -> Iterator[None]:
    """A /dev/shm of the module's own: tests that run beside it leave their traces elsewhere."""
    with own_shared_memory():
        yield


@pytest.fixture(scope="module")
def job_lab() -> Iterator[lab.Lab]:
    """A lab of two nodes for MPI jobs, shared by the tests of a module."""
    name = beowire_cli.fresh_name()
    made = up.up(name, 2, 9000)
    yield made
    beowire_cli.remove(name)
