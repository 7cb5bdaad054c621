# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Percentiles and ratios hold what their definitions promise, for any samples."""

import pytest
from beowire import samples
from hypothesis import given
from hypothesis import strategies as some

numbers = some.floats(min_value=1e-3, max_value=1e9)
rounds = some.lists(some.tuples(numbers, numbers), min_size=1, max_size=9)


@given(some.lists(numbers, min_size=1, max_size=200))
def test_percentiles_are_ordered_and_inside(values: list[float]) -> None:
    told = samples.percentiles(values)
    ordered = [told[key] for key in ("min", "p1", "p50", "p90", "p99", "max")]
    assert ordered == sorted(ordered)
    assert (told["min"], told["max"], told["count"]) == (min(values), max(values), len(values))


@given(rounds)
def test_an_interval_holds_its_ratio(pairs: list[tuple[float, float]]) -> None:
    ratio = samples.ratio([above for above, _ in pairs], [below for _, below in pairs])
    assert ratio.low <= ratio.value <= ratio.high


@given(rounds, some.floats(min_value=0.01, max_value=100))
def test_a_factor_moves_ratio_and_interval(pairs: list[tuple[float, float]], factor: float) -> None:
    above, below = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    plain = samples.ratio(above, below)
    scaled = samples.ratio([factor * each for each in above], below)
    assert scaled.value == pytest.approx(factor * plain.value)
    assert scaled.low == pytest.approx(factor * plain.low)
    assert scaled.high == pytest.approx(factor * plain.high)


@given(some.lists(numbers, min_size=1, max_size=9))
def test_equal_samples_have_ratio_one(values: list[float]) -> None:
    assert samples.ratio(values, values).value == 1


def test_a_known_ratio() -> None:
    ratio = samples.ratio([2.0, 2.0, 2.0], [4.0, 4.0, 4.0])
    assert (ratio.low, ratio.value, ratio.high) == (0.5, 0.5, 0.5)


def test_scatter_widens_the_interval() -> None:
    steady = samples.ratio([1.0, 1.01, 0.99, 1.0, 1.0], [1.0] * 5)
    restless = samples.ratio([1.0, 1.5, 0.5, 1.2, 0.8], [1.0] * 5)
    assert restless.high - restless.low > steady.high - steady.low


def test_the_same_samples_give_the_same_interval() -> None:
    above, below = [1.0, 3.0, 2.0], [2.0, 2.5, 4.0]
    assert samples.ratio(above, below) == samples.ratio(above, below)


@pytest.mark.parametrize(
    ("above", "below"),
    [([], []), ([1.0], []), ([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [-1.0])],
)
def test_nonsense_is_refused(above: list[float], below: list[float]) -> None:
    with pytest.raises(ValueError, match="number"):
        samples.ratio(above, below)


def test_no_samples_have_no_percentiles() -> None:
    with pytest.raises(ValueError, match="no samples"):
        samples.percentiles([])


@given(rounds)
def test_a_paired_interval_holds_its_ratio(pairs: list[tuple[float, float]]) -> None:
    ratio = samples.paired([above for above, _ in pairs], [below for _, below in pairs])
    assert ratio.low <= ratio.value <= ratio.high


def test_few_rounds_exclude_nothing() -> None:
    five = samples.paired([2.0] * 5, [1.0] * 5)
    assert (five.low, five.value, five.high) == (0, 2, float("inf"))
    six = samples.paired([2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [1.0] * 6)
    assert (six.low, six.value, six.high) == (2, 4.5, 7)


def test_more_rounds_leave_out_extremes_and_more_confidence_fewer() -> None:
    above = [float(each) for each in range(1, 10)]
    usual = samples.paired(above, [1.0] * 9)
    surer = samples.paired(above, [1.0] * 9, 0.99)
    assert (usual.low, usual.value, usual.high) == (2, 5, 8)
    assert (surer.low, surer.value, surer.high) == (1, 5, 9)


def test_a_disturbance_of_whole_rounds_cancels() -> None:
    loads = [1.0, 3.0, 2.0, 9.0, 1.5, 4.0, 2.5]
    ratio = samples.paired([2 * each for each in loads], loads)
    assert (ratio.low, ratio.value, ratio.high) == (2, 2, 2)
