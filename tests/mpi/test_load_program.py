# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The load benchmark's program: that it sends what its schedule says and when, whatever becomes of
the messages before, tells who did not keep up, and notices a wrong byte."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from beowire import places
from beowire.bench.load.distribution import chosen
from beowire.bench.load.runs import moved_bytes
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job, Transport
from beowire.run.mpi import Mpi
from beowire.run.path import prove
from mpi_programs import HANG_S, executable, run_example

SIZES = chosen("uniform:1-20k")
NAP = ("--nap-us", "20")
SHORT = ("--sizes", SIZES.argument(), "--gaps", "2000000,1000000", "--ms", "200", *NAP)
EVEN = ("--sizes", "0:1000,1:1000", "--ms", "100", *NAP)


def phases(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def run(
    where: Cluster, ranks: int, *words: str, mpi: Mpi = "openmpi", transport: Transport = "beowire"
) -> list[dict[str, Any]]:
    """A proved run's phases."""
    record, output = run_example("load", where, ranks, mpi, words, transport=transport)
    found = phases(output)
    if record.nodes:
        prove(record, moved_bytes(found))
        with pytest.raises(BeowireError, match="carried"):
            prove(record, 10 * moved_bytes(found) + 10**8)
    for each in found:
        assert len(each["bytes"]) == len(each["ns"])
        assert all(ns > 0 for ns in each["ns"])
    return found


@pytest.mark.parametrize("to", ["one", "all"])
def test_transports_send_the_same(to: str, four: Cluster) -> None:
    words = (*SHORT, "--to", to, "--seed", "7")
    both = [run(four, 4, *words, mpi="mpich", transport="tcp"), run(four, 4, *words)]
    for one, other in zip(*both, strict=True):
        assert Counter(one["bytes"]) == Counter(other["bytes"])
        assert one["payload_bytes"] == other["payload_bytes"] > one["due_bytes"] > 0
    senders = 4 if to == "all" else 3
    for each, gap_ms in zip(both[0], (2, 1), strict=True):
        wanted = senders * 200 / gap_ms
        assert len(each["ns"]) == pytest.approx(wanted, abs=4 * wanted**0.5)  # Poisson
        assert max(each["bytes"]) <= 20 << 10
        mean, scatter = SIZES.mean_bytes, (20 << 10) / 12**0.5
        assert np.mean(each["bytes"]) == pytest.approx(mean, abs=4 * scatter / wanted**0.5)
    other_seed = run(four, 4, *SHORT, "--to", to, "--seed", "8")
    assert Counter(other_seed[0]["bytes"]) != Counter(both[0][0]["bytes"])


@pytest.mark.parametrize("answers", [(), ("--answers",)])
def test_what_is_due_does_not_wait_for_what_was_sent(
    answers: tuple[str, ...], pair: Cluster
) -> None:
    """A million messages a second are too much for anybody: they wait, and their times tell it."""
    (told,) = run(pair, 2, *EVEN, "--gaps", "1000", "--outstanding", "4", *answers)
    assert told["held"] > 0.5 * len(told["ns"])
    assert len(told["ns"]) == pytest.approx(100_000, rel=0.05)
    assert told["reached_bytes"] < 0.9 * told["due_bytes"]
    behind_ns = told["end_ns"] - 120e6
    assert behind_ns > 0
    assert max(told["ns"]) > 0.5 * behind_ns


def test_who_keeps_up_holds_nothing(pair: Cluster) -> None:
    (told,) = run(pair, 2, *EVEN, "--gaps", "5000000")
    assert told["held"] == 0
    assert told["due_bytes"] == 1000 * len(told["ns"])
    assert told["late_p50_ns"] <= told["late_p99_ns"] <= told["late_max_ns"]


def test_alone_first_then_waves(four: Cluster) -> None:
    words = ("--idle", "8:1000000,5000:2000000", "--idle-copies", "3", "--waves")
    alone, waves = run(four, 4, *EVEN, "--gaps", "20000000", *words)
    assert (alone["phase"], waves["phase"]) == ("idle", "load")
    assert Counter(alone["bytes"]) == {8: 3, 5000: 3}
    assert "due_ns" not in alone
    assert Counter(waves["due_ns"]) == {20_000_000 * n: 3 for n in range(1, 6)}


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_bulk_beside(mpi: Mpi, pair: Cluster) -> None:
    (told,) = run(pair, 2, *EVEN, "--gaps", "1000000", "--bulk", "1000000:40", mpi=mpi)
    assert told["bulk_bytes"] == 40_000_000
    assert 0 < told["bulk_ns"] <= told["end_ns"]
    assert set(told["bytes"]) == {1000}


@pytest.mark.parametrize(
    ("size", "offset"), [(8, 7), (512, 300), (5000, 0), (5000, 4999), (5000, 64)]
)
def test_a_wrong_byte_is_noticed(size: int, offset: int, pair: Cluster) -> None:
    program = str(executable("examples/load", "openmpi"))
    words = ["--sizes", f"0:{size},1:{size}", "--gaps", "5000000", "--ms", "50", *NAP]
    spoil = {"LD_PRELOAD": str(places.product("tests/mpi/libspoil.so")), "SPOIL_SENT": str(offset)}
    with pytest.raises(BeowireError, match=f"of rank 1 is wrong at byte {offset} of {size}"):
        run_captured(Job([program, *words], 2, "beowire", environment=spoil), pair, HANG_S)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--sizes and --gaps are needed"),
        (("--sizes", "8"), "--sizes: '8' is no SHARE:BYTES"),
        (("--sizes", "0:8,0.5:4"), "--sizes: shares and sizes must rise"),
        (("--sizes", "0:8,0.5:9"), "--sizes: shares must go from 0 to 1"),
        (("--sizes", "0:0,1:9"), "--sizes: 0 is outside 1 to"),
        (("--to", "some"), "--to: 'some' is neither one nor all"),
        (("--bulk", "5"), "--bulk: '5' has no colon"),
        (("--idle", "8"), "--idle: '8' has no colon"),
        ((*EVEN, "--gaps", "1", "--ms", "90000"), "a sender would send more than 4194304"),
    ],
)
def test_mistakes_are_named(words: tuple[str, ...], message: str, pair: Cluster) -> None:
    with pytest.raises(BeowireError) as caught:
        run_example("load", pair, 2, "mpich", words, transport="tcp")
    assert caught.value.what.count(f"load.mpich: {message}") == 1, caught.value.what
