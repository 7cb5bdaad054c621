# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where checks draw the line: what lies just inside their bounds is good, what lies just outside is
a finding. All of it is recorded, so no namespace is needed."""

from collections.abc import Callable
from typing import Any

import pytest
from beowire.doctor import buffers
from beowire.doctor.examine import State, choose, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from good_node import GoodNode
from world import Layered

_CPU = "/sys/devices/system/cpu"


def _sleep(good: GoodNode, wake_us: int) -> None:
    good.files[f"{_CPU}/cpu0/cpuidle/state2/latency"] = f"{wake_us}\n"
    good.files[f"{_CPU}/cpu0/cpuidle/state2/disable"] = "0\n"


def _stolen(good: GoodNode, ticks: int) -> None:
    """Of 100,000 with these; what guests got, behind it, is part of the first number already."""
    good.files["/proc/stat"] = f"cpu  {20_000 - ticks} 0 0 80000 0 0 0 {ticks} 5000 0\n"


def _offset(good: GoodNode, offset_us: float) -> None:
    good.answers["clock"]["offset_us"] = offset_us


def _swapped(good: GoodNode, used_kb: int) -> None:
    good.files["/proc/meminfo"] = (
        f"MemTotal: 1000000 kB\nSwapTotal: 500000 kB\nSwapFree: {500_000 - used_kb} kB\n"
    )


def _ring(good: GoodNode, entries: int) -> None:
    good.ethtool["nic0"]["rings"]["rx"] = entries


def _lost(good: GoodNode, counted: tuple[int, int]) -> None:
    lost, frames = counted
    good.link("nic0")["counters"] |= {"rx_missed_errors": lost, "rx_packets": frames}


BOUNDS: dict[str, tuple[Callable[[GoodNode, Any], None], tuple[Any, ...], tuple[Any, ...]]] = {
    "cpu.sleep": (_sleep, (10,), (11,)),
    "cpu.stolen": (_stolen, (0, 1000), (1001,)),
    "clock.offset": (_offset, (1000.0, -1000.0), (1001.0, -1001.0)),
    "memory.swapped": (_swapped, (0, 10_000), (10_001,)),
    "rings.receive": (_ring, (4096, 3840), (3839, 0)),
    "rings.lost": (_lost, ((9, 0), (100, 10**8)), ((10, 0), (101, 10**8))),
}
"""What records a value, values inside, and values outside."""


@pytest.mark.parametrize("name", BOUNDS)
def test_the_bound_is_where_it_is_said_to_be(name: str) -> None:
    record, inside, outside = BOUNDS[name]
    told = {}
    for value in (*inside, *outside):
        good = GoodNode("latency")
        record(good, value)
        done = examine(Node(Layered(good), Goal.LATENCY), [ALL[name]], ["nic0"])
        (told[value],) = {each.state for each in done.outcomes}
    assert told == dict.fromkeys(inside, State.GOOD) | dict.fromkeys(outside, State.BAD)


def test_buffers_hold_twice_what_is_under_way() -> None:
    """10 Gbit/s for 100 ms are 125 MB."""
    node = Node(Layered(GoodNode("wan")), Goal.WAN, round_trip_s=0.1)
    choose(node, ["nic0"])
    assert buffers.needed_bytes(node) == 250_000_000
