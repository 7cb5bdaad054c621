# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Long messages that are fetched before it is known where they are wanted, over a slow line."""

import time
from collections.abc import Iterator
from itertools import count

import pytest
import user_net
from user_actor import ACKED, LATER, Couple, couple

LENGTH = 300_000
OPNOTSUPP, ENOENT = 95, 2


@pytest.fixture
def slow() -> Iterator[Couple]:
    """The second endpoint keeps what comes, and knows how slow the line from the first is."""
    with user_net.pair() as nodes, couple(nodes, BEOWIRE_LINKS="udp") as two:
        user_net.shape(nodes[0], "eth0", "200mbit")
        send(two, 0)
        assert two.b.expect("pulled", tag=0)["ok"]
        assert two.a.expect("sent", op=0)["status"] == 0
        two.b.ask("policy hold", "policy")
        yield two


def send(two: Couple, tag: int) -> None:
    assert two.a.send(two.to_b, tag=tag, length=LENGTH, flags=ACKED, op=tag) == LATER
    two.b.expect("message", tag=tag)


def fetch_early(two: Couple, op: int) -> None:
    two.b.tell(f"early {op} {LENGTH}")
    pulled = two.b.expect("pulled", op=op)
    assert (pulled["status"], pulled["len"], pulled["ok"]) == (0, LENGTH, True)


HELD_S = 3.0
"""Far longer than an acknowledgement, or a timer of the engine, takes to tell of an end."""


def ends_meanwhile(two: Couple, op: int) -> bool:
    """Does this send of the first endpoint end while the two talk on, and long after that they did
    what could end it? Each message of the second brings along what it has to tell."""
    until = time.monotonic() + HELD_S
    for tag in count(1000):
        two.b.send(two.to_a, tag=tag, length=100, flags=ACKED, op=tag)
        two.a.expect("message", tag=tag)
        two.b.expect("sent", op=tag)
        if two.a.has_said("sent", op=op):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    raise AssertionError


@pytest.mark.parametrize("how", ["discarded", "fetched again"])
def test_the_sender_is_released_by_the_pull_that_follows(slow: Couple, how: str) -> None:
    send(slow, 1)
    fetch_early(slow, 5)
    assert not ends_meanwhile(slow, 1)
    slow.b.tell(f"pull 6 {0 if how == 'discarded' else LENGTH}")
    assert slow.b.expect("pulled", op=6)["status"] == 0
    assert slow.a.expect("sent", op=1)["status"] == 0
    assert slow.b.stats()["rx_early"] == 1


def test_what_is_being_fetched_cannot_be_taken_back(slow: Couple) -> None:
    send(slow, 1)
    fetch_early(slow, 5)
    assert slow.a.ask("cancel 1", "cancel")["result"] == -ENOENT
    slow.b.tell("pull 6 0")
    assert slow.a.expect("sent", op=1)["status"] == 0


def test_refused_as_long_as_the_line_is_not_known_to_be_slow() -> None:
    with user_net.pair() as nodes, couple(nodes, BEOWIRE_LINKS="udp") as two:
        two.b.ask("policy hold", "policy")
        send(two, 1)
        assert two.b.ask(f"early 5 {LENGTH}", "pull")["result"] == -OPNOTSUPP
        two.b.tell(f"pull 6 {LENGTH}")
        assert two.b.expect("pulled", op=6)["ok"]
        assert two.a.expect("sent", op=1)["status"] == 0
