# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Percentiles and ratios hold what their definitions promise, for any samples."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from beowire import places
from beowire.bench import samples
from hypothesis import given
from hypothesis import strategies as some
from scipy import special

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
    assert (ratio.low, ratio.value, ratio.high) == pytest.approx((0.5, 0.5, 0.5))


def test_ratios_are_those_of_rounds_and_by_hand() -> None:
    """Logarithms -1, 0, 1 of base 2: their mean 0 +- 4.303 * 1 / sqrt(3)."""
    ratio = samples.ratio([1.0, 8.0, 4.0], [2.0, 8.0, 2.0])
    assert ratio.value == pytest.approx(1)
    assert ratio.high == pytest.approx(2 ** (4.3027 / 3**0.5), rel=1e-4)
    assert ratio.low == pytest.approx(1 / ratio.high)


def test_bounds_of_students_distribution() -> None:
    for freedom in (*range(1, 60), 999, 1000):
        expected = float(special.stdtrit(freedom, 0.975))
        assert samples._student(freedom) == pytest.approx(expected, rel=1e-9), freedom


def test_one_round_has_no_interval() -> None:
    ratio = samples.ratio([3.06], [3.0])
    assert (ratio.low, ratio.high) == (0, math.inf)
    assert str(ratio) == "1.02 (too few rounds for an interval)"
    assert str(samples.ratio([2.0, 2.0], [1.0, 1.0])) == "2.00 [2.00, 2.00]"


@pytest.mark.parametrize("rounds", [2, 3, 5, 9])
def test_an_interval_holds_the_true_ratio_as_often_as_it_says(rounds: int) -> None:
    """Of 2000 comparisons whose rounds are disturbed as a whole, by half, and each run by a tenth.
    95 % +- 1.5 % are three standard deviations."""
    generator = np.random.default_rng(rounds)
    true, trials, held = 1.3, 2000, 0
    for _ in range(trials):
        load = generator.normal(0, 0.5, rounds)
        above, below = (np.exp(load + generator.normal(0, 0.1, rounds)) for _ in range(2))
        found = samples.ratio(list(true * above), list(below))
        held += found.low <= true <= found.high
    assert held / trials == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("values", "median", "p90"),
    [([1, 2, 3, 4], 2, 4), ([1, 2], 1, 2), ([7], 7, 7), (range(1, 101), 50, 90)],
)
def test_percentiles_are_samples(values: Sequence[float], median: float, p90: float) -> None:
    """The smallest that so many are not above; nothing between two of them is made up."""
    told = samples.percentiles(values)
    assert (told["p50"], told["p90"]) == (median, p90)


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


def test_what_is_no_number_is_null_in_a_file(tmp_path: Path) -> None:
    ratio = samples.ratio([1.0], [1.0])
    places.write_json(tmp_path / "file", {"rows": [vars(ratio), (math.nan, 1, "x", None, True)]})
    told = json.loads((tmp_path / "file").read_text(), parse_constant=lambda word: word)
    nothing = {"value": 1.0, "low": 0.0, "high": None}
    assert told == {"rows": [nothing, [None, 1, "x", None, True]]}
