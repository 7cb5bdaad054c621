# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slowdowns: one denominator for both transports, no percentile from too few messages, no interval
from too few rounds."""

import numpy as np
import pytest
from beowire.bench.load import slowdown
from beowire.bench.load.store import Round
from beowire.bench.matrix.cells import has_interval
from load_rounds import both, idle, load


def test_alone_is_the_better_of_both_in_the_best_round() -> None:
    rounds = [
        both([idle({8: [50, 10, 30], 1000: [90, 90]})], [idle({8: [40], 1000: [80]})]),
        both([idle({8: [20, 22, 99], 1000: [95]})], [idle({8: [25], 1000: [100]})]),
    ]
    found = slowdown.alone(rounds)
    assert (found.bytes, found.ns) == ((8, 1000), (22, 80))
    assert list(found.at([8, 504, 1000])) == [22, 51, 80]


def test_loads_are_no_denominator() -> None:
    rounds = [both([idle({8: [10]}), load([8], [1])], [idle({8: [11]}), load([8], [2])])]
    assert slowdown.alone(rounds).ns == (10,)


@pytest.mark.parametrize(("name", "least"), [("p50", 10), ("p99", 100), ("p99.9", 1000)])
def test_no_percentile_from_too_few(name: str, least: int) -> None:
    assert slowdown.percentile(np.ones(least - 1), name) is None
    assert slowdown.percentile(np.ones(least), name) == 1


def test_percentiles_by_hand() -> None:
    values = np.arange(1.0, 2001.0)
    assert [slowdown.percentile(values, name) for name in slowdown.PERCENTILES] == [
        1000,
        1980,
        1998,
    ]


def measured(tcp: list[list[int]], beowire: list[list[int]]) -> list[Round]:
    """Rounds of messages of 8 bytes that take 10 ns alone."""
    alone = idle({8: [10]})
    return [
        both([alone, load([8] * len(one), one)], [alone, load([8] * len(other), other)])
        for one, other in zip(tcp, beowire, strict=True)
    ]


def median(rounds: list[Round]) -> slowdown.Figure:
    (found,) = (each for each in slowdown.figures(rounds, (0.5,), [8]) if each.percentile == "p50")
    return found


def test_ratios_are_those_of_rounds() -> None:
    """Medians of 20 to 40, 40 to 40 and 80 to 40: the ratios are 2, 1 and 0.5."""
    told = median(measured([[20] * 10, [40] * 10, [80] * 10], [[40] * 10] * 3))
    assert (told.messages, told.tcp, told.beowire) == (30, 4, 4)
    assert told.ratio is not None
    assert told.ratio.value == pytest.approx(1)
    assert 0.01 < told.ratio.low < 0.5 < 2 < told.ratio.high < 100
    assert told.verdict == "even"


@pytest.mark.parametrize(("factor", "verdict"), [(2, "behind"), (0.5, "ahead")])
def test_verdicts(factor: float, verdict: str) -> None:
    tcp = [[100 + number] * 10 for number in range(4)]
    ours = [[round(factor * (100 + number)) + number] * 10 for number in range(4)]
    assert median(measured(tcp, ours)).verdict == verdict


def test_no_interval_from_two_rounds() -> None:
    told = median(measured([[20] * 10] * 2, [[40] * 10] * 2))
    assert told.ratio is not None
    assert told.ratio.value == 2
    assert not has_interval(told.ratio)
    assert told.verdict == "even"
    assert (told.as_json()["low"], told.as_json()["ratio"]) == (None, 2)


def test_rounds_with_too_few_messages_have_a_ratio_of_all_without_an_interval() -> None:
    told = median(measured([[20] * 4] * 3, [[60] * 4] * 3))
    assert (told.messages, told.tcp, told.beowire) == (12, 2, 6)
    assert told.ratio is not None
    assert told.ratio.value == 3
    assert not has_interval(told.ratio)


def test_too_few_in_all() -> None:
    told = median(measured([[20] * 3] * 3, [[60] * 3] * 3))
    assert (told.tcp, told.beowire, told.ratio, told.verdict) == (None, None, None, None)


def test_each_message_is_in_one_class_and_in_all() -> None:
    alone = idle({1: [10], 100: [109]})  # 9 ns and a nanosecond for each byte
    sizes = [*range(1, 101)] * 2
    phases = [alone, load(sizes, [2 * (9 + size) for size in sizes])]
    found = slowdown.figures([both(phases, phases)], (0.8,), [10, 50, 100])
    counts = {(each.low_bytes, each.high_bytes): each.messages for each in found}
    assert counts == {(0, 100): 200, (0, 10): 20, (10, 50): 80, (50, 100): 100}
    medians = [each.tcp for each in found if each.percentile == "p50"]
    assert medians == pytest.approx([2, 2, 2, 2])
    assert {each.load for each in found} == {0.8}


def test_loads_keep_their_order() -> None:
    phases = [idle({8: [10]}), load([8] * 10, [20] * 10), load([8] * 10, [50] * 10)]
    found = slowdown.figures([both(phases, phases)], (0.5, 0.8), [8])
    medians = {each.load: each.tcp for each in found if each.percentile == "p50"}
    assert medians == {0.5: 2, 0.8: 5}
