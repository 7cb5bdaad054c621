# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A service that has ended and returns: what clients do meanwhile, and what of it they take."""

import signal
import socket

import pytest
import user_net
from served import Service, client, served
from test_served import PEER, await_complaint, by_raw_frames, exchange, opened
from user_actor import actor


def test_nobody_waits_for_a_service_that_returns(service: Service, nodes: tuple[str, str]) -> None:
    """A program sends and receives while its question is not answered."""
    with (
        client(service) as one,
        actor(nodes[1], "peer", **PEER) as peer,
        socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener,
    ):
        opened(one)
        opened(peer)
        service.stop(signal.SIGKILL)  # what the kernel does goes on
        service.socket.unlink()
        listener.bind(str(service.socket))
        service.socket.chmod(0o666)
        listener.listen()
        listener.settimeout(60)
        connection, _ = listener.accept()
        with connection:
            assert len(connection.recv(100)) == 40
            exchange(one, peer)
            exchange(one, peer, length=100_000, tag=11)
            with pytest.raises(BlockingIOError):  # the question still stands
                connection.recv(1, socket.MSG_DONTWAIT)
        listener.close()
        service.start()
        service.await_living(1)
        exchange(one, peer, tag=21)


def set_mtu(nodes: tuple[str, str], mtu: int) -> None:
    for node in nodes:
        user_net.link_set(node, "eth0", f"mtu {mtu}")


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
        for tag in range(20, 60, 2):
            exchange(one, peer, length=20_000, tag=tag)
        assert by_raw_frames(one)


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
