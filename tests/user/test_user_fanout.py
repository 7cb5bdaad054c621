# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Endpoints whose packet sockets form a fan-out group: who joins, and that every frame finds its
endpoint whoever leaves, in whatever way."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import user_net
from stopped import go_on, stop
from user_actor import ACKED, SYNC, Actor, actor

REFUSED = -111
RAW = {"BEOWIRE_LINKS": "packet"}


def joined(one: Actor) -> int:
    """The number of the endpoint's sockets that are members of a group."""
    return int(one.stats()["fanout_links"])


def await_(what: Callable[[], bool]) -> None:
    """Until it is so; joining takes a grace period of the kernel or two."""
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def await_group(*members: Actor) -> None:
    await_(lambda: all(joined(each) == 1 for each in members))


@contextlib.contextmanager
def crowd(node: str, n: int, **variables: str) -> Iterator[list[Actor]]:
    """Endpoints on one node. The first one has the keeper."""
    with contextlib.ExitStack() as stack:
        made: list[Actor] = []
        for i in range(n):
            made.append(stack.enter_context(actor(node, f"n{i}", **{**RAW, **variables})))
            made[-1].addr = made[-1].open()  # type: ignore[attr-defined]
            if i == 1:
                await_group(*made)
        yield made


class Caller:
    """An endpoint on another node that sends to each of them."""

    def __init__(self, one: Actor, others: list[Actor]) -> None:
        self.one = one
        one.open()
        self.peers = {id(each): one.find(each.addr) for each in others}  # type: ignore[attr-defined]
        self.tag = 0

    def reaches(self, *others: Actor) -> None:
        """A message to each of them arrives there."""
        for each in others:
            self.tag += 1
            self.one.send(self.peers[id(each)], tag=self.tag, length=300, flags=ACKED, op=self.tag)
            assert each.expect("message", tag=self.tag)["ok"]
            assert self.one.expect("sent", op=self.tag)["status"] == 0


def kill(one: Actor) -> None:
    one.process.kill()
    one.process.wait()


def test_each_member_gets_its_own_frames(nodes: tuple[str, str]) -> None:
    with crowd(nodes[0], 5) as five, actor(nodes[1], "other", **RAW) as other:
        await_group(*five)
        caller = Caller(other, five)
        caller.reaches(*five)
        assert joined(other) == 0  # alone on its node
        assert other.stats()["losses"] == 0
        assert all(each.stats()["drops"]["foreign"] == 0 for each in five)


def test_one_that_may_not_join_receives_beside_the_group(nodes: tuple[str, str]) -> None:
    with (
        crowd(nodes[0], 3) as three,
        actor(nodes[0], "apart", BEOWIRE_FANOUT="off", **RAW) as apart,
        actor(nodes[1], "other", **RAW) as other,
    ):
        apart.addr = apart.open()  # type: ignore[attr-defined]
        await_group(*three)
        caller = Caller(other, [*three, apart])
        caller.reaches(*three, apart)
        assert joined(apart) == 0


def test_frames_find_the_member_that_moves_when_another_dies(nodes: tuple[str, str]) -> None:
    """Messages flow to the last member all the time while those before it are killed."""
    with crowd(nodes[0], 6) as six, actor(nodes[1], "other", **RAW) as other:
        await_group(*six)
        caller = Caller(other, six)
        caller.reaches(*six)
        for victim in (six[2], six[1]):
            kill(victim)
            until = time.monotonic() + 1
            while time.monotonic() < until:
                caller.reaches(six[5], six[4])
        caller.reaches(six[0], six[3], six[4], six[5])
        assert all(joined(each) == 1 for each in (six[0], six[3], six[4], six[5]))
        # Every frame came where it belongs at once: what was sent again was only late.
        told = other.stats()
        assert told["losses"] == 0
        assert told["retransmits"] <= told["spurious"]


def test_the_dead_are_refused(nodes: tuple[str, str]) -> None:
    """Frames for a member that died go to the endpoint that keeps the watch."""
    with crowd(nodes[0], 4) as four, actor(nodes[1], "other", **RAW) as other:
        await_group(*four)
        caller = Caller(other, four)
        caller.reaches(*four)
        kill(four[2])
        other.send(caller.peers[id(four[2])], tag=999, length=10, flags=SYNC, op=999)
        assert other.expect("sent", op=999)["status"] == REFUSED
        caller.reaches(four[0], four[1], four[3])


def test_the_end_of_the_keeper_leaves_all_others_reachable(nodes: tuple[str, str]) -> None:
    """It dies together with another member, so that nobody knows who moved where."""
    with crowd(nodes[0], 6) as six, actor(nodes[1], "other", **RAW) as other:
        await_group(*six)
        caller = Caller(other, six)
        caller.reaches(*six)
        kill(six[0])
        kill(six[2])
        rest = [six[1], six[3], six[4], six[5]]
        for _ in range(50):
            caller.reaches(*rest)
        await_group(*rest)  # another one has the keeper
        caller.reaches(*rest)


def test_closing_the_keeper_and_joining_later(nodes: tuple[str, str]) -> None:
    with crowd(nodes[0], 3) as three, actor(nodes[1], "other", **RAW) as other:
        await_group(*three)
        caller = Caller(other, three)
        caller.reaches(*three)
        three[0].ask("close 1000", "close")
        caller.reaches(three[1], three[2])
        await_group(three[1], three[2])
        with actor(nodes[0], "late", **RAW) as late:
            late.addr = late.open()  # type: ignore[attr-defined]
            await_group(late)
            caller.peers[id(late)] = other.find(late.addr)  # type: ignore[attr-defined]
            caller.reaches(late, three[1], three[2])


def test_a_stopped_keeper_harms_nobody(nodes: tuple[str, str]) -> None:
    """Who comes meanwhile receives by itself; the group goes on."""
    with crowd(nodes[0], 3) as three, actor(nodes[1], "other", **RAW) as other:
        await_group(*three)
        caller = Caller(other, three)
        stop(three[0].pid)
        with actor(nodes[0], "late", **RAW) as late:
            late.addr = late.open()  # type: ignore[attr-defined]
            caller.peers[id(late)] = other.find(late.addr)  # type: ignore[attr-defined]
            caller.reaches(late, three[1], three[2])
            assert joined(late) == 0
            go_on(three[0].pid)
            await_group(late)
            caller.reaches(late, *three)


def test_an_interface_that_goes_down_and_up() -> None:
    """The kernel then has the members in another order."""
    with user_net.pair() as nodes, crowd(nodes[0], 5) as five, actor(nodes[1], "b", **RAW) as other:
        await_group(*five)
        caller = Caller(other, five)
        caller.reaches(*five)
        kill(five[1])  # so that the order is not that of opening
        rest = [five[0], *five[2:]]
        caller.reaches(*rest)
        user_net.link_set(nodes[0], "eth0", "down")
        user_net.link_set(nodes[0], "eth0", "up")
        for _ in range(20):
            caller.reaches(*rest)
        await_group(*rest)
        caller.reaches(*rest)


CALLS = """
import array, os, socket, struct, sys, time
name = "\\0" + sys.argv[1]
def call(data, fds=()):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(name)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([data], rights)
    return s
def good(engine):
    return struct.pack("<IHBB", 0x6B656570, engine, 1, 0)
def packet(protocol):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind(("eth0", protocol))
    return s
right, wrong = packet(0x88B5), packet(0x88B6)
pipe = os.pipe()
bad = [
    call(b""), call(b"x" * 7), call(b"x" * 4000), call(b"\\0" * 8, [right.fileno()]),
    call(good(40000)),                                  # no socket
    call(good(40001), [pipe[0]]),                       # none of the kind
    call(good(40002), [wrong.fileno()]),                # another EtherType
    call(good(int(sys.argv[2])), [right.fileno()]),     # a number that is taken
    call(good(40003) + b"x", [right.fileno()]),
    call(good(40003), [right.fileno(), pipe[0]]),
    call(good(40003), [right.fileno(), pipe[0], pipe[1]]),
]
for s in bad:
    s.settimeout(60)
    assert s.recv(1) == b"", "the keeper hangs up"
almost = call(good(40004), [right.fileno()])
print("done", flush=True)
time.sleep(60)
"""

SQUAT = """
import socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind("\\0" + sys.argv[1])
s.listen(16)
print("done", flush=True)
s.settimeout(60)
while True:
    c, _ = s.accept()
    data, rights, _, _ = c.recvmsg(64, 64)
    if data or rights:
        print("told", data, rights, flush=True)
"""


def keeper_name(node: str) -> str:
    """What root's keeper on eth0 of this node listens on."""
    index = user_net.ip(f"-n {node} -o link show eth0").split(":")[0]
    return f"beowire/fanout/88b5/{index}/0"


@contextlib.contextmanager
def script(node: str, text: str, *words: str, user: str = "") -> Iterator["subprocess.Popen[str]"]:
    """A program that has said that it is done with its first part."""
    command = ["ip", "netns", "exec", node, *user.split(), sys.executable, "-c", text, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "done\n"
            yield process
        finally:
            process.kill()


def test_calls_that_are_no_endpoints_are_hung_up_on(nodes: tuple[str, str]) -> None:
    """One is almost an endpoint, and says that it keeps the watch: it takes nobody's frames."""
    with crowd(nodes[0], 3) as three, actor(nodes[1], "other", **RAW) as other:
        await_group(*three)
        caller = Caller(other, three)
        taken = str(three[1].stats()["engine"])
        before = descriptors(three[0])
        with script(nodes[0], CALLS, keeper_name(nodes[0]), taken):
            for _ in range(20):
                caller.reaches(*three)
        for _ in range(20):
            caller.reaches(*three)
        await_group(*three)
        await_(lambda: descriptors(three[0]) == before)


def descriptors(one: Actor) -> int:
    """How many sockets and pipes the process has open. What it reads now and then of /proc it has
    open for a moment."""
    count = 0
    for each in Path(f"/proc/{one.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            count += str(each.readlink()).startswith(("socket:", "pipe:"))
    return count


def test_another_users_keeper_gets_no_socket(nodes: tuple[str, str]) -> None:
    """Whoever gets a packet socket may send what it likes. Who has the name is stepped around."""
    other_user = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    with script(nodes[0], SQUAT, keeper_name(nodes[0]), user=other_user) as squatter:
        with crowd_alone(nodes[0]) as two, actor(nodes[1], "other", **RAW) as other:
            Caller(other, two).reaches(*two)
            await_group(*two)
            assert all(each.stats()["strangers"] >= 1 for each in two[:1])
        squatter.kill()
        assert squatter.stdout is not None
        assert squatter.stdout.read() == ""


@contextlib.contextmanager
def crowd_alone(node: str) -> Iterator[list[Actor]]:
    """Two endpoints that find no keeper."""
    with actor(node, "n0", **RAW) as one, actor(node, "n1", **RAW) as two:
        for each in (one, two):
            each.addr = each.open()  # type: ignore[attr-defined]
        yield [one, two]


def test_a_child_holds_nothing_of_the_group(nodes: tuple[str, str]) -> None:
    """A child of the keeper's process, and one of a member's, outlive their parents."""
    with crowd(nodes[0], 4) as four, actor(nodes[1], "other", **RAW) as other:
        await_group(*four)
        caller = Caller(other, four)
        caller.reaches(*four)
        children = []
        try:
            for parent in (four[0], four[2]):
                children.append(parent.ask("fork linger", "fork")["child"])
                kill(parent)
            for _ in range(20):
                caller.reaches(four[1], four[3])
            await_group(four[1], four[3])
            caller.reaches(four[1], four[3])
        finally:
            for child in children:
                os.kill(child, signal.SIGKILL)
