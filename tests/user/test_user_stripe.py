# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Endpoints over several interfaces: long messages travel by all of them, and survive a cut."""

import contextlib
from collections.abc import Callable, Iterator
from itertools import count

import pytest
import user_net
from user_actor import ACKED, LATER, NOW, Couple, actor, couple
from user_net import link_set, shape

LONG = 4_000_000
BOTH = "eth0,eth1"
PACKET = {"BEOWIRE_LINKS": "packet"}


@contextlib.contextmanager
def cluster(net: user_net.Net, slow: str | None = None) -> Iterator[tuple[str, str, str]]:
    """Two nodes, each with an interface on either of two switches; these are in one namespace."""
    one, two, switch = net.node("a"), net.node("b"), net.node("s")
    for number in (0, 1):
        ports = [f"a{number}", f"b{number}"]
        for node, port in zip((one, two), ports, strict=True):
            net.veth(node, switch, (f"eth{number}", port), 1500)
        net.bridge(switch, ports, f"br{number}")
    if slow:
        for port in ("a1", "b1"):
            shape(switch, port, slow)
    yield one, two, switch


@contextlib.contextmanager
def striped(slow: str | None = None) -> Iterator[tuple[Couple, str]]:
    """Endpoints of two such nodes that use both interfaces, and the namespace of the switches."""
    with (
        user_net.network() as net,
        cluster(net, slow) as (one, two, switch),
        couple((one, two), BEOWIRE_INTERFACES=BOTH, **PACKET) as pair,
    ):
        yield pair, switch


def carried(pair: Couple) -> dict[str, int]:
    """Payload that the first endpoint sent, by interface."""
    links = pair.a.stats()["interfaces"]
    return {name: counters["tx_payload"] for name, counters in links.items()}


def transfer(pair: Couple, op: int, length: int = LONG) -> None:
    """One long message, compared byte by byte."""
    begin(pair, op, length)
    end(pair, op)


def begin(pair: Couple, op: int, length: int = LONG) -> None:
    assert pair.a.send(pair.to_b, tag=op, length=length, flags=ACKED, op=op) == LATER


def end(pair: Couple, op: int) -> None:
    assert pair.b.expect("pulled", tag=op)["ok"]
    assert pair.a.expect("sent", op=op)["status"] == 0


TURNS = 12
"""The last turns, of which nearly all have to be as they should: one alone may be so by chance."""
NEARLY_ALL = 9
"""On a busy machine an interface may be slow for a while: its receiver has no core."""


def await_turns(good: Callable[[], bool], most: int) -> list[bool]:
    """Repeats what may be otherwise at times until nearly all of the last turns were good."""
    turns: list[bool] = []
    while len(turns) < most and sum(turns[-TURNS:]) < NEARLY_ALL:
        turns.append(good())
    return turns[-TURNS:]


@pytest.mark.parametrize("slow", [None, "100mbit"])
def test_long_messages_travel_by_both(slow: str | None) -> None:
    """Each of them, and by a slow interface less of it."""
    with striped(slow) as (pair, _):
        ops = count(1)
        told: list[dict[str, int]] = []

        def travels() -> bool:
            before = carried(pair)
            transfer(pair, next(ops))
            took = {name: n - before[name] for name, n in carried(pair).items()}
            told.append(took)
            assert sum(took.values()) >= LONG
            if slow:
                return LONG // 200 < took["eth1"] < took["eth0"]
            return min(took.values()) > LONG // 10

        turns = await_turns(travels, 480)
        assert sum(turns) >= NEARLY_ALL, told[-96:]


def test_short_messages_travel_by_one() -> None:
    """The first find out which is better; on a busy machine that may change for a while."""
    with striped() as (pair, _):
        told: list[list[int]] = []

        def by_one() -> bool:
            before = carried(pair)
            for tag in range(1, 50):
                assert pair.a.send(pair.to_b, tag=tag, length=100) == NOW
                assert pair.b.expect("message", tag=tag)["ok"]
            told.append([n - before[interface] for interface, n in carried(pair).items()])
            assert sum(told[-1]) >= 49 * 100
            return max(told[-1]) >= 40 * 100

        turns = await_turns(by_one, 48)
        assert sum(turns) >= NEARLY_ALL, told


@pytest.mark.parametrize("cut", [0, 1])
def test_a_cut_interface_is_left_and_used_again(cut: int) -> None:
    with striped("400mbit") as (pair, switch):
        transfer(pair, 1)
        begin(pair, 2, 8 * LONG)
        link_set(switch, f"b{cut}", "down")
        end(pair, 2)
        before = carried(pair)
        transfer(pair, 3)
        after = carried(pair)
        assert after[f"eth{1 - cut}"] - before[f"eth{1 - cut}"] >= LONG
        link_set(switch, f"b{cut}", "up")
        for op in range(4, 400):
            transfer(pair, op, LONG)
            if carried(pair)[f"eth{cut}"] > after[f"eth{cut}"] + LONG // 10:
                break
        else:
            raise AssertionError("the interface that returned carries nothing")


@pytest.mark.parametrize("which", [0, 1])
def test_with_a_peer_of_one_interface(which: int) -> None:
    """The one names two interfaces on one network, the other has one there."""
    with user_net.network() as net:
        nodes = net.node("a"), net.node("b")
        switch = net.node("s")
        ports = [("eth0", "a0", nodes[0]), ("eth1", "a1", nodes[0]), ("eth0", "b0", nodes[1])]
        for name, port, node in ports:
            net.veth(node, switch, (name, port), 1500)
        net.bridge(switch, [port for _, port, _ in ports])
        ends = nodes if which == 0 else nodes[::-1]
        with couple(ends, BEOWIRE_INTERFACES=BOTH, **PACKET) as pair:
            transfer(pair, 1)
            transfer(pair, 2)


def test_without_the_setting_one_is_used() -> None:
    with (
        user_net.network() as net,
        cluster(net) as (one, two, _),
        couple((one, two), **PACKET) as pair,
    ):
        transfer(pair, 1)
        assert list(carried(pair)) == ["eth0"]


def test_the_interface_that_reaches_a_peer_is_found() -> None:
    """The other node has one interface only, on the network of our second."""
    with user_net.network() as net, cluster(net) as (one, two, _):
        link_set(two, "eth0", "down")
        with couple((one, two), BEOWIRE_INTERFACES=BOTH, **PACKET) as pair:
            transfer(pair, 1)
            transfer(pair, 2)
            sent = carried(pair)
            assert sent["eth1"] >= 2 * LONG
            assert sent["eth0"] == 0


def test_none_of_them_is_there() -> None:
    with user_net.network() as net, actor(net.node("a"), BEOWIRE_INTERFACES="eth7,lo") as one:
        failed = one.open_failure()
    assert failed["result"] == -19  # ENODEV
    assert "BEOWIRE_INTERFACES=eth7,lo: none of these is an Ethernet interface" in failed["why"]
