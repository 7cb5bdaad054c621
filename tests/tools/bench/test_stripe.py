# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench stripe`: what it refuses, and one short run over two unequal links."""

import json
from pathlib import Path

import pytest
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


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_unequal_links_add_up_and_one_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    words = ("--rates", "40M,10M", "--cut", "1", "--seconds", "2", "--rounds", "1")
    done = beowire("bench", "stripe", *words, "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    fast, slow = told["alone_bits"][0]
    (together,) = told["together_bits"]
    (cut,) = told["cuts"]
    # A busy machine takes off, but each figure has a bound that one link less would not reach.
    assert SLOW < fast < MOST * FAST
    assert 0.3 * SLOW < slow < MOST * SLOW
    assert MOST * FAST < together < MOST * (FAST + SLOW)
    # Something goes on by the slow link, which the fast one then joins again.
    assert 0.3 * SLOW < cut["without_bits"] < MOST * SLOW
    assert SLOW < cut["returned_bits"] < MOST * FAST
    assert cut["returned_bits"] < cut["again_bits"] < MOST * (FAST + SLOW)
    assert not [name for name in lab.names() if name.startswith("stripe-")]
