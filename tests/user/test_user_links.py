# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Interfaces of every shape, the choice among them, and paths that do not pass everything."""

import os
import socket
import struct
import time
from collections.abc import Callable, Iterator

import in_guest
import pytest
import user_net
from beowire import namespaces
from beowire.lab import lab, up
from stopped import go_on, stop
from user_actor import ACKED, LATER, NOW, Actor, Couple, actor, couple
from user_net import address, ip, link_set

SOON_S = 120
"""Far more than it takes."""
NEED_VLANS = ("test_vlan", "test_frames_that_a_switch_tags_pass")


def prove(two: Couple, link: str) -> None:
    """Short and long messages pass both ways, over this link."""
    for one, to, other in ((two.a, two.to_b, two.b), (two.b, two.to_a, two.a)):
        assert one.send(to, tag=1, length=8) == NOW
        assert other.expect("message", tag=1)["ok"]
        assert one.send(to, tag=2, length=2_000_000, flags=ACKED, op=2) == LATER
        assert other.expect("pulled", tag=2)["ok"]
        assert one.expect("sent", op=2)["status"] == 0
        await_link(one, to, other, link)
        links = one.stats()["links"]
        carried = links[link]["tx_payload"]
        if link == "packet":  # rows by udp may carry long ones instead
            carried += links.get("udp", {}).get("tx_payload", 0)
        assert carried >= 2_000_008 or link == "local"


def await_link(one: Actor, to: int, other: Actor, link: str) -> None:
    """Messages go by this link. Answers that a busy machine brings late by it make another one the
    better one for a while."""

    def goes_by_it() -> bool:
        if one.link(to) == link:
            return True
        one.send(to, tag=3, length=8, flags=ACKED, op=3)
        assert other.expect("message", tag=3)["ok"]
        assert one.expect("sent", op=3)["status"] == 0
        return False

    wait_until(f"{link} is used", goes_by_it)


def wait_until(what: str, ready: Callable[[], bool]) -> None:
    """Polls until a condition holds."""
    until = time.monotonic() + SOON_S
    while not ready():
        assert time.monotonic() < until, f"never happened: {what}"
        time.sleep(0.1)


def test_packet_comes_before_udp(nodes: tuple[str, str]) -> None:
    with couple(nodes) as two:
        prove(two, "packet")


def test_local_comes_first(nodes: tuple[str, str]) -> None:
    with couple((nodes[0], nodes[0])) as two:
        prove(two, "local")
        assert two.a.describe(two.to_b).startswith(f"{two.a.stats()['host']} (node ")


def test_processes_of_one_node_use_udp_without_local(nodes: tuple[str, str]) -> None:
    with couple((nodes[0], nodes[0]), BEOWIRE_LINKS="packet,udp") as two:
        prove(two, "udp")


def test_named_nodes_on_loopback_use_udp(nodes: tuple[str, str]) -> None:
    one = {"BEOWIRE_NODE": "n1", "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}
    two = {"BEOWIRE_NODE": "n2", "BEOWIRE_UDP_ADDRESS": "127.0.0.2"}
    with actor(nodes[0], "n1", **one) as a, actor(nodes[0], "n2", **two) as b:
        addr_a, addr_b = a.open(), b.open()
        prove(Couple(a, b, a.find(addr_b), b.find(addr_a)), "udp")


@pytest.mark.parametrize("scope", ["global", "link"])
def test_udp_over_ipv6_alone(scope: str) -> None:
    """Nodes without IPv4; an address of one link is used only where it is named."""
    with user_net.network() as net:
        one, two = net.node("a"), net.node("b")
        net.veth(one, two, ("eth0", "eth0"), 1500)
        addresses = {}
        for number, node in enumerate((one, two), 1):
            ip6 = f"fd77::{number}" if scope == "global" else f"fe80::77:{number}"
            ip(f"-n {node} addr add {ip6}/64 dev eth0 nodad")
            addresses[node] = f"{ip6}%eth0" if scope == "link" else ""
        links = {"BEOWIRE_LINKS": "udp"}
        if scope == "link":
            with actor(one, **links) as a:
                assert "no interface has an address of IPv4" in a.open_failure()["why"]
        named = [{**links, "BEOWIRE_UDP_ADDRESS": addresses[node]} for node in (one, two)]
        with actor(one, "n1", **named[0]) as a, actor(two, "n2", **named[1]) as b:
            addr_a, addr_b = a.open(), b.open()
            both = Couple(a, b, a.find(addr_b), b.find(addr_a))
            for _ in range(10):
                prove(both, "udp")
            for each in (a, b):
                stats = each.stats()
                assert stats["udp_connects"] == 1
                assert stats["udp_tx_connected"] > 0
                assert stats["udp_rx_connected"] > 0


def test_udp_over_different_families_has_no_link_in_common() -> None:
    with user_net.pair() as nodes:
        for number, node in enumerate(nodes, 1):
            ip(f"-n {node} addr add fd77::{number}/64 dev eth0 nodad")
        links = {"BEOWIRE_LINKS": "udp"}
        with (
            actor(nodes[0], **links) as a,
            actor(nodes[1], **links, BEOWIRE_UDP_ADDRESS="fd77::2") as b,
        ):
            a.open()
            found = a.ask(f"peer {b.open()}", "peer")
            assert found["result"] == -113  # EHOSTUNREACH


def test_no_link_in_common(nodes: tuple[str, str]) -> None:
    with (
        actor(nodes[0], BEOWIRE_LINKS="packet") as a,
        actor(nodes[1], BEOWIRE_LINKS="udp") as b,
    ):
        a.open()
        found = a.ask(f"peer {b.open()}", "peer")
        assert found["result"] == -113  # EHOSTUNREACH


def test_another_cluster_is_refused_and_ignored(nodes: tuple[str, str]) -> None:
    with (
        actor(nodes[0], BEOWIRE_CLUSTER="red") as a,
        actor(nodes[1], BEOWIRE_CLUSTER="blue") as b,
    ):
        a.open()
        assert a.ask(f"peer {b.open()}", "peer")["result"] == -93  # EPROTONOSUPPORT


def test_bridge() -> None:
    """Two nodes behind a switch; a third endpoint on the switch's own interface."""
    with user_net.network() as net:
        one, two, switch = net.node("a"), net.node("b"), net.node("s")
        net.veth(one, switch, ("eth0", "p1"))
        net.veth(two, switch, ("eth0", "p2"))
        net.bridge(switch, ["p1", "p2"])
        with couple((one, two), BEOWIRE_LINKS="packet") as pair:
            prove(pair, "packet")
        with couple((one, switch), BEOWIRE_LINKS="packet", BEOWIRE_INTERFACE="eth0,br0") as pair:
            prove(pair, "packet")


def test_macvlan() -> None:
    """Three nodes' worth of interfaces on one cable: two macvlans of one interface and its peer."""
    with user_net.network() as net:
        host, far, one, two = net.node("h"), net.node("f"), net.node("a"), net.node("b")
        net.veth(host, far, ("eth0", "eth0"))
        for node in (one, two):
            ip(f"-n {host} link add link eth0 name mv0 type macvlan mode bridge")
            ip(f"-n {host} link set mv0 netns {node}")
            link_set(node, "mv0", "up")
        with couple((one, two), BEOWIRE_LINKS="packet") as pair:
            prove(pair, "packet")
        with couple((one, far), BEOWIRE_LINKS="packet") as pair:
            prove(pair, "packet")


def test_vlan() -> None:
    with user_net.pair(ips=False) as (one, two):
        try:
            ip(f"-n {one} link add link eth0 name eth0.5 type vlan id 5")
        except OSError as error:
            in_guest.elsewhere("test_vlan", NEED_VLANS, str(error))
            return
        ip(f"-n {two} link add link eth0 name eth0.5 type vlan id 5")
        for node in (one, two):
            link_set(node, "eth0.5", "up")
        with couple((one, two), BEOWIRE_LINKS="packet", BEOWIRE_INTERFACE="eth0.5") as pair:
            prove(pair, "packet")


def test_frames_that_a_switch_tags_pass() -> None:
    """VLAN-aware bridges: between them the nodes' frames travel with a tag."""
    with user_net.network() as net:
        one, two, left, right = (net.node(n) for n in "ablr")
        net.veth(one, left, ("eth0", "p1"))
        net.veth(left, right, ("trunk", "trunk"))
        net.veth(two, right, ("eth0", "p1"))
        for switch in (left, right):
            try:
                ip(f"-n {switch} link add br0 type bridge vlan_filtering 1 forward_delay 0")
            except OSError as error:
                name = "test_frames_that_a_switch_tags_pass"
                in_guest.elsewhere(name, NEED_VLANS, str(error))
                return
            for port in ("p1", "trunk"):
                link_set(switch, port, "master br0")
            ip(f"-n {switch} link set br0 up")
        with couple((one, two), BEOWIRE_LINKS="packet") as pair:
            prove(pair, "packet")


def described(node: str, **variables: str) -> str:
    """The interface that an endpoint chooses."""
    with actor(node, **variables) as one:
        one.open()
        return str(one.stats()["interface"])


def test_interface_is_chosen_and_named() -> None:
    with user_net.network() as net:
        node, far = net.node("a"), net.node("b")
        for name in ("plain", "cluster", "public"):
            net.veth(node, far, (name, name))
        address(node, "cluster", 9, net="10.55.0")
        address(node, "public", 9, net="198.51.100")
        ip(f"-n {node} route add default via 198.51.100.1 dev public")
        assert described(node) == "cluster"
        assert described(node, BEOWIRE_INTERFACE="public") == "public"
        assert described(node, BEOWIRE_INTERFACE="198.51.100.0/24") == "public"
        assert described(node, BEOWIRE_INTERFACE="no,such,plain,cluster") == "plain"
        mac = ip(f"-n {node} -br link show plain").split()[2]
        assert described(node, BEOWIRE_INTERFACE=mac.upper()) == "plain"
        link_set(node, "cluster", "down")
        assert described(node) == "public"
        link_set(far, "public", "down")  # no carrier on the other end
        wait_until("no carrier", lambda: described(node) == "plain")
        link_set(far, "public", "up")
        # An interface has its carrier at once, and "is running" up to a second later.
        for _ in range(3):
            link_set(node, "public", "down")
            link_set(node, "public", "up")
            assert described(node) == "public"


def test_wrong_interface_lists_what_there_is(nodes: tuple[str, str]) -> None:
    with actor(nodes[0], BEOWIRE_INTERFACE="eth7") as one:
        failed = one.open_failure()
    assert failed["result"] == -19  # ENODEV
    assert "BEOWIRE_INTERFACE=eth7" in failed["why"]
    assert "eth0" in failed["why"]
    assert "10.77.0.1" in failed["why"]
    assert "lo" in failed["why"]


def test_interface_that_is_down_is_named_with_its_fix() -> None:
    with user_net.pair() as (one, _):
        link_set(one, "eth0", "down")
        with actor(one, BEOWIRE_INTERFACE="eth0") as a:
            assert "ip link set eth0 up" in a.open_failure()["why"]


def test_frames_grow_to_what_passes() -> None:
    with user_net.pair(mtu=9000) as nodes, couple(nodes, BEOWIRE_LINKS="packet") as two:
        prove(two, "packet")

        def grown() -> bool:  # a probe may be late, or frames are sent again, on a busy machine
            return 9_000_000 / frames_of_9_mb(two, "packet") > 6000

        wait_until("frames of 9000 bytes", grown)


def frames_of_9_mb(two: Couple, link: str) -> int:
    """Frames that the first one sends for one message."""
    before = two.a.stats()["links"][link]["tx_frames"]
    two.a.send(two.to_b, tag=5, length=9_000_000, op=5)
    assert two.b.expect("pulled", tag=5)["ok"]
    assert two.a.expect("sent", op=5)["status"] == 0
    return int(two.a.stats()["links"][link]["tx_frames"]) - int(before)


@pytest.mark.parametrize("offload", ["on", "off"])
def test_long_messages_travel_in_rows(offload: str) -> None:
    """At an MTU of 1500 too, where a frame is as long as a short message."""
    with (
        user_net.pair(mtu=1500) as nodes,
        couple(nodes, BEOWIRE_LINKS="udp", BEOWIRE_UDP_OFFLOAD=offload) as two,
    ):
        prove(two, "udp")

        def in_rows() -> bool:
            """All but a few frames of a message, and many in each; what is sent again on a busy
            machine goes by itself."""
            before = two.a.stats()
            frames = frames_of_9_mb(two, "udp")
            assert frames > 9_000_000 / 1500
            rows, row_frames = (
                two.a.stats()[name] - before[name] for name in ("udp_tx_rows", "udp_tx_row_frames")
            )
            return bool(rows) and row_frames > 0.9 * frames and row_frames / rows > 8

        if offload == "off":
            assert not in_rows()
            assert two.a.stats()["udp_tx_rows"] == two.b.stats()["udp_rx_rows"] == 0
        else:
            wait_until("rows", in_rows)
            assert two.b.stats()["udp_rx_rows"] > 0


def test_long_messages_are_taken_in_rows() -> None:
    """From the ring of raw frames, where many have come while others were taken."""
    with user_net.pair(mtu=1500) as nodes, couple(nodes, BEOWIRE_LINKS="packet") as two:
        prove(two, "packet")

        def in_rows() -> bool:
            names = ("packet_rx_rows", "packet_rx_row_frames")
            before = two.b.stats()
            frames_of_9_mb(two, "packet")
            rows, row_frames = (two.b.stats()[name] - before[name] for name in names)
            return bool(rows) and row_frames / rows > 8

        wait_until("rows", in_rows)


def test_jumbo_frames_that_do_not_pass_are_not_used() -> None:
    """The switch's ports take 1500 bytes, the nodes believe in 9000: works, with one warning."""
    with user_net.network() as net:
        one, two, switch = net.node("a"), net.node("b"), net.node("s")
        for node, port in ((one, "p1"), (two, "p2")):
            net.veth(node, switch, ("eth0", port))
            link_set(switch, port, "mtu 1500")
        net.bridge(switch, ["p1", "p2"])
        with couple((one, two), BEOWIRE_LINKS="packet", PMIX_NAMESPACE=f"{one}-job") as pair:
            prove(pair, "packet")

            def said() -> bool:
                return "do not pass" in pair.a.complaints + pair.b.complaints

            wait_until("the warning", said)
            time.sleep(1)
            everything = pair.a.complaints + pair.b.complaints
            assert everything.count("frames of 9000 bytes do not pass") == 1, everything


def test_raw_frames_that_do_not_pass_are_replaced_by_udp() -> None:
    name = f"us{os.getpid()}raw"
    made = up.up(name, 2, 1500)
    try:
        up.reshape(name, dict.fromkeys(made.node_names(), lab.Shape(drop_raw=True)))
        spaces = tuple(made.namespace(node) for node in made.node_names())
        with couple((spaces[0], spaces[1]), PMIX_NAMESPACE=f"{name}-job") as two:
            prove(two, "udp")

            def said() -> bool:
                return "do not pass" in two.a.complaints + two.b.complaints

            wait_until("the warning", said)
            assert "using udp" in two.a.complaints + two.b.complaints
    finally:
        up.down(name)


def test_link_that_goes_down_and_comes_back() -> None:
    with user_net.pair() as nodes, couple(nodes, BEOWIRE_LINKS="packet") as two:
        prove(two, "packet")
        link_set(nodes[1], "eth0", "down")
        assert two.a.send(two.to_b, tag=8, length=100, flags=ACKED, op=8) == LATER
        time.sleep(1)
        link_set(nodes[1], "eth0", "up")
        assert two.b.expect("message", tag=8)["ok"]
        assert two.a.expect("sent", op=8)["status"] == 0


def raw_sender(node: str, interface: str, frames: list[bytes]) -> None:
    """Sends Ethernet frames from a namespace."""

    def send() -> None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
            sender.bind((interface, 0))
            for frame in frames:
                sender.send(frame)

    namespaces.within(namespaces.NETNS_DIR / node, send)


def mac_of(node: str, interface: str) -> bytes:
    """The address of an interface."""
    text = ip(f"-n {node} -br link show {interface}").split()[2]
    return bytes.fromhex(text.replace(":", ""))


@pytest.fixture
def listener() -> Iterator[tuple[Actor, str, str]]:
    """An endpoint and the node beside it."""
    with user_net.pair() as (one, two), actor(one, BEOWIRE_LINKS="packet") as a:
        a.open()
        yield a, one, two


def test_foreign_frames_are_counted_and_warned_of_once(
    listener: tuple[Actor, str, str],
) -> None:
    a, one, two = listener
    frame = mac_of(one, "eth0") + mac_of(two, "eth0") + b"\x88\xb5" + bytes(60)
    a.stats()
    for _ in range(30):
        raw_sender(two, "eth0", [frame] * 20)
        time.sleep(0.02)
    wait_until("foreign frames counted", lambda: a.stats()["drops"]["foreign"] >= 100)
    wait_until("the warning", lambda: "BEOWIRE_ETHERTYPE" in a.complaints)
    assert a.complaints.count("BEOWIRE_ETHERTYPE") == 1


def test_damaged_frames_are_dropped_with_a_reason(listener: tuple[Actor, str, str]) -> None:
    a, one, two = listener
    engine = a.stats()["engine"]
    to = mac_of(one, "eth0") + mac_of(two, "eth0") + b"\x88\xb5"
    header = struct.pack("<HBBI HH III BBH I", 0xBE0A, 2, 2, 0, engine, 9, 1, 1, 0, 0, 0, 16, 0)
    raw_sender(two, "eth0", [to + header + bytes(60)])
    wait_until("counted", lambda: a.stats()["drops"]["cluster"] == 1)
    raw_sender(two, "eth0", [to + header[:20]])
    a.send(0, tag=1, length=1)  # still alive
    assert a.stats()["links"]["packet"]["rx_frames"] >= 1


def datagram_sender(node: str, to: tuple[str, int], datagrams: list[bytes]) -> None:
    """Sends datagrams from a namespace."""

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for datagram in datagrams:
                sender.sendto(datagram, to)

    namespaces.within(namespaces.NETNS_DIR / node, send)


def udp_port(node: str) -> int:
    """The port of the only UDP socket of a namespace."""
    (line,) = ip(f"netns exec {node} cat /proc/net/udp").splitlines()[1:]
    return int(line.split()[1].split(":")[1], 16)


def test_datagrams_for_nobody_take_no_room() -> None:
    """The endpoint's process stands still and many more datagrams come than its socket has room
    for: foreign ones, and frames for other engines. The frame for this one waits behind them."""
    with user_net.pair() as (one, two), actor(one, BEOWIRE_LINKS="udp") as a:
        a.open()
        engine = a.stats()["engine"]
        to = ("10.77.0.1", udp_port(one))
        body = struct.pack("<BBI HH III BBH I", 2, 2, 0, engine, 9, 1, 1, 0, 0, 0, 16, 0)
        other = struct.pack("<HBBI H", 0xBE0A, 2, 2, 0, engine ^ 1) + body[10:]
        foreign = [struct.pack("<H", 0xBE0B) + body, other, b"short"]
        stop(a.pid)
        datagram_sender(two, to, [each + bytes(1000) for each in foreign] * 8000)
        datagram_sender(two, to, [struct.pack("<H", 0xBE0A) + body + bytes(60)])
        go_on(a.pid)
        wait_until("counted", lambda: a.stats()["drops"]["cluster"] == 1)
        assert a.stats()["links"]["udp"]["rx_frames"] == 1
