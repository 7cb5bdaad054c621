# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What endpoints are told when a peer dies, stops, leaves or starts again."""

import time
from pathlib import Path

import pytest
import user_net
from stopped import await_stopped, go_on, stop
from user_actor import ACKED, LATER, PATIENCE_S, SYNC, Couple, actor, couple

REFUSED, TIMED_OUT, SHUT_DOWN, RESET = -111, -110, -108, -104
DEAD_S = "6"
"""After so long a peer is given up; longer than one that lives stands still on a busy machine."""


def acquaint(two: Couple) -> None:
    """Makes first contact both ways."""
    for one, to in ((two.a, two.to_b), (two.b, two.to_a)):
        one.send(to, tag=0, length=8, flags=ACKED, op=0)
        one.expect("sent", op=0)


def test_close_is_told(each_link: Couple) -> None:
    acquaint(each_link)
    each_link.b.ask("close 1000", "close")
    assert each_link.a.expect("down")["status"] == SHUT_DOWN
    assert each_link.a.send(each_link.to_b, tag=1, length=1) == SHUT_DOWN
    assert each_link.a.ask(f"status {each_link.to_b}", "status")["status"] == SHUT_DOWN


def test_what_was_sent_arrives_before_the_close(each_link: Couple) -> None:
    """A last message and then close: nothing is lost."""
    acquaint(each_link)
    each_link.b.tell(f"send {each_link.to_a} 1 50 9000 0 0")
    each_link.b.tell("close 5000")
    assert each_link.a.expect("message", tag=50)["ok"]
    assert each_link.a.expect("down")["status"] == SHUT_DOWN


def test_close_waits_for_pulls_in_the_middle(each_link: Couple) -> None:
    acquaint(each_link)
    each_link.a.send(each_link.to_b, tag=5, length=8_000_000, op=5)
    each_link.a.tell("close 20000")
    assert each_link.b.expect("pulled", tag=5)["ok"]
    assert each_link.a.expect("sent", op=5)["status"] == 0
    each_link.a.expect("close")


def test_exit_without_close_is_told(each_link: Couple) -> None:
    """A message was not yet pulled; the pull fails, since the peer is known to be gone."""
    acquaint(each_link)
    each_link.b.ask("policy hold", "policy")
    each_link.a.send(each_link.to_b, tag=5, length=3_000_000, op=5)
    each_link.b.expect("message", tag=5)
    each_link.a.tell("exit 0")
    assert each_link.b.expect("down")["status"] in (REFUSED, SHUT_DOWN)
    each_link.b.tell("pull 6 3000000")
    assert each_link.b.expect("pull", tag=5)["result"] in (REFUSED, SHUT_DOWN)


def test_exit_with_an_error_is_no_good_order(each_link: Couple) -> None:
    """Whoever waits for nothing of that peer in particular must learn that it failed."""
    acquaint(each_link)
    each_link.a.tell("exit 3")
    assert each_link.b.expect("down")["status"] == REFUSED


def test_exit_in_the_middle_of_a_pull_is_told(each_link: Couple) -> None:
    """Who pulls stands still meanwhile, or all may have arrived before."""
    acquaint(each_link)
    each_link.b.ask("policy stop", "policy")
    assert each_link.a.send(each_link.to_b, tag=5, length=50_000_000, op=5) == LATER
    await_stopped(each_link.b.pid)
    each_link.a.tell("exit 0")
    each_link.a.process.wait(PATIENCE_S)
    go_on(each_link.b.pid)
    assert each_link.b.expect("pulled", tag=5)["status"] in (REFUSED, SHUT_DOWN)
    assert each_link.b.expect("down")["status"] in (REFUSED, SHUT_DOWN)


def test_killed_peer_is_refused_at_once_while_another_endpoint_lives_there(
    nodes: tuple[str, str],
) -> None:
    """Raw frames: a living endpoint of the node answers for the dead one."""
    with actor(nodes[1], "beta", BEOWIRE_LINKS="packet") as witness:
        witness.open()
        with couple(nodes, BEOWIRE_LINKS="packet") as two:
            acquaint(two)
            two.b.process.kill()
            two.b.process.wait()
            assert two.a.send(two.to_b, tag=1, length=100, flags=SYNC, op=4) == LATER
            # The dead timeout would end it with another status.
            assert two.a.expect("sent", op=4)["status"] == REFUSED
            assert two.a.expect("down")["status"] == REFUSED
        assert witness.stats()["refusals_tx"] >= 1


def test_a_witness_that_comes_later_answers_too(nodes: tuple[str, str]) -> None:
    """The endpoint that kept the watch died with its neighbour; a new one takes over."""
    with couple(nodes, BEOWIRE_LINKS="packet") as two:
        acquaint(two)
        two.b.process.kill()
        two.b.process.wait()
        assert two.a.send(two.to_b, tag=1, length=100, flags=SYNC, op=4) == LATER
        with actor(nodes[1], "beta", BEOWIRE_LINKS="packet") as witness:
            witness.open()
            assert two.a.expect("sent", op=4)["status"] == REFUSED


def test_killed_peer_is_refused_by_its_kernel_over_udp(nodes: tuple[str, str]) -> None:
    with couple(nodes, BEOWIRE_LINKS="udp") as two:
        acquaint(two)
        two.b.process.kill()
        two.b.process.wait()
        assert two.a.send(two.to_b, tag=1, length=100, flags=SYNC, op=4) == LATER
        assert two.a.expect("sent", op=4)["status"] == REFUSED
        assert two.a.expect("down")["status"] == REFUSED


def test_killed_peer_is_believed_of_its_kernel_with_a_key(
    nodes: tuple[str, str], tmp_path: Path
) -> None:
    """Its kernel's messages are not signed; that nobody answers what is asked meanwhile tells."""
    key = tmp_path / "key"
    key.touch(0o600)
    key.write_text("42" * 32 + "\n")
    with couple(nodes, BEOWIRE_LINKS="udp", BEOWIRE_KEY=str(key)) as two:
        acquaint(two)
        two.b.process.kill()
        two.b.process.wait()
        assert two.a.send(two.to_b, tag=1, length=100, flags=SYNC, op=4) == LATER
        assert two.a.expect("sent", op=4)["status"] == REFUSED
        assert two.a.expect("down")["status"] == REFUSED


def test_killed_local_peer_is_told_without_traffic(nodes: tuple[str, str]) -> None:
    with couple((nodes[0], nodes[0]), BEOWIRE_LINKS="local") as two:
        acquaint(two)
        two.b.process.kill()
        assert two.a.expect("down")["status"] == REFUSED


@pytest.mark.parametrize("link", ["packet", "udp"])
def test_peer_that_is_gone_with_its_node_times_out(link: str) -> None:
    with (
        user_net.pair() as nodes,
        couple(nodes, BEOWIRE_LINKS=link, BEOWIRE_DEAD_TIMEOUT=DEAD_S) as two,
    ):
        acquaint(two)
        user_net.link_set(nodes[1], "eth0", "down")
        assert two.a.send(two.to_b, tag=1, length=300_000, op=4) == LATER
        assert two.a.expect("sent", op=4)["status"] == TIMED_OUT
        assert two.a.expect("down")["status"] == TIMED_OUT


def test_peer_that_never_was_times_out(nodes: tuple[str, str]) -> None:
    with couple(nodes, BEOWIRE_LINKS="packet", BEOWIRE_DEAD_TIMEOUT="1") as two:
        two.b.process.kill()
        two.b.process.wait()
        assert two.a.send(two.to_b, tag=1, length=10, flags=ACKED, op=4) == LATER
        assert two.a.expect("sent", op=4)["status"] in (TIMED_OUT, REFUSED)


def test_watched_peer_is_missed_without_traffic(nodes: tuple[str, str]) -> None:
    with couple(nodes, BEOWIRE_LINKS="packet", BEOWIRE_DEAD_TIMEOUT=DEAD_S) as two:
        acquaint(two)
        two.a.ask(f"watch {two.to_b} 1", "watch")
        two.b.process.kill()
        assert two.a.expect("down")["status"] in (TIMED_OUT, REFUSED)


def test_stopped_peer_is_waited_for(each_link: Couple) -> None:
    acquaint(each_link)
    stop(each_link.b.pid)
    for tag in range(10):
        each_link.a.send(each_link.to_b, tag=tag, length=1000, flags=ACKED, op=tag)
    each_link.a.send(each_link.to_b, tag=99, length=500_000, op=99)
    time.sleep(3)
    assert not each_link.a.has_said("down")
    go_on(each_link.b.pid)
    for tag in range(10):
        assert each_link.b.expect("message", tag=tag)["ok"]
        assert each_link.a.expect("sent", op=tag)["status"] == 0
    assert each_link.b.expect("pulled", tag=99)["ok"]


@pytest.mark.long
def test_peer_stopped_for_30_s_is_survived(each_link: Couple) -> None:
    acquaint(each_link)
    stop(each_link.b.pid)
    each_link.a.send(each_link.to_b, tag=99, length=500_000, op=99)
    time.sleep(30)
    go_on(each_link.b.pid)
    assert each_link.b.expect("pulled", tag=99)["ok"]
    assert each_link.a.expect("sent", op=99)["status"] == 0


def test_new_endpoint_is_a_new_peer(nodes: tuple[str, str]) -> None:
    """The next incarnation gets its messages; the old number stays down."""
    with couple(nodes) as two:
        acquaint(two)
        two.b.ask("close 1000", "close")
        assert two.a.expect("down", peer=two.to_b)["status"] == SHUT_DOWN
        again = two.a.find(two.b.open())
        assert again != two.to_b
        two.a.send(again, tag=6, length=10)
        assert two.b.expect("message", tag=6)["ok"]
        assert two.a.send(two.to_b, tag=1, length=1) == SHUT_DOWN


def test_peer_known_by_its_message_has_the_number_of_its_address(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], "alpha") as a, actor(nodes[1], "beta") as b:
        addr_a, addr_b = a.open(), b.open()
        b.send(b.find(addr_a), tag=1, length=8)
        came = a.expect("message", tag=1)
        assert a.find(addr_b) == came["peer"]
        a.send(came["peer"], tag=2, length=8)
        assert b.expect("message", tag=2)["ok"]


def test_answer_to_a_peer_known_by_its_message_only(nodes: tuple[str, str]) -> None:
    for link in ("packet", "udp"):
        with (
            actor(nodes[0], "alpha", BEOWIRE_LINKS=link) as a,
            actor(nodes[1], "beta", BEOWIRE_LINKS=link) as b,
        ):
            addr_a = a.open()
            b.open()
            b.send(b.find(addr_a), tag=1, length=8)
            came = a.expect("message", tag=1)
            a.send(came["peer"], tag=2, length=300_000, op=1)
            assert b.expect("pulled", tag=2)["ok"]
