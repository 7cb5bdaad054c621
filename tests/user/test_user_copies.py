# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Long messages that are copied where a pull takes much longer than a copy."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from stopped import go_on, stop
from user_actor import ACKED, LATER, NOW, SYNC, Couple, couple

LENGTH = 300_000
ENOENT = 2
NO_COPIES = {"BEOWIRE_SEND_COPIES": "0"}
DEAD_S = "6"  # longer than who lives stands still on a busy machine


@contextmanager
def slow(nodes: tuple[str, str], link: str = "packet", **variables: str) -> Iterator[Couple]:
    """Two endpoints, the second of which pulls when told; once it has taken its time."""
    with couple(nodes, BEOWIRE_LINKS=link, **variables) as two:
        two.b.ask("policy hold", "policy")
        assert two.a.send(two.to_b, tag=0, length=LENGTH, op=1) == LATER
        two.b.expect("message", tag=0)
        time.sleep(0.1)
        pull(two, 1)
        assert two.a.expect("sent", op=1)["status"] == 0
        yield two


def pull(two: Couple, op: int) -> None:
    """The oldest message is fetched, whole and unharmed."""
    two.b.tell(f"pull {op} {LENGTH}")
    pulled = two.b.expect("pulled", op=op)
    assert (pulled["status"], pulled["len"], pulled["ok"]) == (0, LENGTH, True)


@pytest.mark.parametrize("link", ["packet", "udp"])
def test_a_copy_is_sent_when_pulls_take_long(nodes: tuple[str, str], link: str) -> None:
    with slow(nodes, link) as two:
        for tag in (1, 2, 3):
            assert two.a.send(two.to_b, tag=tag, length=LENGTH, op=tag) == NOW
            two.b.expect("message", tag=tag)
        for tag in (1, 2, 3):
            pull(two, tag)
        assert not two.a.has_said("sent")
        assert two.a.stats()["tx_copies"] == 3


def test_copies_take_no_more_than_they_may(nodes: tuple[str, str]) -> None:
    with slow(nodes, BEOWIRE_SEND_COPIES=str(2 * LENGTH)) as two:
        results = [two.a.send(two.to_b, tag=n, length=LENGTH, op=n) for n in (1, 2, 3)]
        assert results == [NOW, NOW, LATER]
        for tag in (1, 2, 3):
            two.b.expect("message", tag=tag)
            pull(two, tag)
        two.a.expect("sent", op=3)
        assert two.a.send(two.to_b, tag=4, length=LENGTH, op=4) == NOW
        two.b.expect("message", tag=4)
        pull(two, 4)


@pytest.mark.parametrize(("flags", "variables"), [(SYNC, {}), (SYNC | ACKED, {}), (0, NO_COPIES)])
def test_no_copy_of_what_tells_its_end(
    nodes: tuple[str, str], flags: int, variables: dict[str, str]
) -> None:
    with slow(nodes, **variables) as two:
        assert two.a.send(two.to_b, tag=1, length=LENGTH, op=2, flags=flags) == LATER
        two.b.expect("message", tag=1)
        pull(two, 2)
        assert two.a.expect("sent", op=2)["status"] == 0


def test_a_copy_arrives_though_its_sender_closes(nodes: tuple[str, str]) -> None:
    with slow(nodes) as two:
        assert two.a.send(two.to_b, tag=1, length=LENGTH, op=1) == NOW
        two.a.tell("close 10000")
        two.b.expect("message", tag=1)
        pull(two, 1)
        assert two.a.leave() == 0


def test_what_was_done_is_not_taken_back_for_another_send(
    nodes: tuple[str, str],
) -> None:
    """Whose operation has the address of the one that is done."""
    with slow(nodes) as two:
        stop(two.b.pid)
        assert two.a.send(two.to_b, tag=1, length=LENGTH, op=1) == NOW
        assert two.a.send(two.to_b, tag=2, length=100, op=2, flags=ACKED) == LATER
        assert two.a.ask("cancel 2", "cancel")["result"] == -ENOENT
        go_on(two.b.pid)
        two.b.expect("message", tag=1)
        pull(two, 1)
        assert two.a.expect("sent", op=2)["status"] == 0


def test_copies_for_a_dead_peer_are_given_up(nodes: tuple[str, str]) -> None:
    with slow(nodes, BEOWIRE_DEAD_TIMEOUT=DEAD_S) as two:
        assert two.a.send(two.to_b, tag=1, length=LENGTH, op=1) == NOW
        two.a.ask(f"watch {two.to_b} 1", "watch")
        two.b.process.kill()
        two.a.expect("down")
        assert two.a.leave() == 0
