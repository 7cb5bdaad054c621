# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench line`: what it refuses, what it computes, and one short run in a lab."""

import json
from pathlib import Path

import pytest
from beowire import lab, line_bench, line_flow
from beowire.line_bench import Plan, Report, Run
from beowire.topology import Model
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
    assert ping.value == pytest.approx(2.0)
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
        assert 0 < run["bits"] + run["beside_bits"] < 21e6
        assert run["bits"] > 0
        assert run["ping_us"]["p50"] >= 2000
    assert not [name for name in lab.names() if name.startswith("line-")]


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
@pytest.mark.parametrize(("eager", "least", "most"), [("", 0.9, 1.9), ("16384", 2.5, 5.0)])
def test_messages_of_30_kb_need_no_further_round_trip_over_a_distance(
    eager: str, least: float, most: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty milliseconds away: a message of its own, or announced first and then asked for."""
    delay_ns = 20_000_000
    if eager:
        monkeypatch.setenv("BEOWIRE_EAGER_MAX", eager)
    plan = Plan(Model(rate_bits=100_000_000, delay_ns=delay_ns), (), "", False, 1, 1)
    with line_bench.made(plan) as net, line_flow.pair(net, "node5", 47102) as directory:
        figures = tmp_path / "figures"
        words = ["--transport", "beowire", "--size", "30K", "--rounds", "1", "--iterations", "20"]
        words += ["--port", "47102", "--json", str(figures), net.address("node5")]
        client = line_flow.pingpong(net, "node1", words, directory / "client")
        assert client.wait(120) == 0, (directory / "client").read_text()
        (result,) = json.loads(figures.read_text())["results"]
    assert least < result["p50_ns"] / delay_ns < most


def test_the_kernel_s_controls_are_known() -> None:
    assert "reno" in line_flow.controls()
