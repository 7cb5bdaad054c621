# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Plans of load: gaps that make the share of the line, the program's arguments, what is refused."""

import pytest
from beowire.bench.load import plan as plans
from beowire.bench.load import runs
from beowire.bench.load.distribution import chosen, constant
from beowire.errors import BeowireError
from load_rounds import plan


def test_gaps_by_hand() -> None:
    """1000 bytes take 8 us; at half of the line one comes every 16 us, from each of three senders
    every 48 us, or where each has its share of the traffic from each of four every 16 us."""
    assert plan().gaps_ns == [48_000]
    assert plan(loads=(0.5, 0.8)).gaps_ns == [48_000, 30_000]
    assert plan(to="all").gaps_ns == [16_000]
    assert plan(rate_bits=10**8).gaps_ns == [480_000]


def test_gaps_make_the_load() -> None:
    made = plan(chosen("w4"), loads=(0.8,), nodes=9)
    messages_per_s = made.senders * 1e9 / made.gaps_ns[0]
    assert 8 * messages_per_s * made.sizes.mean_bytes == pytest.approx(0.8e9, rel=1e-6)
    assert made.offered(0.8e9 / 8 * made.seconds) == pytest.approx(0.8)
    assert plan(to="all").offered(4 * 1e9 / 8 * 10) == pytest.approx(1)


def test_a_wave_takes_its_fair_time() -> None:
    made = plan(constant(256 << 10), pattern="incast", loads=(0.0,), nodes=17)
    assert made.fair_ns == pytest.approx(16 * (256 << 10) * 8)
    assert made.gaps_ns == [round(8 * made.fair_ns)]
    assert "--waves" in made.program_arguments(1)
    assert made.idle == []


def test_bulk_outlasts_the_messages() -> None:
    made = plan(constant(8), pattern="beside", loads=(0.0,), nodes=2, per_second=2000)
    assert made.gaps_ns == [500_000]
    assert made.bulk_count * plans.BULK_BYTES * 8 / 1e9 > 1.2 * made.seconds
    assert f"{1 << 20}:{made.bulk_count}" in made.program_arguments(1)


def test_sizes_alone_span_the_distribution() -> None:
    made = plan(chosen("w4"))
    sizes = [size for size, _ in made.idle]
    assert (sizes[0], sizes[-1]) == (53, 10_000_000)
    assert sizes == sorted(set(sizes))
    assert all(gap > 2 * 8 * size for size, gap in made.idle)
    assert plan().idle[0][0] == 1000
    assert len(plan().idle) == 1


def test_rounds_draw_differently_and_transports_alike() -> None:
    words = [plan().program_arguments(number) for number in (1, 2)]
    assert words[0] != words[1]
    assert words[0] == plan(tcp_stack="ucx").program_arguments(1)
    assert "--answers" not in words[0]
    assert "--answers" in plan(answers=True).program_arguments(1)


def test_loads() -> None:
    assert plans.read_loads("50, 80") == (0.5, 0.8)
    assert plans.read_loads("120,0.5") == (1.2, 0.005)
    for text in ("", "fast", "0", "50,-1", "201", "nan", ",".join(["1"] * 17)):
        with pytest.raises(BeowireError, match="--loads"):
            plans.read_loads(text)


def test_what_cannot_be_measured() -> None:
    plans.check(plan())
    with pytest.raises(BeowireError, match="needs 3 nodes or more; there are 2"):
        plans.check(plan(pattern="incast", nodes=2))
    with pytest.raises(BeowireError, match="needs 2 nodes"):
        plans.check(plan(nodes=1))
    with pytest.raises(BeowireError, match="A wave comes every"):
        plans.check(plan(constant(10_000), pattern="incast", loads=(0.0,), seconds=0.001))
    with pytest.raises(BeowireError, match="more than 4,000,000"):
        plans.check(plan(constant(1), rate_bits=10**10))


def test_a_failure_does_not_tell_all_messages() -> None:
    told = runs.shortened('ended with 1:\n{"phase": "idle", "ns": [' + "1," * 9999 + "\nsorry")
    assert len(told) < 400
    assert told.splitlines()[::2] == ["ended with 1:", "sorry"]


@pytest.mark.parametrize(("ranks", "cores", "naps"), [(4, 2, True), (2, 2, False), (4, 64, False)])
def test_ranks_sleep_where_they_share_cores(ranks: int, cores: int, naps: bool) -> None:
    assert bool(plans.nap_us(ranks, cores)) is naps
