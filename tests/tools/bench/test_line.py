# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench line`: what it refuses, what it computes, and one short run in a lab."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from beowire.bench import line, line_flow
from beowire.bench.line import Plan, Report, Run
from beowire.lab import lab
from beowire.topology.topology import Model
from beowire_cli import beowire, no_pair


def run_of(flow: str, bits: float, p99_us: float | None = None) -> Run:
    ping = None if p99_us is None else {"p50": 1.0, "p99": p99_us}
    return Run(flow, bits, 0.0, ping, True, [])


def report(*runs: Run) -> Report:
    plan = Plan(Model(), ("beowire", "cubic"), "", False, 1, 1)
    return Report(plan, list(runs))


def test_ratios_are_of_beowire_to_the_others() -> None:
    found = report(
        run_of("beowire", 80e6, 300), run_of("cubic", 20e6, 200), run_of("beowire", 60e6, 500)
    )
    assert found.over("cubic") is None  # not as many rounds of both
    found.runs.append(run_of("cubic", 15e6, 200))
    over = found.over("cubic")
    assert over is not None
    assert over.value == pytest.approx(4.0)
    ping = found.ping_over("cubic")
    assert ping is not None
    assert ping.value == pytest.approx((300 / 200 * 500 / 200) ** 0.5)
    assert found.over("beowire") is None
    assert set(found.as_json()["beowire_over"]) == {"cubic"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--flows", "beowire,hare"), "no TCP congestion control hare"),
        (("--beside", "tortoise"), "no TCP congestion control tortoise"),
        (("--flows", "cubic,cubic"), "each flow once"),
        (("--delay", "0"), "A line has a rate and a delay"),
        (("--rate", "fast"), "is no rate"),
        (("--loss", "150%"), "is no share"),
        (("--json", "/nowhere/figures"), "/nowhere"),
    ],
)
def test_what_cannot_be_measured_is_told(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "line", *words)
    assert done.status == 1
    assert why in done.errors
    assert not [name for name in lab.names() if name.startswith("line-")]


@pytest.mark.parametrize(("beside", "bits", "beside_bits"), [("reno", 20e6, 5e6), ("", 20e6, 0.0)])
def test_a_rate_is_bits_of_the_flow_s_own_receiver_by_the_time_it_took(
    beside: str, bits: float, beside_bits: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on while it sleeps, two seconds longer than it should at the end."""
    now = 0.0
    begun: dict[str, float] = {}
    bytes_per_s = {"node5": 2_500_000, "node6": 625_000, "node7": 1000}

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds + 2.0

    @contextlib.contextmanager
    def running(_: object, kind: str, source: str, target: str) -> Iterator[None]:
        begun[target] = now
        assert (source, target) in zip(line.SENDERS, line.RECEIVERS, strict=True)
        assert kind == ("beowire" if target == "node5" else "reno")
        yield

    monkeypatch.setattr(line, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(line_flow, "running", running)
    monkeypatch.setattr(line_flow, "rx_bytes", lambda _, node: int(now * bytes_per_s[node]))
    monkeypatch.setattr(line.emulator, "ask", lambda *_: None)
    told = {"valid": False, "reasons": ["late"]}
    monkeypatch.setattr(line.emulator, "stats", lambda *_: told)
    made: Any = None
    plan = Plan(Model(), ("beowire",), beside, False, 3.0, 1)
    found = line._run(made, plan, "beowire")
    assert (found.bits, found.beside_bits) == (bits, beside_bits)
    assert (found.valid, found.reasons, found.ping_us) == (False, ["late"], None)
    assert set(begun) == ({"node5", "node6"} if beside else {"node5"})


def test_a_clock_that_is_read_late_makes_no_rate_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second 1000 bytes come to a node; the first looks at them take a second each longer than
    the last ones."""
    now, looks = 0.0, 0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def rx_bytes(*_: object) -> int:
        nonlocal now, looks
        seen = int(1000 * now)
        now += looks < len(line.RECEIVERS)
        looks += 1
        return seen

    monkeypatch.setattr(line, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(line_flow, "running", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(line_flow, "rx_bytes", rx_bytes)
    monkeypatch.setattr(line.emulator, "ask", lambda *_: None)
    monkeypatch.setattr(line.emulator, "stats", lambda *_: {"valid": True, "reasons": []})
    made: Any = None
    found = line._run(made, Plan(Model(), ("reno",), "reno", False, 9.0, 1), "reno")
    assert 0 < found.beside_bits <= found.bits <= 8000


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_each_flow_carries_what_it_can_beside_another_one(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    words = ("--rate", "20M", "--delay", "2ms", "--flows", "beowire,cubic", "--beside", "reno")
    done = beowire(
        *("bench", "line", *words, "--ping"),
        *("--seconds", "2", "--rounds", "1", "--json", str(file)),
    )
    assert done.status == 0, done.errors
    runs = json.loads(file.read_text())["runs"]
    assert [run["flow"] for run in runs] == ["beowire", "cubic"]
    for run in runs:
        # The ping-pong has its part, and a busy machine takes off; each flow has what is no
        # acknowledgement of the other's.
        assert 0.3 * 20e6 < run["bits"] + run["beside_bits"] < 1.03 * 20e6
        assert min(run["bits"], run["beside_bits"]) > 0.05 * 20e6
        assert run["ping_us"]["p99"] >= run["ping_us"]["p50"] >= run["ping_us"]["min"] >= 2000
    assert not [name for name in lab.names() if name.startswith("line-")]


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
@pytest.mark.parametrize(("eager", "least", "most"), [("", 0.9, 1.9), ("16384", 2.5, 5.0)])
def test_messages_of_30_kb_need_no_further_round_trip_over_a_distance(
    eager: str, least: float, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty milliseconds away: a message of its own, or announced first and then asked for. What
    the fastest exchange takes: a busy machine holds up any of them, and shortens none."""
    delay_ns = 20_000_000
    if eager:
        monkeypatch.setenv("BEOWIRE_EAGER_MAX", eager)
    plan = Plan(Model(rate_bits=100_000_000, delay_ns=delay_ns), (), "", False, 1, 1)
    with line.made(plan) as net, line_flow.pair(net, "node5", 47102) as directory:
        figures = tmp_path / "figures"
        words = ["--transport", "beowire", "--size", "30K", "--rounds", "1", "--iterations", "20"]
        words += ["--port", "47102", "--json", str(figures), net.address("node5")]
        client = line_flow.pingpong(net, "node1", words, directory / "client")
        assert client.wait(120) == 0, (directory / "client").read_text()
        (result,) = json.loads(figures.read_text())["results"]
    assert least < result["min_ns"] / delay_ns < most


def test_the_kernel_s_controls_are_known() -> None:
    assert "reno" in line_flow.controls()
