# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench line`: what it refuses, what it computes, and one short run in a lab."""

import json
from pathlib import Path

import pytest
from beowire import lab, lab_up, line_flow, places
from beowire.errors import BeowireError
from beowire.line_bench import Plan, Report, Run
from beowire.topology import Model
from beowire_cli import beowire


def missing() -> str:
    """What the run in a lab needs and this machine lacks."""
    try:
        places.product("hosts/user/beowire-pingpong")
    except BeowireError as error:
        return str(error)
    mode, reason = lab_up.choose_mode()
    return "" if mode == "namespaces" else reason


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


@pytest.mark.skipif(bool(missing()), reason=missing())
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


def test_the_kernel_s_controls_are_known() -> None:
    assert "reno" in line_flow.controls()
