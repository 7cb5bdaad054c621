# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Instructions for a message, of libbeowire and the provider: a guard that noise does not touch.

`steps`, and `provider_steps` for the provider, has the two ends of a conversation in one process
and a clock that does not depend on the machine; valgrind counts. Two runs with different numbers
of messages make what one message costs. How often a round finds nothing, since the kernel has not
delivered yet, is chance: each run tells how many such rounds it made, one with many more of them
makes what one costs, and they are taken out. More than 2 % above the budget in
budgets.toml fails. A new budget is written by

    BEOWIRE_TEST_NEW_BUDGETS="why" ./beowire test tests/speed
"""

import functools
import math
import os
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

import budgets
import pytest
from beowire import namespaces, places

KEY = str(places.build_dir() / "speed.key")
"""A file, for runs with a cluster's key."""
NETWORK = """
ip link set lo up mtu $1
ip link add pair-a mtu $1 type veth peer name pair-b mtu $1
ip link set pair-a up
ip link set pair-b up
shift
exec "$@"
"""
UDP = {"BEOWIRE_LINKS": "udp", "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}
PACKET = {
    # A node's messages to itself go by the local link; there are none.
    "BEOWIRE_LINKS": "packet,local",
    "STEPS_INTERFACE_A": "pair-a",
    "STEPS_INTERFACE_B": "pair-b",
}
LINKS = {
    # Which way long messages go is not left to a measurement.
    "local": {"BEOWIRE_LINKS": "local", "BEOWIRE_LOCAL_CMA": "on"},
    "udp": UDP,
    "packet": PACKET,
    "udp with a key": {**UDP, "BEOWIRE_KEY": KEY},
    "packet with a key": {**PACKET, "BEOWIRE_KEY": KEY},
}
SIZES = {8: (100, 1100), 4096: (100, 300), 1 << 20: (4, 12)}
"""Bytes of a message; messages each way in the two runs."""
PROVIDER = "provider_steps"
IDLE = 20000
"""Rounds without anything that such a run makes."""
STILL = 20000
"""STILL_MAX of the programs: so many rounds without anything may pass before the clock goes on."""
PAIRS = 10
LIMIT_S = 300


@dataclass(frozen=True)
class Run:
    """What a whole run of `steps` took."""

    instructions: int
    idle: int
    """Rounds that found nothing."""


def counted(
    program: str, link: str, mtu_bytes: int, message_bytes: int, count: int, idle: int = 0
) -> Run:
    """A run of `count` messages each way."""
    valgrind = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=no",
        "--cachegrind-out-file=/dev/null",
    ]
    if "BEOWIRE_KEY" in LINKS[link]:
        Path(KEY).write_text("42" * 32 + "\n")
        Path(KEY).chmod(0o600)
    numbers = [str(each) for each in (message_bytes, count, idle)]
    call = [str(places.product(f"tests/speed/{program}")), *numbers]
    done = subprocess.run(
        ["unshare", "--net", "sh", "-ec", NETWORK, "sh", str(mtu_bytes), *valgrind, *call],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        # Without looks at how busy the machine is, whose cost depends on the machine.
        env={**os.environ, "LC_ALL": "C", "BEOWIRE_WAIT": "spin", **LINKS[link]},
    )
    found = re.search(r"I +refs: +([\d,]+)", done.stderr)
    assert done.returncode == 0, done.stderr
    assert found, done.stderr
    return Run(int(found[1].replace(",", "")), int(done.stdout))


def pair(
    program: str, link: str, mtu_bytes: int, message_bytes: int, counts: tuple[int, int], idle: int
) -> tuple[Run, Run]:
    """Two runs that differ in their messages alone, and in `idle` rounds of the second one. The
    ends find each other at once or, as chance will have it, when the clock goes on; rounds of that
    time cost more than others."""
    for _ in range(PAIRS):
        less = counted(program, link, mtu_bytes, message_bytes, counts[0])
        more = counted(program, link, mtu_bytes, message_bytes, counts[1], idle)
        if abs(more.idle - less.idle - idle) < STILL:
            return less, more
    pytest.fail(f"of {PAIRS} pairs of runs all differ in how the ends found each other")


@functools.cache
def of_a_round(program: str, link: str, mtu_bytes: int) -> float:
    """Instructions for a round that finds nothing, which no message's size changes."""
    size = min(SIZES)
    few = SIZES[size][0]
    without, idle = pair(program, link, mtu_bytes, size, (few, few), IDLE)
    return (idle.instructions - without.instructions) / (idle.idle - without.idle)


def cost(program: str, link: str, mtu_bytes: int, message_bytes: int) -> int:
    """Instructions for one message, sent and received, without rounds that found nothing."""
    few, many = SIZES[message_bytes]
    less, more = pair(program, link, mtu_bytes, message_bytes, (few, many), 0)
    waited = (more.idle - less.idle) * of_a_round(program, link, mtu_bytes)
    return round((more.instructions - less.instructions - waited) / (2 * (many - few)))


def typical(program: str, link: str, mtu_bytes: int, message_bytes: int, limit: float) -> int:
    """A cost that does not exceed the limit if one is found at once; else the median of three, as
    how acknowledgements ride on messages is still chance, to 1 % at 8 B. A new budget is a median,
    too."""
    found = [cost(program, link, mtu_bytes, message_bytes)]
    if found[0] > limit or limit == math.inf:
        found += [cost(program, link, mtu_bytes, message_bytes) for _ in range(2)]
    return int(statistics.median_high(found))


def within_budget(
    program: str, link: str, mtu_bytes: int, message_bytes: int, prefix: str = ""
) -> None:
    """The program's messages cost no more than the budget of this name."""
    refusal = namespaces.refusal()
    if refusal:
        pytest.skip(refusal)
    name = f"{prefix}{link}, MTU {mtu_bytes}, {message_bytes} B"
    owner = budgets.compiler()
    limit = budgets.limit(owner, name)
    found = typical(program, link, mtu_bytes, message_bytes, limit)
    budgets.judge(owner, name, found, limit)


@pytest.mark.parametrize("message_bytes", SIZES)
@pytest.mark.parametrize(
    ("link", "mtu_bytes"),
    [("local", 1500), ("udp", 1500), ("udp", 9000), ("packet", 1500), ("packet", 9000)],
)
def test_a_message_costs_no_more_than_its_budget(
    link: str, mtu_bytes: int, message_bytes: int
) -> None:
    within_budget("steps", link, mtu_bytes, message_bytes)


@pytest.mark.parametrize("link", ["udp with a key", "packet with a key"])
def test_a_short_message_with_a_key_costs_no_more_than_its_budget(link: str) -> None:
    """What each frame's keyed check takes is the difference to the budget without a key."""
    within_budget("steps", link, 1500, 8)


@pytest.mark.parametrize("message_bytes", SIZES)
@pytest.mark.parametrize("link", ["local", "udp", "packet"])
def test_a_message_of_the_provider_costs_no_more_than_its_budget(
    link: str, message_bytes: int
) -> None:
    """Tagged, through fi_tsend(), fi_trecv() and fi_cq_read()."""
    if not places.product(f"tests/speed/{PROVIDER}").exists():
        pytest.skip("libfabric's headers are not here")
    within_budget(PROVIDER, link, 1500, message_bytes, "provider over ")
