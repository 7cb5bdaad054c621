# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that has ended and returns: what clients do meanwhile, and what of it they take."""

import contextlib
import re
import signal
import socket
import struct
import time
from collections.abc import Iterator

import pytest
import user_net
from served import Service, client, served
from test_served import PEER, await_complaint, exchange, opened
from user_actor import Actor, actor


@contextlib.contextmanager
def standing_in(service: Service) -> Iterator[socket.socket]:
    """Listens in the place of a service that is killed; what the kernel does for it goes on. There
    is no moment without either."""
    aside = service.socket.with_suffix(".aside")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(aside))
        aside.chmod(0o666)
        listener.listen()
        listener.settimeout(60)
        aside.rename(service.socket)
        service.stop(signal.SIGKILL)
        yield listener


def asked(listener: socket.socket) -> socket.socket:
    """A connection whose question has come."""
    connection, _ = listener.accept()
    assert len(connection.recv(100)) == 40
    return connection


def answer(kind: int, mac: bytes = b"", mtu: int = 0, slots: int = 0, slot: int = 0) -> bytes:
    """struct bw_service_answer (common/service.h) of a ring of 1 MiB."""
    blocks = slots * slot >> 16
    return struct.pack(
        "<IHHiI6sHIIII16s160s",
        *(0x64657762, 1, kind, 0, mtu, mac, 0, 0, slot, 1 << 16, blocks, b"eth0", b""),
    )


WAIT, READY, REFUSED = 2, 3, 4


def test_nobody_waits_for_a_service_that_returns(service: Service, nodes: tuple[str, str]) -> None:
    """A program sends and receives while its question is not answered."""
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        with standing_in(service) as listener, asked(listener) as connection:
            exchange(one, peer)
            exchange(one, peer, length=100_000, tag=11)
            with pytest.raises(BlockingIOError):  # the question still stands
                connection.recv(1, socket.MSG_DONTWAIT)
        service.start()
        service.await_living(1)
        exchange(one, peer, tag=21)


def set_mtu(nodes: tuple[str, str], mtu: int) -> None:
    for node in nodes:
        user_net.link_set(node, "eth0", f"mtu {mtu}")


def received(one: Actor) -> int:
    """Payload bytes in raw frames."""
    return int(one.stats()["links"]["packet"]["rx_payload"])


def test_slots_of_another_size_are_taken() -> None:
    """As many as before, in the same memory: of 8384 bytes, then of 9152."""
    with (
        user_net.pair(mtu=8192) as nodes,
        served(nodes[0]) as service,
        client(service) as one,
        actor(nodes[1], "peer", **PEER) as peer,
    ):
        opened(one)
        opened(peer)
        exchange(one, peer)
        assert service.stop() == 0
        set_mtu(nodes, 9000)
        service.start()
        service.await_living(1)
        before = received(one)
        for tag in range(20, 60, 2):
            exchange(one, peer, length=20_000, tag=tag)
        assert received(one) - before >= 20 * 20_000


def test_fewer_slots_are_not_taken() -> None:
    """Peers were told how much fits; the reason is told."""
    with (
        user_net.pair(mtu=1500) as nodes,
        served(nodes[0]) as service,
        client(service, BEOWIRE_LOG="debug", BEOWIRE_RING=str(1 << 20)) as one,
    ):
        opened(one)
        assert service.stop() == 0
        set_mtu(nodes, 9000)
        service.start()
        await_complaint(
            one, "the ring has 112 slots in 1048576 bytes, and had 624 in 1048576 before"
        )


MAC = b"\2\0\0\0\0\1"
OTHER_MAC = b"\2\0\0\0\0\2"


def test_what_does_not_suit_is_asked_for_more_and_more_seldom(nodes: tuple[str, str]) -> None:
    """Each answer is judged before its ring is mapped, of which there is none here."""
    reasons = [
        (OTHER_MAC, 9000, 64, "the interface has another address, or a smaller MTU", 1),
        (MAC, 8999, 64, "the interface has another address, or a smaller MTU", 2),
        (MAC, 9000, 48, "the ring has 48 slots in 786432 bytes, and had ", 1),
    ]
    user_net.link_set(nodes[0], "eth0", f"address {MAC.hex(':')}")
    with (
        served(nodes[0]) as service,
        client(service, BEOWIRE_LOG="debug", BEOWIRE_RING=str(1 << 20)) as one,
        actor(nodes[1], "peer", **PEER) as peer,
    ):
        opened(one)
        opened(peer)
        with (
            standing_in(service) as listener,
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as raw,
        ):
            for mac, mtu, slots, why, pause in reasons:
                if slots == 48:  # a service that ends has refused nothing
                    asked(listener).close()
                    await_complaint(
                        one, "the service of raw frames on eth0 ended before it answered"
                    )
                with asked(listener) as connection:
                    data = answer(READY, mac, mtu, slots, 16384)
                    socket.send_fds(connection, [data], [raw.fileno()])
                    said(one, rf"{why}.*; next try in {pause} s")
        # Who has got one begins again.
        service.start()
        service.await_living(1)
        exchange(one, peer)
        with standing_in(service) as listener, asked(listener) as connection:
            connection.send(answer(REFUSED))
            assert said(one, r"gives no raw frames.*; next try in (\d+) s")[1] == "1"


def said(one: Actor, pattern: str) -> re.Match[str]:
    """Waits for a line with this in what it says."""
    until = time.monotonic() + 60
    while not (found := re.search(pattern, one.complaints)):
        assert time.monotonic() < until, one.complaints
        time.sleep(0.02)
    return found


def test_the_time_that_was_waited_is_told(service: Service) -> None:
    """For what was to follow on "wait"."""
    with client(service, BEOWIRE_LOG="debug") as one:
        opened(one)
        with standing_in(service) as listener, asked(listener) as connection:
            connection.send(answer(WAIT))
            await_complaint(one, "beowired does not answer within 5000 ms")
