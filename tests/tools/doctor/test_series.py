# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measurements in turn: what fails is left out and named, the rest goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from beowire.doctor import series
from beowire.doctor.pair import Pair
from beowire.doctor.series import Measurer, Turn, measure
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster

_PAIR = Pair(Cluster(["peer"], ["false"]), "192.0.2.2", "192.0.2.1")
_ALL = ("tcp", "packet", "beowire")


@dataclass
class FakeServer:
    """Stands for a ping-pong that waits, of which none is needed here."""

    pair: Pair
    there: bool

    def close(self) -> None:
        pass


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str, int], None]], None]:
    """Lets the ping-pong answer, unless a function of transport and call refuses."""

    def use(refuse: Callable[[str, int], None]) -> None:
        calls = 0

        def client(server: Any, words: list[str], limit_s: float) -> dict[str, Any]:
            nonlocal calls
            calls += 1
            del server, limit_s
            options = dict(zip(words[::2], words[1::2], strict=True))
            transports = options["--transport"].split(",")
            for each in transports:
                refuse(each, calls)
            results = [{"transport": each, "rounds": [1e6]} for each in transports]
            return {"system_call_ns": 100.0, "results": results}

        monkeypatch.setattr(series, "client", client)
        monkeypatch.setattr(series, "Server", FakeServer)

    return use


def measured(rounds: int = 4) -> series.Series:
    turns = [Turn("latency", "block", 8, _ALL), Turn("latency", "spin", 8, _ALL)]
    return measure(Measurer(_PAIR, 0.1), turns, rounds, lambda _: None)


Answers = Callable[[Callable[[str, int], None]], None]


def test_every_transport_has_a_figure_for_each_round(answers: Answers) -> None:
    answers(lambda _transport, _call: None)
    found = measured()
    assert {len(rounds) for rounds in found.of.values()} == {4}
    assert len(found.of) == 6
    assert found.get("tcp", "latency", "block", 8) == [pytest.approx(1e-3)] * 4
    assert found.troubles == []


def test_a_transport_that_never_works_is_named_once(answers: Answers) -> None:
    def refuse(transport: str, _call: int) -> None:
        if transport == "packet":
            raise BeowireError("no raw frames")

    answers(refuse)
    found = measured()
    assert {key.transport for key in found.of} == {"tcp", "beowire"}
    assert found.troubles == ["bare frames to peer: no raw frames"]


@pytest.mark.parametrize(("calls", "bare"), [(10, set()), (12, {3})])
def test_a_transport_that_fails_later_is_left_out_from_there(
    calls: int, bare: set[int], answers: Answers
) -> None:
    """Of two rounds nothing is kept: they carry no interval."""

    def refuse(transport: str, call: int) -> None:
        if transport == "packet" and call > calls:
            raise BeowireError("a bare frame was lost")

    answers(refuse)
    found = measured()
    assert {len(rounds) for key, rounds in found.of.items() if key.transport != "packet"} == {4}
    assert {len(rounds) for key, rounds in found.of.items() if key.transport == "packet"} == bare
    assert len(found.troubles) == 2


def test_without_tcp_there_is_no_probe(answers: Answers) -> None:
    def refuse(transport: str, _call: int) -> None:
        if transport == "tcp":
            raise BeowireError("cannot connect by TCP")

    answers(refuse)
    with pytest.raises(BeowireError, match="TCP to peer failed: cannot connect"):
        measured()


def test_each_transport_is_measured_for_as_long(answers: Answers, monkeypatch: Any) -> None:
    answers(lambda _transport, _call: None)
    asked: dict[str, set[str]] = {}
    inner = series.client

    def client(server: Any, words: list[str], limit_s: float) -> dict[str, Any]:
        options = dict(zip(words[::2], words[1::2], strict=True))
        asked.setdefault(options["--transport"], set()).add(options["--iterations"])
        report = inner(server, words, limit_s)
        slow = options["--transport"] == "tcp"
        report["results"] = [
            each | {"rounds": [1e6 if slow else 1e8]} for each in report["results"]
        ]
        return report

    monkeypatch.setattr(series, "client", client)
    turn = Turn("bandwidth", "block", 65536, ("tcp", "packet"))
    measure(Measurer(_PAIR, 10), [turn], 3, lambda _: None)
    assert asked == {"tcp": {"8", "152"}, "packet": {"8", "15258"}}
