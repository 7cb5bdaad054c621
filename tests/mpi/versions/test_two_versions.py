# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs whose nodes have different releases of Beowire: the second node's provider speaks the wire's
next version, and this one as well or not (meson.build)."""

import re
import tempfile
from pathlib import Path

import pytest
from beowire import places
from beowire.run import path
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire.run.mpi import Mpi, find
from beowire.run.path import JobRecord
from mpi_lab import lab_behind
from mpi_programs import HANG_S, RANK, TOLD_S, executable, run_to_its_end

RANKS = 4
REMARK = re.compile(
    r"beowire: error: (\S+) speaks versions (\d) to (\d) of the wire protocol and (\S+) versions"
    r" (\d) to (\d), so they do not talk to each other; fix: install the same Beowire on both"
)


def run_mixed(
    cluster: Cluster, mpi: Mpi, other: str, links: str, limit_s: float
) -> tuple[JobRecord, str]:
    """A job of four ranks, of which the second half has this other provider; and all that was
    said."""
    family = find(mpi).family
    library = places.product(f"tests/mpi/versions/libbeowire-fi-{other}.so")
    with tempfile.TemporaryDirectory() as directory:
        provider = f"{directory}/libbeowire-fi.so"
        Path(provider).symlink_to(library)
        choose = f'[ "${RANK[family]}" -lt {RANKS // 2} ] || export FI_PROVIDER_PATH={directory}'
        program = str(executable("tests/mpi/matching", mpi))
        job = Job(
            ["sh", "-c", f'{choose}; exec "$0"', program],
            RANKS,
            "beowire",
            mpi=mpi,
            environment={"BEOWIRE_LINKS": links},
        )
        return run_to_its_end(job, cluster, limit_s)


@pytest.mark.parametrize("links", ["packet,local", "udp"])
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_versions_in_common_are_spoken(links: str, mpi: Mpi, pair: Cluster) -> None:
    """As if all were of one release: a later one speaks what the earlier one does."""
    record, text = run_mixed(pair, mpi, "both", links, HANG_S)
    assert record.exit_status == 0, text
    assert REMARK.search(text) is None
    path.prove(record, 1)


@pytest.mark.parametrize("links", ["packet,local", "udp"])
@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_no_version_in_common_is_told_once(links: str, mpi: Mpi, pair: Cluster) -> None:
    """Both nodes are named with what they speak, on one line for the whole job, which ends."""
    record, text = run_mixed(pair, mpi, "next", links, TOLD_S)
    assert record.exit_status != 0, text
    remarks = [found.groups() for found in map(REMARK.fullmatch, text.splitlines()) if found]
    assert len(remarks) == 1, text
    names = lab_behind(pair).node_names()
    spoken = {remarks[0][0]: remarks[0][1:3], remarks[0][3]: remarks[0][4:6]}
    assert spoken == {names[0]: ("2", "2"), names[1]: ("3", "3")}
