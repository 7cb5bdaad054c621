# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Long messages that are fetched before it is known where they are wanted, over a slow line."""

import time
from collections.abc import Iterator

import pytest
import user_net
from user_actor import ACKED, LATER, Actor, Couple, couple

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


def has_ended(actor: Actor, op: int) -> bool:
    """Has this send ended by now?"""
    time.sleep(0.2)
    return actor.has_said("sent", op=op)


@pytest.mark.parametrize("how", ["discarded", "fetched again"])
def test_the_sender_is_released_by_the_pull_that_follows(slow: Couple, how: str) -> None:
    send(slow, 1)
    fetch_early(slow, 5)
    assert not has_ended(slow.a, 1)
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
