# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPI programs while the switch loses and damages frames: slower at most, never different."""

import json

import pytest
from beowire.run.mpi import Mpi
from mpi_lab import FaultySwitch
from mpi_programs import MEBI, run_example, run_program

MPIS: tuple[Mpi, ...] = ("openmpi", "mpich")
TRIES = 20

# Shorter than without faults, where the length adds nothing.
PROGRAMS: dict[str, tuple[str, ...]] = {
    "big": ("--max", str(8 * MEBI)),
    "collectives": (),
    "matching": (),
    "onesided": (),
    "probe": (),
    "storm": (),
    "truncation": (),
    "unexpected": ("--count", "20000"),
}


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_lost(name: str, mpi: Mpi, faulty: FaultySwitch) -> None:
    faulty.shape(loss=0.01)
    # A short program may happen to lose nothing, or acknowledgements alone: 1 % of some hundred
    # frames.
    for _ in range(TRIES):
        record, _ = run_program(
            name, faulty.cluster, 2, mpi, arguments=PROGRAMS[name], payload_bytes=1
        )
        lost, _ = faulty.counts()
        if lost and record.retransmits:
            break
    assert lost > 0
    assert record.retransmits > 0


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", ["big", "sizes", "storm"])
def test_frames_damaged(name: str, mpi: Mpi, faulty: FaultySwitch) -> None:
    """One bit flipped behind the Ethernet header: found by a checksum, sent again."""
    faulty.shape(corrupt=0.01)
    record, _ = run_program(
        name, faulty.cluster, 2, mpi, arguments=PROGRAMS.get(name), payload_bytes=1
    )
    _, damaged = faulty.counts()
    assert damaged > 0
    assert record.retransmits > 0
    assert sum(sum(endpoint.drops.values()) for endpoint in record.endpoints) > 0


@pytest.mark.long
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("share", [0.05, 0.2])
@pytest.mark.parametrize("name", ["sizes", "storm"])
def test_many_frames_lost(name: str, share: float, mpi: Mpi, faulty: FaultySwitch) -> None:
    faulty.shape(loss=share)
    run_program(name, faulty.cluster, 2, mpi, payload_bytes=1)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("pi", ("--precision", "1e-6", "--json")),
        ("tridiagonal", ("--size", "400000", "--repeat", "3", "--json")),
    ],
)
def test_results_are_the_same_to_the_last_bit(
    name: str, arguments: tuple[str, ...], faulty: FaultySwitch
) -> None:
    """Over TCP, over Beowire, with frames lost and with frames damaged; under both MPIs."""
    checksums = set()
    for mpi in MPIS:
        for transport in ("tcp", "beowire"):
            _, output = run_example(
                name, faulty.cluster, 2, mpi, arguments, transport=transport, payload_bytes=1
            )
            checksums.add(json.loads(output)["checksum"])
        faulty.shape(loss=0.01, corrupt=0.01)
        record, output = run_example(name, faulty.cluster, 2, mpi, arguments, payload_bytes=1)
        checksums.add(json.loads(output)["checksum"])
        assert record.retransmits > 0
        faulty.shape()
    assert len(checksums) == 1, checksums
