# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Waves of an incast: their share of the line, their longest message, and what is wanted."""

from dataclasses import replace

import pytest
from beowire.bench.load import incast
from beowire.bench.load.distribution import constant
from beowire.bench.load.runs import Phase
from beowire.bench.matrix.cells import has_interval
from load_rounds import both, load, plan

PLAN = plan(constant(8), pattern="incast", loads=(0.0,), nodes=3, rate_bits=128 * 10**6)
FAIR_NS = 1000.0
"""Two messages of 64 bits at 128 bits a microsecond."""


def waves(*times: list[int]) -> Phase:
    """A wave of two messages after the other, by their times."""
    ns = [each for row in times for each in row]
    due = [number for number, row in enumerate(times) for _ in row]
    return load([8] * len(ns), ns, due_ns=due)


def test_a_wave_lasts_until_its_last_message() -> None:
    found = incast.shares(waves([500, 1000], [2000, 100], [1250, 1250]), FAIR_NS, 2)
    assert found == [1.0, 0.5, 0.8]


def test_a_part_of_a_wave_is_none() -> None:
    assert incast.shares(waves([500, 1000], [2000]), FAIR_NS, 2) == [1.0]


def test_by_hand() -> None:
    good, bad = waves([500, 1000], [1000, 1040]), waves([4000, 100], [2000, 2000])
    found = incast.found([both([bad], [good])] * 3, PLAN)
    assert found.beowire.rounds == (pytest.approx((1 + 1000 / 1040) / 2),) * 3
    assert (found.beowire.longest, found.beowire.waves, found.beowire.messages) == (1.04, 6, 12)
    assert (found.tcp.share, found.tcp.least_share, found.tcp.longest) == (0.375, 0.25, 4.0)
    assert (found.beowire.good, found.tcp.good) == (True, False)
    assert has_interval(found.ratio)
    assert not has_interval(incast.found([both([bad], [good])] * 2, PLAN).ratio)


@pytest.mark.parametrize(
    ("wave", "good"),
    [
        ([1052, 1000], True),  # 95.06 % of the line
        ([1053, 1000], False),
    ],
)
def test_the_line_must_be_full(wave: list[int], good: bool) -> None:
    found = incast.found([both([waves(wave)], [waves(wave)])], PLAN)
    assert found.beowire.good is good


@pytest.mark.parametrize(("longest", "good"), [(3000, True), (3001, False)])
def test_no_message_may_take_long(longest: int, good: bool) -> None:
    """In one wave of many, so that the median share is all right."""
    phase = waves([1000, 900], [1000, 900], [longest, 900])
    assert incast.found([both([phase], [phase])], PLAN).beowire.good is good


def test_what_passes_at_once_does_not_count() -> None:
    phase = waves([500, 1000])
    assert replace(PLAN, burst_bytes=4).fair_ns == FAIR_NS
    found = incast.found([both([phase], [phase])], replace(PLAN, burst_bytes=4))
    assert (found.beowire.share, found.beowire.longest) == (0.75, 1.0)


def test_a_round_without_a_wave_is_an_error() -> None:
    with pytest.raises(ValueError, match="without a wave"):
        incast.found([both([waves([1])], [waves([1])])], PLAN)
