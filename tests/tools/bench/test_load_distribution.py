# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Distributions of message sizes: their means, quantiles and classes, and files that hold none."""

from pathlib import Path

import numpy as np
import pytest
from beowire.bench.load import distribution
from beowire.bench.load.distribution import Distribution
from beowire.errors import BeowireError
from hypothesis import given
from hypothesis import strategies as some


@some.composite
def distributions(draw: some.DrawFn) -> Distribution:
    sizes = sorted(draw(some.lists(some.integers(1, 10**6), min_size=1, max_size=9)))
    shares = sorted(draw(some.lists(some.floats(0, 1), min_size=len(sizes), max_size=len(sizes))))
    shares[-1] = 1.0
    return Distribution("any", "", tuple(zip(sizes, shares, strict=True)))


@given(distributions())
def test_the_mean_is_that_of_the_quantiles(made: Distribution) -> None:
    shares = (np.arange(20000) + 0.5) / 20000
    mean = float(np.mean([made.quantile(share) for share in shares]))
    reach = made.quantile(1) - made.quantile(0)
    assert made.mean_bytes == pytest.approx(mean, abs=1 + reach / 2000)


@given(distributions(), some.integers(1, 20))
def test_classes_rise_to_the_longest(made: Distribution, count: int) -> None:
    bounds = made.classes(count)
    assert bounds == sorted(set(bounds))
    assert len(bounds) <= count
    assert bounds[-1] == made.quantile(1)


def test_by_hand() -> None:
    """A quarter has 10 bytes, a half lies evenly from there to 30, a quarter from there to 110."""
    made = Distribution("", "", ((10, 0.25), (30, 0.75), (110, 1.0)))
    assert made.mean_bytes == pytest.approx(0.25 * 10 + 0.5 * 20 + 0.25 * 70)
    assert [made.quantile(share) for share in (0, 0.25, 0.5, 0.75, 0.875, 1)] == [
        10,
        10,
        20,
        30,
        70,
        110,
    ]
    assert made.classes(4) == [10, 20, 30, 110]
    assert made.argument() == "0:10,0.25:10,0.75:30,1:110"


def test_many_of_one_size_are_one_class() -> None:
    made = Distribution("", "", ((8, 0.5), (100, 1.0)))
    assert made.classes(10) == [8, 26, 45, 63, 82, 100]
    assert distribution.constant(8).classes(10) == [8]
    assert distribution.constant(8).mean_bytes == 8


@pytest.mark.parametrize(("name", "mean_bytes"), [("w3", 2928), ("w4", 127797), ("w5", 2564690)])
def test_the_published_ones(name: str, mean_bytes: int) -> None:
    """The means are those of the whole tables, of which these are some points."""
    made = distribution.chosen(name)
    assert made.mean_bytes == pytest.approx(mean_bytes, rel=0.12)
    assert "SIGCOMM 2018" in made.source
    assert set(distribution.published()) == {"w3", "w4", "w5"}


def test_uniform() -> None:
    assert distribution.chosen("uniform").points == ((1, 0.0), (65536, 1.0))
    made = distribution.chosen("uniform:1k-3k")
    assert (made.mean_bytes, made.quantile(0.5)) == (2048, 2048)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('source = "me"\npoints = [[8, 0.5], [64, 1]]\n')
    made = distribution.chosen(str(file))
    assert (made.name, made.source, made.points) == ("mine", "me", ((8, 0.5), (64, 1.0)))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("points = [", "is no TOML"),
        ("", "it has no points"),
        ("points = []", "it has no points"),
        ("points = [[8]]", r"\[8\] is no point"),
        ("points = [[8, true]]", "is no point"),
        ("points = [[8.5, 1]]", "is no point"),
        ("points = [[0, 1]]", "0 bytes are none"),
        ("points = [[99999999, 1]]", "more than 64 MiB"),
        ("points = [[8, 2]]", "2 is no share"),
        ("points = [[8, 0.5]]", "its last share is not 1"),
        ("points = [[8, 0.5], [4, 1]]", "do not rise"),
        ("points = [[4, 0.5], [8, 0.4], [9, 1]]", "do not rise"),
        (f"points = {[[8, 1]] * 256}", "more than 255 points"),
    ],
)
def test_what_is_no_distribution(text: str, why: str, tmp_path: Path) -> None:
    file = tmp_path / "sizes.toml"
    file.write_text(text)
    with pytest.raises(BeowireError, match=why):
        distribution.chosen(str(file))


@pytest.mark.parametrize("text", ["w9", "uniform:4k", "uniform:0-8", "uniform:9-8", "uniform:a-b"])
def test_names_that_mean_nothing(text: str) -> None:
    with pytest.raises(BeowireError, match="--sizes"):
        distribution.chosen(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="cannot be read"):
        distribution.chosen(str(tmp_path))
