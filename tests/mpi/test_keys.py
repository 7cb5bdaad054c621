# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPI programs whose cluster has a key: all is as without, by both links between nodes."""

import pytest
from beowire.run.cluster import Cluster
from beowire.run.mpi import Mpi
from mpi_programs import run_program


@pytest.mark.parametrize("links", ["packet,local", "udp"])
@pytest.mark.parametrize(("mpi", "name"), [("openmpi", "storm"), ("mpich", "collectives")])
def test_with_a_key(name: str, mpi: Mpi, links: str, key: str, pair: Cluster) -> None:
    environment = {"BEOWIRE_KEY": key, "BEOWIRE_LINKS": links}
    record, _ = run_program(name, pair, 2, mpi, environment=environment, payload_bytes=1)
    assert all(endpoint.keyed for endpoint in record.endpoints)
    assert sum(endpoint.drops.get("header", 0) for endpoint in record.endpoints) == 0


@pytest.mark.parametrize("links", ["packet,local", "udp"])
@pytest.mark.parametrize(("mpi", "name"), [("openmpi", "storm"), ("mpich", "collectives")])
def test_with_encryption(name: str, mpi: Mpi, links: str, key: str, pair: Cluster) -> None:
    """Messages of all lengths, and what is fetched and written by others."""
    environment = {"BEOWIRE_KEY": key, "BEOWIRE_ENCRYPT": "1", "BEOWIRE_LINKS": links}
    record, _ = run_program(name, pair, 2, mpi, environment=environment, payload_bytes=1)
    assert all(endpoint.keyed and endpoint.encrypted for endpoint in record.endpoints)
    assert sum(endpoint.drops.get("seal", 0) for endpoint in record.endpoints) == 0
