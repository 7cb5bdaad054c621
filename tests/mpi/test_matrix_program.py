# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The matrix benchmark's program: that it measures what it is asked for, moves what it says, and
notices a wrong byte in each of its figures."""

import json
from typing import Any

import pytest
from beowire import places
from beowire.bench.matrix.figures import FIGURES
from beowire.errors import BeowireError
from beowire.lab.lab import MTU_DEFAULT_BYTES
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job, Transport
from beowire.run.mpi import Mpi
from beowire.run.path import prove
from mpi_programs import HANG_S, executable, run_example

SIZES = (8, 1000, 65536, 1 << 20)
OF_TWO = ("latency", "bandwidth", "bidirectional", "rate")
OF_FOUR = ("pairs", "allreduce", "alltoall", "broadcast")


def arguments(figures: tuple[str, ...], sizes: tuple[int, ...] = SIZES) -> tuple[str, ...]:
    told = ",".join(map(str, sizes))
    words = [word for figure in figures for word in ("--measure", f"{figure}:{told}")]
    return (*words, "--cell-ms", "2")


def results(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("transport", ["tcp", "beowire"])
@pytest.mark.parametrize(("ranks", "figures"), [(2, OF_TWO), (4, OF_FOUR)])
def test_all_figures(
    ranks: int, figures: tuple[str, ...], transport: Transport, mpi: Mpi, pair: Cluster
) -> None:
    # MPICH's ranks spin over TCP: four on two processors take ten times as long as the others.
    few = (ranks, transport, mpi) == (4, "tcp", "mpich")
    sizes = SIZES[:2] if few else SIZES
    record, output = run_example(
        "matrix", pair, ranks, mpi, arguments(figures, sizes), transport=transport
    )
    found = results(output)
    assert [(each["figure"], each["bytes"]) for each in found] == [
        (figure, size) for figure in figures for size in sizes
    ]
    for each in found:
        assert each["ranks"] == ranks
        assert 2 <= each["window"] <= 64
        assert 3 <= each["samples"] <= 40
        assert each["samples"] * each["batch"] < each["units"]
        assert 0 < each["min_ns"] <= each["p50_ns"] <= each["max_ns"]
    # Of pairs those of four ranks are two.
    moved = sum(
        FIGURES[each["figure"]].moved_bytes(each, "between")
        // (2 if each["figure"] == "pairs" else 1)
        for each in found
    )
    if record.nodes:
        prove(record, moved)
    if transport == "beowire" and ranks == 2:
        # The bound is all that there is, but for messages without data and those between cells,
        # and what came twice as its acknowledgement was late.
        again = record.retransmits * MTU_DEFAULT_BYTES
        assert record.payload_bytes - again < 1.01 * moved


def test_what_moves_within_a_node_is_known(pair: Cluster) -> None:
    program = str(executable("examples/matrix", "openmpi"))
    for ranks, figures in ((2, OF_TWO), (4, OF_FOUR[1:])):
        job = Job([program, *arguments(figures)], ranks, "beowire", per_node=ranks)
        record, output = run_captured(job, pair, HANG_S)
        moved = sum(FIGURES[each["figure"]].moved_bytes(each, "within") for each in results(output))
        prove(record, local_bytes=moved)
        with pytest.raises(BeowireError, match="`local` carried"):
            prove(record, local_bytes=10 * moved)


def run_spoiled(where: Cluster, figure: str, variable: str, offset: int) -> None:
    program = str(executable("examples/matrix", "openmpi"))
    library = places.product("tests/mpi/libspoil.so")
    job = Job(
        [program, *arguments((figure,), (1000,))],
        2,
        "beowire",
        environment={"LD_PRELOAD": str(library), variable: str(offset)},
    )
    run_captured(job, where, HANG_S)


@pytest.mark.parametrize(
    ("figure", "variable"),
    [
        ("latency", "SPOIL_SENT"),
        ("latency", "SPOIL_RECEIVED"),
        ("bandwidth", "SPOIL_SENT"),
        ("bidirectional", "SPOIL_SENT"),
        ("rate", "SPOIL_SENT"),
        ("pairs", "SPOIL_SENT"),
        ("allreduce", "SPOIL_GATHERED"),
        ("alltoall", "SPOIL_GATHERED"),
        ("broadcast", "SPOIL_GATHERED"),
    ],
)
def test_a_wrong_byte_is_noticed(figure: str, variable: str, pair: Cluster) -> None:
    with pytest.raises(BeowireError) as caught:
        run_spoiled(pair, figure, variable, 999)
    place = "double 124" if figure == "allreduce" else "wrong at byte 999"
    assert f"{figure} of 1000 bytes" in caught.value.what
    assert place in caught.value.what


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "nothing to measure"),
        (("--measure", "speed:8"), "--measure: 'speed' is no figure"),
        (("--measure", "latency"), "--measure: 'latency' has no sizes"),
        (("--measure", "latency:8,x"), "--measure: 'x' is not a whole number"),
        (("--measure", "latency:0"), "--measure: 0 is outside 1 to"),
        (("--measure", "allreduce:12"), "allreduce of 12 bytes with 2 ranks: needs sizes of whole"),
        (("--measure", "latency:8", "--cell-ms", "0"), "--cell-ms: 0 is outside"),
        (("--measure", "latency:8", "--json", "/nowhere/f"), "cannot write /nowhere/f"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], message: str, pair: Cluster) -> None:
    with pytest.raises(BeowireError) as caught:
        run_example("matrix", pair, 2, "mpich", words, transport="tcp")
    assert caught.value.what.count(f"matrix.mpich: {message}") == 1, caught.value.what


def test_figures_say_how_many_ranks_they_need(four: Cluster) -> None:
    for figure, ranks, needs in (("latency", 4, "two ranks"), ("pairs", 3, "an even number")):
        with pytest.raises(BeowireError, match=f"with {ranks} ranks: needs .*{needs}"):
            run_example("matrix", four, ranks, "mpich", arguments((figure,)), transport="tcp")
