# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Messages between two endpoints, over every link: eager, long, read, canceled, truncated."""

import pytest
from user_actor import ACKED, EAGER, LATER, NOW, SYNC, Couple, actor

ENOENT, EACCES, ECANCELED, EMSGSIZE, EINVAL = 2, 13, 125, 90, 22


@pytest.mark.parametrize("length", [0, 1, 8, 63, 64, 65, 1233, 4096, 9000, 16385, 65536])
def test_short_message_arrives(each_link: Couple, length: int) -> None:
    assert each_link.a.send(each_link.to_b, tag=7, length=length, flags=EAGER) == NOW
    came = each_link.b.expect("message", tag=7, len=length)
    assert came["ok"]
    assert came["imm"] == 1007
    assert came["code"] == 1
    assert not came["envelope"]


@pytest.mark.parametrize("length", [262145, 1_000_003, 10_000_000])
def test_long_message_is_pulled(each_link: Couple, length: int) -> None:
    a, b = each_link.a, each_link.b
    assert a.send(each_link.to_b, tag=9, length=length, op=3) == LATER
    assert b.expect("message", tag=9, len=length)["envelope"]
    pulled = b.expect("pulled", tag=9)
    assert pulled["status"] == 0
    assert pulled["len"] == length
    assert pulled["ok"]
    assert a.expect("sent", op=3)["status"] == 0


def test_eager_flag_sends_up_to_the_limit(each_link: Couple) -> None:
    assert each_link.a.send(each_link.to_b, tag=1, length=65536, flags=EAGER) == NOW
    came = each_link.b.expect("message", tag=1)
    assert came["ok"]
    assert came["len"] == 65536
    assert not came["envelope"]
    assert each_link.a.send(each_link.to_b, tag=1, length=65537, flags=EAGER) == -EMSGSIZE


@pytest.mark.parametrize("length", [0, 8, 5000])
def test_synchronous_send_completes_when_taken(each_link: Couple, length: int) -> None:
    a, b = each_link.a, each_link.b
    b.ask("policy hold", "policy")
    assert a.send(each_link.to_b, tag=2, length=length, flags=SYNC, op=5) == LATER
    assert b.expect("message", tag=2, len=length)["envelope"]
    assert not a.has_said("sent")
    b.tell(f"pull 6 {length}")
    pulled = b.expect("pulled", op=6)
    assert pulled["status"] == 0
    assert pulled["len"] == length
    assert pulled["ok"]
    assert a.expect("sent", op=5)["status"] == 0


@pytest.mark.parametrize("length", [0, 100, 16000])
def test_acknowledged_send_completes(each_link: Couple, length: int) -> None:
    assert each_link.a.send(each_link.to_b, tag=2, length=length, flags=ACKED, op=8) == LATER
    assert each_link.b.expect("message", tag=2)["ok"]
    assert each_link.a.expect("sent", op=8)["status"] == 0


def test_truncated_pull_releases_the_sender(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    b.ask("policy truncate 1000", "policy")
    assert a.send(each_link.to_b, tag=3, length=300_000, op=1) == LATER
    pulled = b.expect("pulled", tag=3)
    assert pulled["len"] == 1000
    assert pulled["status"] == 0
    assert pulled["ok"]
    assert a.expect("sent", op=1)["status"] == 0


def test_pull_of_more_than_there_is_gets_all(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    b.ask("policy truncate 400000", "policy")
    assert a.send(each_link.to_b, tag=3, length=300_000, op=1) == LATER
    pulled = b.expect("pulled", tag=3)
    assert pulled["len"] == 300_000
    assert pulled["status"] == 0
    assert pulled["ok"]
    assert a.expect("sent", op=1)["status"] == 0


def test_discarded_message_releases_the_sender(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    b.ask("policy discard", "policy")
    assert a.send(each_link.to_b, tag=4, length=300_000, op=2) == LATER
    b.expect("message", tag=4)
    assert a.expect("sent", op=2)["status"] == 0


def test_canceled_send_cannot_be_pulled(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    b.ask("policy hold", "policy")
    assert a.send(each_link.to_b, tag=5, length=300_000, op=2) == LATER
    b.expect("message", tag=5)
    assert a.ask("cancel 2", "cancel")["result"] == 0
    assert a.expect("sent", op=2)["status"] == -ECANCELED
    b.tell("pull 9 300000")
    assert b.expect("pulled", op=9)["status"] in (-ENOENT, -ECANCELED)


def test_order_holds_across_short_and_long(each_link: Couple) -> None:
    lengths = [8, 300_000, 0, 17_000, 3000, 50_000, 1] * 5
    for tag, length in enumerate(lengths):
        each_link.a.send(each_link.to_b, tag=tag, length=length, op=tag)
    for tag, length in enumerate(lengths):
        came = each_link.b.expect("message")
        assert (came["tag"], came["len"], came["ok"]) == (tag, length, True)
    for tag, length in enumerate(lengths):
        if length > 65536:
            assert each_link.b.expect("pulled", tag=tag)["ok"]


def test_many_messages_arrive(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    b.ask("count on", "count")
    for length in (8, 3000, 100_000):
        a.ask(f"burst {each_link.to_b} 500 {length}", "burst", sent=500)
    # A last one tells that all before it have come.
    assert a.send(each_link.to_b, tag=1, length=0, flags=SYNC, op=9999) == LATER
    a.expect("sent", op=9999)
    counted = b.ask("count off", "count")
    assert counted["bad"] == 0
    assert counted["count"] >= 1500


def test_both_directions_at_once(each_link: Couple) -> None:
    each_link.a.ask("count on", "count")
    each_link.b.ask("count on", "count")
    each_link.a.tell(f"burst {each_link.to_b} 400 20000")
    each_link.b.tell(f"burst {each_link.to_a} 400 20000")
    each_link.a.expect("burst", sent=400)
    each_link.b.expect("burst", sent=400)
    for one, to in ((each_link.a, each_link.to_b), (each_link.b, each_link.to_a)):
        one.send(to, tag=1, length=0, flags=SYNC, op=9999)
        one.expect("sent", op=9999)
    assert each_link.a.ask("count off", "count")["bad"] == 0
    assert each_link.b.ask("count off", "count")["bad"] == 0


@pytest.mark.parametrize("length", [0, 1, 5000, 1_000_000])
def test_memory_is_read(each_link: Couple, length: int) -> None:
    a = each_link.a
    assert a.ask(f"read {each_link.to_b} 77 1048576 {length} 4", "read")["result"] == 0
    pulled = a.expect("pulled", op=4)
    assert pulled["status"] == 0
    assert pulled["len"] == length
    assert pulled["ok"]


@pytest.mark.parametrize(("key", "off"), [(78, 0), (77, 4 << 20)])
def test_memory_that_is_not_offered_is_not_read(each_link: Couple, key: int, off: int) -> None:
    a = each_link.a
    assert a.ask(f"read {each_link.to_b} {key} {off} 8 4", "read")["result"] == 0
    assert a.expect("pulled", op=4)["status"] == -EACCES


def test_pressure_makes_envelopes_of_short_messages(each_link: Couple) -> None:
    a, b = each_link.a, each_link.b
    a.send(each_link.to_b, tag=1, length=8, flags=ACKED, op=1)
    a.expect("sent", op=1)
    b.tell("pressure 1")
    while a.ask(f"eager {each_link.to_b}", "eager")["max"] > 64:
        a.send(each_link.to_b, tag=2, length=8, flags=ACKED, op=2)
        a.expect("sent", op=2)
    assert a.send(each_link.to_b, tag=3, length=1000, op=3) == LATER
    assert b.expect("message", tag=3)["envelope"]
    assert a.expect("sent", op=3)["status"] == 0
    b.tell("pressure 0")
    while a.ask(f"eager {each_link.to_b}", "eager")["max"] <= 64:
        a.send(each_link.to_b, tag=4, length=8, flags=ACKED, op=4)
        a.expect("sent", op=4)


def test_message_to_oneself(nodes: tuple[str, str]) -> None:
    with actor(nodes[0]) as a:
        me = a.find(a.open())
        a.send(me, tag=1, length=8)
        assert a.expect("message", tag=1)["ok"]
        assert a.send(me, tag=2, length=1_000_000, op=2) == LATER
        assert a.expect("pulled", tag=2)["ok"]
        assert a.expect("sent", op=2)["status"] == 0


def test_wrong_arguments(each_link: Couple) -> None:
    each_link.a.send(each_link.to_b, tag=1, length=0, flags=ACKED, op=1)
    each_link.a.expect("sent", op=1)
    assert each_link.a.ask(f"send {each_link.to_b} 128 1 8 0 1", "send")["result"] == -EINVAL
    assert each_link.a.ask(f"send {each_link.to_b} 1 1 8 3 1", "send")["result"] == -EINVAL
    assert each_link.a.ask("send 99 1 1 8 0 1", "send")["result"] == -EINVAL
    assert each_link.a.ask("peer " + "00" * 64, "peer")["result"] == -EINVAL
