# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench apps` with the application that needs no package: whole runs over both transports,
their ledgers, a wrong answer, and a run over the wrong transport."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from beowire import places
from beowire.bench.apps import catalogue, measure, place, profile
from beowire.bench.apps.application import Outcome
from beowire.bench.apps.cells import Key
from beowire.bench.apps.measure import Plan, Results, Runs
from beowire.bench.apps.place import Shape
from beowire.bench.matrix.stacks import Cores
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster, of_hosts

PAIR = Shape(2, 2)
SMALL = replace(
    catalogue.APPLICATIONS["tridiagonal"], arguments=("--json", "--size", "40k", "--repeat", "3")
)


@pytest.fixture
def runs(pair: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Runs]:
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path))
    with place.bench(pair) as bench:
        yield Runs(bench, Plan((SMALL,), (PAIR,), 2), Cores(1, shared=True))


def swept(runs: Runs) -> Results:
    results = Results()
    measure.sweep(runs.plan, results, runs.run, lambda _: None, lambda: None)
    return results


def test_an_application_is_compared(runs: Runs) -> None:
    results = swept(runs)
    assert not results.failed
    told = results.cells[Key("tridiagonal", PAIR)]
    assert len(told.tcp) == len(told.beowire) == 2
    assert all(each > 0 for each in told.tcp + told.beowire)
    assert set(results.commands) == {"tridiagonal 2x2 tcp", "tridiagonal 2x2 beowire"}


def test_other_answers_are_noticed(runs: Runs) -> None:
    """The program answers by the transport that it runs over."""
    calls: list[str] = []

    def spoiled(text: str) -> Outcome:
        outcome = SMALL.read(text)
        calls.append(text)
        return Outcome(outcome.times, {"checksum": outcome.answers["checksum"] + len(calls)})

    runs.plan = replace(runs.plan, applications=(replace(SMALL, read=spoiled),))
    results = swept(runs)
    assert results.code == 4
    assert "different answers: checksum" in results.failed[0]["why"]
    assert len(calls) == 2


def test_where_the_time_goes(runs: Runs) -> None:
    found = profile.take(runs, SMALL, PAIR, lambda _: None).ledgers
    # The program's own calls, of two ranks: MPI is asked the same over both transports.
    calls = {
        transport: {name: row[0] for name, row in each.mpi.items()}
        for transport, each in found.items()
    }
    assert calls["tcp"] == calls["beowire"]
    assert calls["tcp"]["Allgather"] == 2 * 3
    assert found["tcp"].sizes == found["beowire"].sizes
    for each in found.values():
        assert each.ranks == 2
        assert 0 < each.mpi_s < each.seconds("wall_ns")
        assert 0 < each.seconds("ran_ns") < each.seconds("wall_ns") + 0.1
    assert found["tcp"].calls("writev", "sendmsg") > 0
    assert not found["tcp"].engine
    assert found["beowire"].engine["tx_messages"] > 0
    assert found["beowire"].engine["rounds"] > 0


def test_the_program_must_leave_what_it_was_asked_for(runs: Runs) -> None:
    runs.plan = replace(runs.plan, applications=(replace(SMALL, report="nothing"),))
    (failed,) = swept(runs).failed
    assert "A run wrote no nothing" in failed["why"]


def test_hosts_get_what_they_lack(pair: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes of a lab stand for real hosts, which share no files with this machine."""
    for name, value in pair.environment.items():
        monkeypatch.setenv(name, value)
    hosts = of_hosts(pair.hosts, pair.agent[0])
    files = {"input": "some text"}
    application = replace(SMALL, files=lambda _ranks: files, report="input")
    with place.bench(hosts) as bench:
        paths = bench.put(application, 2)
        assert paths.program == f"{paths.directory}/tridiagonal"
        there = Path(paths.program)
        assert there.read_bytes() == places.example("tridiagonal").read_bytes()
        assert os.access(there, os.X_OK)
        assert (Path(bench.provider_dir) / "libbeowire-fi.so").exists()
        assert bench.take(paths.directory, "input") == "some text"
        assert not (Path(paths.directory) / "input").exists()
    assert not Path(bench.directory).exists()


def test_the_directory_goes(pair: Cluster) -> None:
    with place.bench(pair) as bench:
        paths = bench.put(SMALL, 2)
        assert paths.directory.startswith(tempfile.gettempdir())
    with pytest.raises(BeowireError, match="not 3"):
        place.some_of(pair, 3)
