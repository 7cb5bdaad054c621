# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench stripe`: what it refuses, and one short run over two unequal links."""

import json
from pathlib import Path

import pytest
from beowire import lab
from beowire_cli import beowire, no_pair

FAST, SLOW = 40e6, 10e6


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


@pytest.mark.skipif(bool(no_pair()), reason=no_pair())
def test_unequal_links_add_up_and_one_is_cut(tmp_path: Path) -> None:
    file = tmp_path / "figures"
    words = ("--rates", "40M,10M", "--cut", "1", "--seconds", "2", "--rounds", "1")
    for _ in range(3):  # a busy machine takes off at times
        done = beowire("bench", "stripe", *words, "--json", str(file))
        assert done.status == 0, done.errors
        told = json.loads(file.read_text())
        fast, slow = told["alone_bits"][0]
        (together,) = told["together_bits"]
        (cut,) = told["cuts"]
        assert fast < 1.1 * FAST
        assert max(slow, cut["without_bits"]) < 1.1 * SLOW
        # Something goes on by the slow link, which the fast one then joins again.
        reached = (
            fast / (0.8 * FAST),
            slow / (0.8 * SLOW),
            together / (1.1 * fast),
            cut["without_bits"] / (0.1 * SLOW),
            cut["returned_bits"] / (0.1 * FAST),
        )
        if min(reached) > 1:
            break
    assert min(reached) > 1, reached
    assert not [name for name in lab.names() if name.startswith("stripe-")]
