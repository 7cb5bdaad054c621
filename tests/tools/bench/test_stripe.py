# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench stripe`: what it refuses, and one short run over two unequal links."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from beowire.bench import stripe
from beowire.bench.stripe import Plan, Report
from beowire.lab import lab
from beowire_cli import beowire, no_pair

FAST, SLOW = 40e6, 10e6
MOST = 1.03
"""Of a rate, with the burst of its bucket and what the clock is read late."""


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--rates", "100M"), "1 links?"),
        (("--rates", "1M,1M,1M,1M"), "4 links?"),
        (("--rates", "1M,fast"), "is no rate"),
        (("--rates", "1M,1M", "--cut", "3"), "no link 3"),
        (("--json", "/nowhere/figures"), "/nowhere"),
    ],
)
def test_what_cannot_be_measured_is_told(words: tuple[str, ...], why: str) -> None:
    done = beowire("bench", "stripe", *words)
    assert done.status == 1
    assert why in done.errors
    assert not [name for name in lab.names() if name.startswith("stripe-")]


def test_the_gain_is_over_the_sum_of_the_links() -> None:
    plan = Plan((80, 20), 1500, 1, 1.0, 2, 0)
    assert Report(plan, [[80.0, 20.0], [70.0, 30.0]], [100.0, 100.0]).gain.value == pytest.approx(1)
    assert Report(plan, [[80.0, 20.0]], [50.0]).gain.value == pytest.approx(0.5)


def test_a_clock_that_is_read_late_makes_no_rate_higher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second 1000 bytes come by a link; the first look takes a second longer than the last."""
    now, late_s = 100.0, iter([1.0, 0.0])

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    def came(*_: object) -> list[int]:
        nonlocal now
        seen = int(1000 * now)
        now += next(late_s)
        return [seen]

    monkeypatch.setattr(stripe, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
    monkeypatch.setattr(stripe, "_came", came)
    lab: Any = None
    assert stripe._bits(lab, Plan((80,), 1500, 1, 1.0, 2, 0), 2.0) == pytest.approx([8000])


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_unequal_links_add_up_and_one_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    words = ("--rates", "40M,10M", "--cut", "1", "--seconds", "2", "--rounds", "1")
    done = beowire("bench", "stripe", *words, "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    fast, slow = told["alone_bits"][0]
    (together,) = told["together_bits"]
    (parts,) = told["together_by_link_bits"]
    (cut,) = told["cuts"]
    # A busy machine takes off, but by each link comes what it would not have without it.
    assert SLOW < fast < MOST * FAST
    assert 0.1 * SLOW < slow < MOST * SLOW
    assert together == pytest.approx(sum(parts))
    assert 0.1 * SLOW < parts[0] < MOST * FAST
    assert 0.1 * SLOW < parts[1] < MOST * SLOW
    # Something goes on by the slow link, which the fast one then joins again: how soon it carries
    # much depends on the machine, but HELLOs and questions are less than this.
    assert 0.1 * SLOW < cut["without_bits"] < MOST * SLOW
    assert 0.02 * SLOW < cut["returned_bits"] < MOST * FAST
    assert cut["returned_bits"] < cut["again_bits"] < MOST * (FAST + SLOW)
    assert not [name for name in lab.names() if name.startswith("stripe-")]
