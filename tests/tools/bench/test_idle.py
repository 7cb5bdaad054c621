# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench idle`: what it refuses, what it computes, and one short run."""

import json
from pathlib import Path

import pytest
from beowire.bench.idle import Plan, Report
from beowire.lab import lab
from beowire_cli import beowire, no_pair


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--idle", "0"), "--idle 0?"),
        (("--idle", "4,many"), "--idle 4,many?"),
        (("--idle", "1001"), "from 1 to 1000"),
        (("--links", "packet,local"), "packet, udp"),
        (("--json", "/nowhere/figures"), "/nowhere"),
    ],
)
def test_what_cannot_be_measured_is_told(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "idle", *words)
    assert done.status == 1
    assert why in done.errors
    assert not [name for name in lab.names() if name.startswith("idle-")]


def test_the_cost_is_to_the_time_without_idle_endpoints() -> None:
    plan = Plan((8,), ("packet",), 9000, 10, 2)
    report = Report(plan, {"packet": {0: [2.0, 4.0], 8: [3.0, 6.0]}})
    assert report.cost("packet", 8).value == pytest.approx(1.5)


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_a_short_run(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    words = ("--idle", "3", "--rounds", "1", "--iters", "50", "--json", str(file))
    done = beowire("bench", "idle", *words)
    assert done.status == 0, done.errors
    times = json.loads(file.read_text())["times_us"]
    assert {link: set(each) for link, each in times.items()} == {
        "packet": {"0", "3"},
        "udp": {"0", "3"},
    }
    assert all(us > 0 for link in times.values() for rounds in link.values() for us in rounds)
    assert not [name for name in lab.names() if name.startswith("idle-")]
