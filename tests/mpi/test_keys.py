# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPI programs whose cluster has a key: all is as without, by both links between nodes."""

import re
from pathlib import Path

import pytest
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire.run.mpi import Mpi, find
from mpi_lab import lab_behind
from mpi_programs import RANK, TOLD_S, executable, key_file, run_program, run_to_its_end


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


@pytest.mark.parametrize("links", ["packet,local", "udp"])
@pytest.mark.parametrize(
    ("mpi", "apart", "kind", "said"),
    [
        ("openmpi", "BEOWIRE_KEY={other}", "other keys", "do not have the same cluster key, so"),
        ("mpich", "BEOWIRE_KEY={other}", "other keys", "do not have the same cluster key, so"),
        ("openmpi", "BEOWIRE_ENCRYPT=1", "one of two encrypts", "encrypts, and"),
    ],
)
def test_a_node_apart_is_told_of_once(
    mpi: Mpi, apart: str, kind: str, said: str, links: str, key: str, tmp_path: Path, four: Cluster
) -> None:
    """One of four nodes differs from the rest: each of these notices, and one line names two nodes
    of which it is one; the others follow at the end of the job, which does not wait for long."""
    other = key_file(tmp_path / "other", "decade")
    choose = f'[ "${RANK[find(mpi).family]}" -lt 3 ] || export {apart.format(other=other)}'
    job = Job(
        ["sh", "-c", f'{choose}; exec "$0"', str(executable("tests/mpi/collectives", mpi))],
        4,
        "beowire",
        mpi=mpi,
        environment={"BEOWIRE_KEY": key, "BEOWIRE_LINKS": links},
    )
    record, text = run_to_its_end(job, four, TOLD_S)
    assert record.exit_status != 0, text
    first = [line for line in text.splitlines() if said in line]
    rest = [line for line in text.splitlines() if f"beowire: the same ({kind}) of " in line]
    assert len(first) == 1, text
    assert len(rest) <= 1, text
    *others, differs = lab_behind(four).node_names()
    assert differs in first[0]
    assert any(name in first[0] for name in others)


@pytest.mark.parametrize(("mpi", "links"), [("openmpi", "packet,local"), ("mpich", "udp")])
def test_a_clock_that_jumps_is_told_of_once(mpi: Mpi, links: str, four: Cluster) -> None:
    """All nodes stand still together, which each notices, and go on: nobody is given up. The
    line names the node, and one that it waited for."""
    job = Job(
        [str(executable("tests/mpi/stopped", mpi)), "--together", "1", "--seconds", "8"],
        4,
        "beowire",
        mpi=mpi,
        environment={"BEOWIRE_DEAD_TIMEOUT": "6", "BEOWIRE_LINKS": links},
    )
    record, text = run_to_its_end(job, four)
    assert record.exit_status == 0, text
    said = [line for line in text.splitlines() if "stood still, or the clock jumped, by" in line]
    rest = [line for line in text.splitlines() if line.startswith("beowire: the same (stood still")]
    assert len(said) == 1, text
    assert len(rest) == 1, text
    names = re.match(r"beowire: (\S+): .* while it waited for (\S+); ", said[0])
    assert names is not None, text
    assert names[1] != names[2]
    assert set(names.groups()) <= set(lab_behind(four).node_names()), text
