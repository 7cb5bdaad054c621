# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libbeowire and beowired: processes without CAP_NET_RAW send and receive raw frames, and where
they get none they say why and go on by udp."""

import os
import signal
import socket
import struct
import time
from pathlib import Path

import user_net
from served import (
    OTHER,
    POLICY,
    STRANGER,
    Service,
    attack,
    client,
    open_directory,
    served,
)
from stopped import go_on, stop
from test_attacks import listening
from user_actor import ACKED, SYNC, Actor, Event, actor

REFUSED = -111
SOL_PACKET, PACKET_RX_RING, PACKET_VERSION, TPACKET_V2 = 263, 5, 10, 1
PEER = {"BEOWIRE_LINKS": "packet"}
EITHER = {"BEOWIRE_LINKS": "packet,udp", "BEOWIRE_LOG": "info"}


SEND_ONE = """
import time
e = Endpoint()
e.socket.send(e.frame(b"\\2\\0\\0\\0\\0\\x99"))
time.sleep(0.2)
told(e.answer.mac.hex())
"""


def exchange(one: Actor, other: Actor, length: int = 300, tag: int = 1) -> None:
    """A message each way between two with open endpoints."""
    for sender, receiver in ((one, other), (other, one)):
        op = tag if sender is one else tag + 1
        peer = sender.find(receiver.addr)  # type: ignore[attr-defined]
        sender.send(peer, tag=op, length=length, flags=ACKED, op=op)
        assert receiver.expect("message", tag=op)["ok"]
        assert sender.expect("sent", op=op)["status"] == 0


def is_refused_for_the_dead(service: Service, one: Actor, peer: Actor) -> None:
    """The client is killed after an exchange, and the service answers its peer."""
    opened(one)
    opened(peer)
    exchange(one, peer)
    to_one = peer.find(one.addr)  # type: ignore[attr-defined]
    one.process.kill()
    service.await_line("closed uid=")
    peer.send(to_one, tag=9, length=10, flags=SYNC, op=9)
    assert peer.expect("sent", op=9)["status"] == REFUSED


def opened(one: Actor) -> Actor:
    one.addr = one.open()  # type: ignore[attr-defined]
    return one


def await_complaint(one: Actor, text: str) -> None:
    """Until it has said so: what it says comes by a way of its own."""
    until = time.monotonic() + 60
    while text not in one.complaints:
        assert time.monotonic() < until, one.complaints
        time.sleep(0.02)


def by_raw_frames(one: Actor) -> bool:
    links = one.stats()["links"]
    return bool(links["packet"]["rx_payload"] and not links["udp"]["rx_payload"])


def test_a_user_speaks_by_raw_frames(service: Service, nodes: tuple[str, str]) -> None:
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        exchange(one, peer)
        exchange(one, peer, length=3_000_000, tag=11)
        assert by_raw_frames(one)
        assert service.counts()["living"] == 1
        assert one.leave() == 0
    service.await_living(0)
    assert not any(service.drops().values())


def test_several_users_get_each_their_own(service: Service, nodes: tuple[str, str]) -> None:
    with (
        client(service) as one,
        client(service) as two,
        client(service, OTHER) as three,
        actor(nodes[1], "peer", **PEER) as peer,
        actor(nodes[0], "root", **PEER) as root,
    ):
        opened(peer)
        for number, each in enumerate((one, two, three, root)):
            opened(each)
            exchange(each, peer, tag=10 * number + 1)
        # All of them again, now that each is there.
        for number, each in enumerate((one, two, three, root)):
            exchange(each, peer, length=20_000, tag=10 * number + 101)
    service.await_living(0)


def test_who_is_not_allowed_goes_on_by_udp_and_says_why(
    service: Service, nodes: tuple[str, str]
) -> None:
    with (
        client(service, STRANGER, **EITHER) as one,
        actor(nodes[1], "peer", BEOWIRE_LINKS="packet,udp") as peer,
    ):
        opened(one)
        opened(peer)
        exchange(one, peer)
        assert not by_raw_frames(one)
    with client(service, STRANGER) as one:
        why = one.open_failure()["why"]
        assert f"user {STRANGER} may have no endpoints; fix: 'users' or" in why
    assert service.counts()["refused"] == 2


def test_without_a_service_it_is_named(nodes: tuple[str, str]) -> None:
    with served(nodes[0]) as service:
        service.stop()
        with client(service) as one:
            assert "or the service beowired, which is not there" in one.open_failure()["why"]


def test_a_stale_socket_is_named(service: Service) -> None:
    assert service.stop(signal.SIGKILL) != 0
    with client(service, **EITHER) as one:
        opened(one)
        await_complaint(one, "beowired does not run")
    # A new one takes the place of the old socket, of its cable and of its filter.
    service.start()
    with client(service) as one:
        opened(one)


def test_a_stopped_service_costs_little(service: Service) -> None:
    stop(service.process.pid)
    try:
        with client(service, **EITHER) as one:
            opened(one)
            await_complaint(one, "beowired does not answer within 100 ms")
    finally:
        go_on(service.process.pid)


def test_another_version_is_told(service: Service) -> None:
    """Of a service that answers in another version of the protocol."""
    with open_directory() as directory:
        path = directory / "sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        with client(service, BEOWIRE_SERVICE=str(path)) as one:
            one.tell("open")
            connection, _ = listener.accept()
            connection.recv(100)
            connection.send(b"bwed\x09\x00\x01\x00" + b"\0" * 300)
            assert "beowired speaks version 9, this" in one.expect("open")["why"]


def test_nonsense_is_no_service(service: Service) -> None:
    """Descriptors and numbers that make no sense are taken by nobody."""
    good = (9000, b"\2" * 6, 0, 2, 9152, 65536, 4, b"eth0")
    for fields in (
        good,  # the socket is none that gets frames
        (9000, b"\2" * 6, 0, 2, 0, 65536, 4, b"eth0"),
        (9000, b"\2" * 6, 0, 2, 9152, 65535, 4, b"eth0"),
        (9000, b"\2" * 6, 0, 2, 9152, 65536, 0xFFFFFFFF, b"eth0"),
        (9000, b"\2" * 6, 0, 2, 9152, 65536, 4, b"e" * 16),
        (1, b"\2" * 6, 0, 2, 9152, 65536, 4, b"eth0"),
    ):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        assert "answers nothing that makes sense" in answer_with(service, fields, pair[0])["why"]
        for each in pair:
            each.close()


def test_slots_hold_what_the_mtu_says(service: Service) -> None:
    """Though the socket has a ring of such slots: longer frames would be cut."""
    for slot, mtu, status in ((2048, 1842, 0), (2048, 1907, -71), (2048, 9000, -71)):
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as ring:
            ring.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V2)
            shape = struct.pack("IIII", 65536, 4, slot, 4 * 65536 // slot)
            ring.setsockopt(SOL_PACKET, PACKET_RX_RING, shape)
            fields = (mtu, b"\2" * 6, 0, 2, slot, 65536, 4, b"eth0")
            assert answer_with(service, fields, ring)["result"] == status, (slot, mtu)


def answer_with(service: Service, fields: tuple[object, ...], given: socket.socket) -> Event:
    """What becomes of a client's endpoint that gets this answer, with this socket."""
    data = struct.pack("<IHHiI6sHIIII16s160s", 0x64657762, 1, 3, 0, *fields, b"")
    with open_directory() as directory:
        path = directory / "sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        with client(service, BEOWIRE_SERVICE=str(path)) as one:
            one.tell("open")
            connection, _ = listener.accept()
            connection.recv(100)
            socket.send_fds(connection, [data], [given.fileno()])
            return one.expect("open")


def test_who_listens_must_own_the_directory(service: Service) -> None:
    with open_directory() as directory:
        directory.chmod(0o777)
        path = directory / "sock"
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        with client(service, BEOWIRE_SERVICE=str(path)) as one:
            assert "is not its directory's owner" in one.open_failure()["why"]


def test_a_restart_breaks_nothing(service: Service, nodes: tuple[str, str]) -> None:
    """Raw frames alone: what is sent meanwhile comes when the service is back."""
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        exchange(one, peer)
        assert service.stop() == 0
        to_peer, to_one = one.find(peer.addr), peer.find(one.addr)  # type: ignore[attr-defined]
        one.send(to_peer, tag=21, length=5000, flags=ACKED, op=21)
        peer.send(to_one, tag=22, length=5000, flags=ACKED, op=22)
        service.start()
        assert peer.expect("message", tag=21)["ok"]
        assert one.expect("message", tag=22)["ok"]
        exchange(one, peer, tag=31)
        service.await_living(1)


def test_a_crash_breaks_nothing_either(service: Service, nodes: tuple[str, str]) -> None:
    with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
        opened(one)
        opened(peer)
        service.stop(signal.SIGKILL)
        exchange(one, peer)  # what the kernel does goes on
        service.start()
        service.await_living(1)
        exchange(one, peer, tag=11)


def test_an_address_that_changes_is_followed() -> None:
    with user_net.pair() as nodes, served(nodes[0]) as service:
        user_net.link_set(nodes[0], "eth0", "address 02:00:00:00:77:01")
        said = attack(service, SEND_ONE)
        assert (said, service.drops()["mac"]) == ("020000007701", 0)
        with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
            opened(one)
            opened(peer)
            exchange(one, peer)
            assert not any(service.drops().values())


def test_an_interface_that_is_down_is_passed_over() -> None:
    with user_net.pair() as nodes, served(nodes[0]) as service:
        user_net.link_set(nodes[0], "eth0", "down")
        with client(service, **EITHER) as one:
            one.open_failure()


def test_a_process_in_another_namespace_uses_the_socket(
    service: Service, nodes: tuple[str, str]
) -> None:
    """As in a container where the socket is mounted: it has no interface of its own."""
    with user_net.network() as net:
        alone = net.node("c")
        net.veth(alone, net.node("d"), ("eth9", "eth9"))
        with (
            client(service, node=alone) as one,
            actor(nodes[1], "peer", **PEER) as peer,
        ):
            opened(one)
            opened(peer)
            exchange(one, peer)
            assert by_raw_frames(one)


def test_policy_of_one_interface_only() -> None:
    with user_net.network() as net:
        node, other = net.node("a"), net.node("b")
        for name in ("eth0", "eth1"):
            net.veth(node, other, (name, name))
        with (
            served(node) as service,
            client(service, BEOWIRE_INTERFACE="eth1") as one,
        ):
            assert "beowired does not serve eth1; fix: 'interfaces'" in one.open_failure()["why"]
            assert Path(service.policy).read_text() == POLICY


def test_the_dead_are_refused(nodes: tuple[str, str]) -> None:
    """The service does so in the place of an endpoint that was killed, and of a host name that is
    too long it tells the beginning."""
    host = "node-" + "0123456789" * 5
    named = f'echo {host} >/proc/sys/kernel/hostname && exec "$@"'
    with (
        served(nodes[0], within=["unshare", "--uts", "sh", "-c", named, "sh"]) as service,
        client(service) as one,
        actor(nodes[1], "peer", **PEER) as peer,
        listening(nodes[1]) as tap,
    ):
        is_refused_for_the_dead(service, one, peer)
        assert refuser(tap) == host.encode()[:32]
        assert service.counts()["told"] >= 1


def refuser(tap: socket.socket) -> bytes:
    """Who refuses, by the first frame that does so (struct bw_refuse of engine/wire.h)."""
    tap.settimeout(60)
    while True:
        frame = tap.recv(65536)
        if frame[12:16] == b"\x88\xb5\x0a\xbe" and frame[17] == 4:
            return frame[14 + 32 + 16 :][:32].rstrip(b"\0")


def test_who_takes_a_number_of_the_dead_is_not_refused(
    service: Service, nodes: tuple[str, str]
) -> None:
    code = "e = Endpoint()\ntold(e.engine)"
    numbers = [attack(service, code) for _ in range(3)]
    service.await_living(0)
    with actor(nodes[1], "peer", **PEER) as peer:
        opened(peer)
        for number in numbers:
            again = attack(service, "told(Endpoint(int(sys.argv[2])).answer.kind)", str(number))
            assert again == 3
        with client(service) as one:
            opened(one)
            exchange(one, peer)


def test_an_interface_that_is_replaced_is_used_again() -> None:
    """Its endpoints end with it; clients ask for new ones."""
    with user_net.network() as net:
        node, other = net.node("a"), net.node("b")
        net.veth(node, other, ("eth0", "eth0"))
        user_net.link_set(node, "eth0", "address 02:00:00:00:77:01")
        with served(node) as service, client(service) as one, actor(other, "peer", **PEER) as peer:
            opened(one)
            user_net.ip(f"-n {node} link del eth0")
            service.await_line("interface eth0 is gone")
            net.veth(node, other, ("eth0", "eth0"))
            user_net.link_set(node, "eth0", "address 02:00:00:00:77:01")
            service.await_line("interface eth0 is there again")
            service.await_living(1)
            opened(peer)
            exchange(one, peer)


def test_an_mtu_that_changes_is_followed() -> None:
    with user_net.pair(mtu=1500) as nodes, served(nodes[0]) as service:
        for node in nodes:
            user_net.link_set(node, "eth0", "mtu 9000")
        with client(service) as one, actor(nodes[1], "peer", **PEER) as peer:
            opened(one)
            opened(peer)
            # On a busy machine it takes a while until it is known that long frames pass.
            until = time.monotonic() + 60
            frames = 500
            while frames >= 500:
                assert time.monotonic() < until, frames
                before = one.stats()["links"]["packet"]["rx_frames"]
                exchange(one, peer, length=500_000)
                frames = one.stats()["links"]["packet"]["rx_frames"] - before


def test_a_process_in_a_user_namespace_uses_the_socket(
    service: Service, nodes: tuple[str, str]
) -> None:
    """There it is root, but not over the network namespace; the service's user has no name."""
    with (
        client(service, within=["unshare", "--user", "--map-root-user"]) as one,
        actor(nodes[1], "peer", **PEER) as peer,
    ):
        opened(one)
        opened(peer)
        exchange(one, peer)
        assert by_raw_frames(one)


def test_a_child_holds_nothing_of_an_endpoint(service: Service) -> None:
    """A child of fork() that outlives its parent does not keep the endpoint."""
    with client(service) as one:
        opened(one)
        child = one.ask("fork linger", "fork")["child"]
        try:
            one.process.kill()
            service.await_living(0)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_process_without_any_interface_uses_the_socket(
    service: Service, nodes: tuple[str, str]
) -> None:
    """As in a container without a network. A socket of its own would be bound to nothing."""
    with user_net.network() as net:
        alone = net.node("c")
        with (
            client(service, node=alone) as one,
            actor(alone, "root", BEOWIRE_SERVICE=str(service.socket), **PEER) as root,
            actor(nodes[1], "peer", **PEER) as peer,
        ):
            opened(peer)
            opened(one)
            exchange(one, peer)
            assert by_raw_frames(one)
            assert "user 0 may have no endpoints" in root.open_failure()["why"]
