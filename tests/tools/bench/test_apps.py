# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench apps`: what reports say, answers that agree or not, the order of rounds, verdicts,
the file, ledgers, tables and drawing. Nothing is started."""

import json
from pathlib import Path
from typing import Any

import apps_reports as reports
import pytest
from beowire.bench.apps import (
    answers,
    catalogue,
    cli,
    hpcc,
    lammps,
    ledger,
    measure,
    place,
    plot,
    tables,
)
from beowire.bench.apps.application import Application, Outcome
from beowire.bench.apps.cells import Cell, Key
from beowire.bench.apps.measure import Plan, Results, Run
from beowire.bench.apps.place import Shape
from beowire.bench.apps.profile import Profile
from beowire.bench.apps.store import Store
from beowire.bench.matrix.stacks import Cores
from beowire.errors import BeowireError
from beowire.lab.counters import NodeCounters
from beowire.run.launch import Job, Transport
from beowire.run.path import Endpoint, JobRecord
from rich.console import Console

APPLICATIONS = catalogue.APPLICATIONS


@pytest.mark.parametrize(
    ("name", "report", "times", "computed"),
    [
        (
            "lammps-lj",
            reports.LAMMPS,
            {"lammps-lj": 1.93158},
            {"energy at the start": -6.77336805324, "energy at the end": -4.62263273229},
        ),
        (
            "lammps-pppm",
            reports.LAMMPS_2024,
            {"lammps-pppm": 1.93158},
            {"energy at the start": -6.77336805324, "energy at the end": -4.62263273229},
        ),
        (
            "gromacs",
            reports.GROMACS,
            {"gromacs": 3.179},
            {"potential energy at the start": -38626.7, "mean potential energy": -66026.8},
        ),
        (
            "hpcc",
            reports.HPCC,
            {"hpcc-hpl": 0.243088, "hpcc-fft": 0.125, "hpcc-ptrans": 0.25, "hpcc-ring": 0.235877},
            {
                "norm of HPL's solution": 7.60961,
                "errors of RandomAccess": 0,
                "residual of PTRANS": 0,
                "elements of the transform": 131072,
            },
        ),
        (
            "petsc-cg",
            reports.PETSC,
            {"petsc-cg": 0.050888779},
            {"norm": 11015.992582939114, "iterations": 73},
        ),
        ("hdf5", reports.HDF5, {"hdf5": 0.065349178}, {"hash": 28958309833065}),
        (
            "tridiagonal",
            reports.TRIDIAGONAL,
            {"tridiagonal": 1.5},
            {"checksum": float(0xD2C3B4A59687)},
        ),
    ],
)
def test_a_report_is_read(
    name: str, report: str, times: dict[str, float], computed: dict[str, float]
) -> None:
    outcome = APPLICATIONS[name].read(report)
    assert outcome.times == times
    assert outcome.answers == computed
    answers.check_whole(APPLICATIONS[name], outcome)


@pytest.mark.parametrize(
    ("name", "report", "why"),
    [
        ("lammps-lj", reports.LAMMPS.replace("Loop time", "Time"), "loop time"),
        ("lammps-lj", reports.LAMMPS.replace("     300 ", "Error "), "no energies"),
        ("gromacs", reports.GROMACS.partition("A V E R")[0], "no energies"),
        ("gromacs", reports.GROMACS.replace("       Time:", "Zeit:"), "wall time"),
        ("hpcc", reports.HPCC.replace("Success=1", "Success=0"), "failed test"),
        ("hpcc", reports.HPCC.replace("PASSED    4.000", "FAILED    4.000"), "did not pass"),
        ("hpcc", reports.HPCC.replace("...... PASSED", "...... FAILED"), "did not pass"),
        ("petsc-cg", "", "cannot be read"),
        ("petsc-cg", 2 * reports.PETSC, "cannot be read"),
    ],
)
def test_a_report_that_is_not_whole_is_an_error(name: str, report: str, why: str) -> None:
    with pytest.raises(BeowireError, match=why):
        APPLICATIONS[name].read(report)


@pytest.mark.parametrize(
    ("outcome", "why"),
    [
        (Outcome({"hdf5": 0.0}, {"hash": 1}), "took 0 "),
        (Outcome({"hdf5": 1.0}, {"hash": float("nan")}), "computed nan"),
        (Outcome({"hdf5": 1.0}, {}), "not \\['hash', 'hdf5'\\]"),
        (Outcome({}, {"hash": 1}), "not \\['hash', 'hdf5'\\]"),
    ],
)
def test_an_outcome_is_whole(outcome: Outcome, why: str) -> None:
    with pytest.raises(BeowireError, match=why):
        answers.check_whole(APPLICATIONS["hdf5"], outcome)


def pppm(end: float) -> Outcome:
    return Outcome({"lammps-pppm": 1.0}, {"energy at the start": -2.0, "energy at the end": end})


@pytest.mark.parametrize(("over_beowire", "agree"), [(-100.0005, True), (-100.002, False)])
def test_answers_may_be_as_far_apart_as_is_said(over_beowire: float, agree: bool) -> None:
    application = APPLICATIONS["lammps-pppm"]
    if agree:
        answers.check_agree(application, pppm(-100.0), pppm(over_beowire))
        return
    with pytest.raises(BeowireError) as caught:
        answers.check_agree(application, pppm(-100.0), pppm(over_beowire))
    assert "energy at the end -100.0 over TCP, -100.002 over Beowire" in caught.value.what
    assert caught.value.code == 4


def test_an_answer_without_tolerance_is_the_same() -> None:
    told = [Outcome({"hdf5": 1.0}, {"hash": float(hash_)}) for hash_ in (2**47, 2**47 + 1)]
    answers.check_agree(APPLICATIONS["hdf5"], told[0], told[0])
    with pytest.raises(BeowireError, match="different answers"):
        answers.check_agree(APPLICATIONS["hdf5"], *told)


def test_each_application_is_whole() -> None:
    figures = [figure.name for each in APPLICATIONS.values() for figure in each.figures]
    assert len(figures) == len(set(figures))
    for name, each in APPLICATIONS.items():
        assert each.name == name
        assert sum(map(bool, (each.program, each.source, each.example))) == 1
        assert each.tolerances
        assert bool(each.packages) == (not each.example)


def test_names_are_chosen() -> None:
    assert [each.name for each in catalogue.named("hdf5, fftw")] == ["fftw", "hdf5"]
    assert catalogue.named("") == tuple(APPLICATIONS.values())
    with pytest.raises(BeowireError, match="there is no fft"):
        catalogue.named("fft,hdf5")


def test_shapes() -> None:
    assert place.read_shapes("2,4,4x4,2x2") == (Shape(2, 2), Shape(4, 2), Shape(4, 4))
    assert [Shape(5, 2).per_node, Shape(4, 4).per_node] == [3, 1]
    for wrong in ("1", "4x1", "2x4", "four", "x2", "512", "2,"):
        with pytest.raises(BeowireError, match="--ranks"):
            place.read_shapes(wrong)


def test_usual_shapes_have_a_rank_for_each_core_and_two() -> None:
    assert cli._usual(Cores(2, shared=True)) == "2,4"
    assert cli._usual(Cores(4, shared=False)) == "8,16"
    assert cli._usual(Cores(1, shared=True)) == "2,2"
    assert cli._usual(Cores(100, shared=False)) == "200,256"


def test_water_is_neutral_and_fills_its_box() -> None:
    text = lammps.water_data(3)
    atoms = text.partition("Atoms\n\n")[2].partition("\n\n")[0].splitlines()
    rows = [[float(word) for word in line.split()] for line in atoms]
    assert len(rows) == 81
    assert "81 atoms\n54 bonds\n27 angles\n" in text
    assert sum(row[3] for row in rows) == pytest.approx(0)
    assert [int(row[0]) for row in rows] == list(range(1, 82))
    assert all(0 <= place < 3 * 3.1 for row in rows for place in row[4:])
    oxygen, first, second = rows[:3]
    for hydrogen in (first, second):
        length = sum((a - b) ** 2 for a, b in zip(oxygen[4:], hydrogen[4:], strict=True))
        assert length == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("ranks", "rows", "columns"), [(2, 1, 2), (4, 2, 2), (6, 2, 3), (7, 1, 7), (16, 4, 4)]
)
def test_hpccs_grid_is_as_square_as_it_can_be(ranks: int, rows: int, columns: int) -> None:
    words = [line.split()[0] for line in hpcc.files(ranks)["hpccinf.txt"].splitlines()]
    assert words[10:12] == [str(rows), str(columns)]


SHAPES = (Shape(2, 2), Shape(4, 2))


class Told:
    """Stands for the runs: times and answers as they are told."""

    def __init__(self, payload: int = 1000, octets: int = 1000) -> None:
        self.made: list[str] = []
        self.payload = payload
        self.octets = octets
        self.hash = 7.0
        self.broken = ""

    def run(self, application: Application, shape: Shape, transport: Transport) -> Run:
        self.made.append(f"{application.name} {shape} {transport}")
        if self.broken == self.made[-1]:
            raise BeowireError("it broke", code=1)
        beowire = transport == "beowire"
        record = JobRecord(
            Job(["x"], shape.ranks, transport),
            "mpirun x",
            0,
            False,
            0,
            1,
            nodes={} if beowire else {"node1": node(self.octets)},
            endpoints=[endpoint(self.payload)] if beowire else [],
        )
        time_s = 2.0 * shape.ranks if beowire else 1.0 * shape.ranks
        times = {figure.name: time_s for figure in application.figures}
        computed = dict.fromkeys(application.tolerances, self.hash if beowire else 7.0)
        return Run(Outcome(times, computed), record)


def node(octets: int) -> NodeCounters:
    """All that it sent was IP."""
    return NodeCounters(octets, 0, 0, 0, octets, 0, 0, 0, 0, 0)


def endpoint(payload: int) -> Endpoint:
    links = {"packet": {"rx_payload": payload}}
    return Endpoint(node="a", pid=1, links=links, retransmits=0, drops={})


def swept(told: Told, rounds: int = 2, *names: str) -> Results:
    chosen = catalogue.named(",".join(names or ("hdf5", "petsc-cg")))
    results = Results()
    plan = Plan(chosen, SHAPES, rounds)
    measure.sweep(plan, results, told.run, lambda _: None, lambda: None)
    return results


def test_rounds_take_turns() -> None:
    told = Told()
    results = swept(told)
    one_round = [
        f"{name} {shape} {transport}"
        for name in ("hdf5", "petsc-cg")
        for shape in ("2x2", "4x2")
        for transport in ("tcp", "beowire")
    ]
    assert told.made == 2 * one_round
    assert not results.failed
    cell = results.cells[Key("hdf5", Shape(4, 2))]
    assert (cell.tcp, cell.beowire) == ([4.0, 4.0], [8.0, 8.0])


def test_one_that_breaks_is_told_and_left_out() -> None:
    told = Told()
    told.broken = "hdf5 4x2 tcp"
    results = swept(told, 3)
    assert told.made.count("hdf5 4x2 tcp") == 1
    assert told.made.count("hdf5 2x2 beowire") == 3
    assert results.failed == [{"application": "hdf5", "ranks": "4x2", "why": "it broke"}]
    assert Key("hdf5", Shape(4, 2)) not in results.cells


def test_other_answers_end_with_their_code() -> None:
    told = Told()
    told.hash = 8.0
    results = swept(told, 1, "hdf5")
    assert results.code == 4
    assert "hash 7.0 over TCP, 8.0 over Beowire" in results.failed[0]["why"]
    assert not results.cells


def test_tcp_must_have_carried_about_as_much() -> None:
    assert not swept(Told(payload=1000, octets=500), 1).failed
    results = swept(Told(payload=1000, octets=499), 1)
    assert len(results.failed) == 4
    assert "IP carried 499 bytes of the 500" in results.failed[0]["why"]


def cell(tcp: list[float], beowire: list[float], name: str = "fftw") -> Cell:
    return Cell(Key(name, Shape(4, 2)), name, "s", tcp, beowire)


@pytest.mark.parametrize(
    ("tcp", "beowire", "verdict"),
    [
        ([1.0, 1.0, 1.0], [0.5, 0.51, 0.52], "ahead"),
        ([1.0, 1.0, 1.0], [1.5, 1.51, 1.52], "behind"),
        ([1.0, 1.0, 1.0], [0.5, 1.51, 1.0], "even"),
        ([1.0], [5.0], "even"),
    ],
)
def test_verdicts(tcp: list[float], beowire: list[float], verdict: str) -> None:
    assert cell(tcp, beowire).verdict == verdict


def test_the_worst_stand_first() -> None:
    steady = [1.0, 1.0, 1.0]
    rows = [
        cell(steady, [0.5, 0.5, 0.51], "ahead"),
        cell(steady, [1.1, 1.1, 1.11], "behind"),
        cell(steady, [0.1, 2.0, 1.0], "even"),
        cell(steady, [1.6, 1.6, 1.61], "far behind"),
    ]
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(tables.ratios(rows))
    lines = console.export_text().splitlines()
    order = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert order == ["far behind", "behind", "even", "ahead"]
    assert tables.told_median(rows[:2]) == "Ratios of times: median 0.80, highest 1.10."


def test_the_file_has_all(tmp_path: Path) -> None:
    file = tmp_path / "apps.json"
    plan = Plan(catalogue.named("fftw"), SHAPES, 3)
    store = Store(file, plan, {"nodes": "none"})
    store.results.cells[Key("fftw", Shape(4, 2))] = cell([1.0, 1.0], [2.0, 2.1])
    store.missing.append({"application": "hdf5", "why": "no headers"})
    store.save()
    told = json.loads(file.read_text())
    assert list(told) == [
        *("writer", "format", "setting", "order", "missing", "failed", "cells", "profiles"),
        "commands",
    ]
    (row,) = told["cells"]
    assert list(row) == [
        *("application", "figure", "ranks", "nodes", "ratio", "low", "high", "verdict", "unit"),
        *("tcp", "beowire", "rounds", "values"),
    ]
    assert row["ratio"] == pytest.approx((2.0 * 2.1) ** 0.5)
    assert row["low"] < row["ratio"] < row["high"]
    assert row["values"] == {"tcp": [1.0, 1.0], "beowire": [2.0, 2.1]}
    lone = cell([1.0], [2.0]).as_json()
    assert (lone["low"], lone["high"]) == (None, None)
    with pytest.raises(BeowireError, match="cannot be written"):
        Store(tmp_path / "no" / "file", plan, {})


RANK: dict[str, Any] = {
    **dict.fromkeys(ledger._ACCOUNT, 1000),
    "wall_ns": 4 * 10**9,
    "queued_ns": 3 * 10**9,
    "mpi": {"Send": [10, 2 * 10**9, 5000], "Wait": [4, 10**9, 0]},
    "sizes": [1, 2, 3, 4, 5, 6],
    "kernel": {"sched_yield": [7, 100], "sendto": [5, 0], "writev": [1, 2]},
}
ENDPOINT = {
    "rounds": 50,
    "yields": 3,
    "links": {"udp": {"tx_frames": 9, "tx_payload": 90}},
}


def test_a_ledger_sums_ranks(tmp_path: Path) -> None:
    (tmp_path / "a-1.ledger").write_text(json.dumps(RANK))
    other = {**RANK, "wall_ns": 2 * 10**9, "mpi": {"Send": [1, 0, 1], "Barrier": [1, 10**9, 0]}}
    (tmp_path / "a-2.ledger").write_text(json.dumps(other))
    (tmp_path / "a-1.json").write_text(json.dumps(ENDPOINT))
    found = ledger.read(tmp_path)
    assert found.ranks == 2
    assert found.seconds("wall_ns") == 3
    assert found.mpi_s == 2
    assert found.mpi["Send"] == [11, 2 * 10**9, 5001]
    assert found.sizes == [2, 4, 6, 8, 10, 12]
    assert found.calls("sched_yield") == 14
    assert found.calls("sendto", "writev") == 12
    assert (found.engine["yields"], found.engine["udp frames"]) == (3, 9)
    assert found.as_json()["sizes"]["64 B"] == 2


def test_a_ledger_that_nobody_left_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="No rank left a ledger"):
        ledger.read(tmp_path)
    (tmp_path / "a-1.ledger").write_text("{}")
    with pytest.raises(BeowireError, match="cannot be read"):
        ledger.read(tmp_path)


def test_a_profile_shows_both_sides(tmp_path: Path) -> None:
    (tmp_path / "a-1.ledger").write_text(json.dumps(RANK))
    tcp = ledger.read(tmp_path)
    (tmp_path / "a-1.json").write_text(json.dumps(ENDPOINT))
    both: dict[Transport, ledger.Ledger] = {"tcp": tcp, "beowire": ledger.read(tmp_path)}
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(tables.where_time_goes(Profile("fftw", Shape(4, 2), both)))
    text = console.export_text()
    rows = [
        [word.strip() for word in line.split("│")[1:-1]]
        for line in text.splitlines()
        if line.startswith("│")
    ]
    assert ["waiting for a core", "3.000", "3.000"] in rows
    assert ["sched_yield()", "7", "7"] in rows
    assert ["MPI_Send: seconds", "2.000", "2.000"] in rows
    assert ["endpoints: yields", "", "3"] in rows
    assert rows.index(["MPI_Send: calls", "10", "10"]) < rows.index(["MPI_Wait: calls", "4", "4"])


def test_the_drawing(tmp_path: Path) -> None:
    file = tmp_path / "apps.svg"
    plot.draw([cell([1.0, 1.0], [2.0, 2.1]), cell([1.0], [0.01], "hdf5")], file)
    assert file.read_bytes().startswith(b"<?xml")
