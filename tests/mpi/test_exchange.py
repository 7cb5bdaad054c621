# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The exchange benchmark's program: what it moves, by which calls and types, and that its check
notices a wrong byte wherever there is one."""

import json

import pytest
from beowire import places
from beowire.bench.exchange import CALLS, TYPES, moved_bytes
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job, Transport
from beowire.run.mpi import Mpi
from beowire.run.path import prove
from mpi_programs import HANG_S, executable, run_example

SIZES = "16,1000,9000,100k"
SHORT = ("--iters", "3", "--window", "4", "--verify", "--json", "-")


def results(output: str) -> dict[tuple[str, str, int], dict[str, int]]:
    report = json.loads(output)
    return {(each["calls"], each["type"], each["size_bytes"]): each for each in report["results"]}


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
@pytest.mark.parametrize("transport", ["tcp", "beowire"])
@pytest.mark.parametrize("pattern", ["scatter", "gather"])
def test_one_with_many(pattern: str, transport: Transport, mpi: Mpi, four: Cluster) -> None:
    # MPICH's ranks spin over TCP: four on two processors take ten times as long as the others. How
    # long its messages are tests neither Beowire nor the program.
    few = (transport, mpi) == ("tcp", "mpich")
    sizes = [1000, 9000] if few else [16, 1000, 9000, 100 << 10]
    arguments = ("--pattern", pattern, "--sizes", ",".join(map(str, sizes)), *SHORT)
    record, output = run_example("exchange", four, 4, mpi, arguments, transport=transport)
    assert json.loads(output)["pattern"] == pattern
    found = results(output)
    assert set(found) == {
        (calls, kind, size) for calls in CALLS for kind in TYPES for size in sizes
    }
    for (_, kind, size), each in found.items():
        assert each["payload_bytes"] == (size // 12 * 12 if kind == "struct" else size)
        assert each["window"] == 4
        assert each["turn_bytes"] == 3 * 4 * each["payload_bytes"]
    if record.nodes:
        prove(record, moved_bytes(json.loads(output)))


@pytest.mark.parametrize("transport", ["memory", "beowire"])
def test_a_pair_lies_on_one_node(transport: Transport, pair: Cluster) -> None:
    program = str(executable("examples/exchange", "openmpi"))
    job = Job([program, "--sizes", SIZES, *SHORT], 2, transport, per_node=2, eager_bytes=8192)
    record, output = run_captured(job, pair, HANG_S)
    for each in results(output).values():
        assert each["turn_bytes"] == 2 * each["payload_bytes"]
    moved = moved_bytes(json.loads(output))
    prove(record, local_bytes=moved)
    if transport == "beowire":
        with pytest.raises(BeowireError, match="`local` carried"):
            prove(record, local_bytes=10 * moved)


def test_windows_shrink_where_messages_are_long(pair: Cluster) -> None:
    arguments = ("--pattern", "scatter", "--sizes", "1m,8m", "--calls", "nonblocking")
    arguments += ("--types", "byte", "--iters", "1", "--window", "16", "--json", "-")
    _, output = run_example("exchange", pair, 2, "openmpi", arguments)
    assert [each["window"] for each in results(output).values()] == [4, 1]


def run_spoiled(
    where: Cluster, calls: str, kind: str, *, variable: str, offset: int, pattern: str = "gather"
) -> None:
    program = str(executable("examples/exchange", "openmpi"))
    arguments = ["--pattern", pattern, "--calls", calls, "--types", kind, "--sizes", "1000"]
    library = places.product("tests/mpi/libspoil.so")
    job = Job(
        [program, *arguments, *SHORT],
        2,
        "beowire",
        environment={"LD_PRELOAD": str(library), variable: str(offset)},
    )
    run_captured(job, where, HANG_S)


@pytest.mark.parametrize(
    ("calls", "kind", "variable", "offset"),
    [
        ("blocking", "byte", "SPOIL_SENT", 999),
        ("nonblocking", "double", "SPOIL_SENT", 0),
        ("nonblocking", "vector", "SPOIL_SENT", 16),
        ("blocking", "struct", "SPOIL_SENT", 11),
        ("blocking", "struct", "SPOIL_RECEIVED", 12),
        ("blocking", "vector", "SPOIL_RECEIVED", 8),
    ],
)
def test_a_wrong_byte_is_noticed(
    calls: str, kind: str, variable: str, offset: int, pair: Cluster
) -> None:
    with pytest.raises(BeowireError) as caught:
        run_spoiled(pair, calls, kind, variable=variable, offset=offset)
    assert f"{kind} message of" in caught.value.what
    assert f"wrong at byte {offset} of" in caught.value.what


def test_gaps_do_not_travel(pair: Cluster) -> None:
    run_spoiled(pair, "blocking", "struct", variable="SPOIL_SENT", offset=12)
    run_spoiled(pair, "nonblocking", "vector", variable="SPOIL_SENT", offset=8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--pattern", "ring"), "--pattern: 'ring' is none of its names"),
        (("--calls", "blocking,"), "--calls: '' is none of its names"),
        (("--types", "float"), "--types: 'float' is none of its names"),
        (("--sizes", "15"), "--sizes: 15 is outside 16 to 268435456"),
        (("--json", "/nowhere/file"), "cannot write /nowhere/file: No such file"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], message: str, pair: Cluster) -> None:
    with pytest.raises(BeowireError) as caught:
        run_example("exchange", pair, 2, "mpich", arguments, transport="tcp")
    assert caught.value.what.count(f"exchange.mpich: {message}") == 1, caught.value.what


def test_a_pair_is_two(four: Cluster) -> None:
    with pytest.raises(BeowireError, match="3 ranks: pair needs 2"):
        run_example("exchange", four, 3, "mpich", (), transport="tcp")
