# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What spoils figures of load is told, each by itself, and nothing where all is well."""

from typing import Any

import pytest
from beowire.bench.load import health
from beowire.bench.load.runs import Phase
from load_rounds import both, idle, load, plan


def phase(**more: Any) -> Phase:
    return load([8] * 100 + [10**6] * 99, [1000] * 100 + [10**9] * 99, **more)


def complaints(tcp: Phase, **more: Any) -> list[str]:
    """Of a round whose TCP had this phase, in ten seconds."""
    alone = idle({8: [1]})
    return health.complaints([both([alone, tcp], [alone, phase()])], plan(**more))


def test_all_is_well() -> None:
    assert complaints(phase()) == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"held": 3}, "TCP at 50%: did not keep up: 3 messages were held"),
        ({"reached_bytes": 10**7, "end_ns": 13 * 10**9}, "TCP at 50%: fell behind: 10%"),
        ({"late_p99_ns": 101}, "processors were a limit"),
        ({"away_share": 0.06}, "did not for 6% of its time"),
        ({"inside_share": 0.06}, "busy for 6% of its time in calls of MPI"),
    ],
)
def test_each_is_told(more: dict[str, Any], why: str) -> None:
    (told,) = complaints(phase(**more))
    assert why in told


@pytest.mark.parametrize(
    "more",
    [
        {"late_p99_ns": 100},  # a tenth of the short messages' tail
        {"away_share": 0.05, "inside_share": 0.05},
        {"reached_bytes": 10**7, "end_ns": 12 * 10**9},  # a long message at the end of the time
        {"end_ns": 99 * 10**9},
    ],
)
def test_what_is_within_bounds_is_not(more: dict[str, Any]) -> None:
    assert complaints(phase(**more)) == []


def test_lateness_in_calls_is_not_blamed_on_processors() -> None:
    (told,) = complaints(phase(inside_share=0.2, late_p99_ns=10**9))
    assert "calls of MPI" in told


def test_bulk_must_outlast_the_messages() -> None:
    """They are measured until 11 s."""
    short, long = phase(bulk_ns=10.9e9), phase(bulk_ns=11.1e9)
    for tcp, count in ((short, 1), (long, 0)):
        told = health.complaints([both([tcp], [long])], plan(pattern="beside", loads=(0.0,)))
        assert len(told) == count
        assert all("TCP: the bulk transfer ended before" in each for each in told)


def test_each_load_is_judged_by_its_own_phase() -> None:
    phases = [idle({8: [1]}), phase(), phase(held=1)]
    told = health.complaints([both(phases, [*phases[:2], phase()])], plan(loads=(0.5, 0.8)))
    assert len(told) == 1
    assert told[0].startswith("TCP at 80%")
