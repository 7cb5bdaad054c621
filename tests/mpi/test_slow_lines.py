# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPI programs over lines so slow that long messages are copied, and fetched before they are
received: the same semantics, more at once."""

from collections.abc import Iterator

import pytest
from beowire.lab import up
from beowire.lab.lab import MTU_DEFAULT_BYTES, Shape
from beowire.run.cluster import Cluster
from beowire.run.mpi import Mpi
from beowire.run.path import JobRecord
from mpi_lab import lab_behind, lab_of
from mpi_programs import MEBI, run_example, run_program

MPIS: tuple[Mpi, ...] = ("openmpi", "mpich")
RATE_BITS = 300_000_000
MESSAGES = 736
"""Long ones of one run of exchange()."""

# Shorter than over fast lines, where the length adds nothing.
PROGRAMS: dict[str, tuple[str, ...] | None] = {
    "big": ("--max", str(2 * MEBI)),
    "cancel": None,
    "matching": None,
    "modes": None,
    "onesided": ("--max", "8192"),
    "probe": None,
    "storm": None,
    "truncation": None,
    "unexpected": ("--count", "20000"),
}


@pytest.fixture(scope="module")
def slow() -> Iterator[Cluster]:
    """Three nodes."""
    with lab_of(3) as made:
        lab = lab_behind(made)
        if lab.mode == "loopback":
            pytest.skip(f"no lines whose rate could be limited: {lab.reason}")
        up.reshape(lab.name, dict.fromkeys(lab.node_names(), Shape(rate_bits=RATE_BITS)))
        yield made


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_semantics(name: str, mpi: Mpi, slow: Cluster) -> None:
    run_program(name, slow, 2, mpi, arguments=PROGRAMS[name], payload_bytes=1)


def exchange(pattern: str, mpi: Mpi, slow: Cluster, environment: dict[str, str]) -> JobRecord:
    """One rank and two others, messages of 100 kB by blocking calls."""
    words = ["--pattern", pattern, "--calls", "blocking", "--types", "byte", "--verify"]
    words += ["--sizes", "100k", "--iters", "20"]
    record, _ = run_example(
        "exchange", slow, 3, mpi, tuple(words), environment=environment, payload_bytes=MEBI
    )
    return record


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("pattern", ["scatter", "gather"])
def test_blocking_calls_serve_several_at_once(pattern: str, mpi: Mpi, slow: Cluster) -> None:
    record = exchange(pattern, mpi, slow, {"BEOWIRE_UNEXPECTED_MAX": str(4 * MEBI)})
    copies = sum(each.tx_copies for each in record.endpoints)
    early = sum(each.rx_early for each in record.endpoints)
    # MPICH asks for the end of every send to be told when its receiver has it.
    assert copies > MESSAGES / 2 if mpi == "openmpi" else copies == 0
    # Ten times as many as there is memory for (half of the limit): all of it is given back.
    assert early > 200 or pattern == "scatter"


def test_what_was_fetched_early_is_not_fetched_again(slow: Cluster) -> None:
    none = exchange("gather", "openmpi", slow, {"BEOWIRE_UNEXPECTED_MAX": "0"})
    some = exchange("gather", "openmpi", slow, {})
    assert sum(each.rx_early for each in none.endpoints) == 0
    assert sum(each.rx_early for each in some.endpoints) > 20
    # Fetched again, most would count twice; what was taken for lost may have come twice as well.
    again = some.retransmits * MTU_DEFAULT_BYTES
    assert some.payload_bytes - again < 1.2 * none.payload_bytes
