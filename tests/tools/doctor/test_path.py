# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The path's probe over both protocols, between two namespaces."""

import socket
from collections.abc import Iterator

import pytest
from beowire import ethtool
from beowire.doctor import answers, arp, facts, probe
from beowire.doctor.examine import State, examine
from beowire.doctor.node import Goal, Node
from beowire.doctor.registry import ALL
from beowire.doctor.source import Source
from pyroute2 import IPRoute
from pyroute2.nftables.main import NFTables
from world import PEER, Layered, World

_SIX = "fd00:9::9"


@pytest.fixture
def world() -> Iterator[World]:
    made = World("throughput")

    def address(interface: str, text: str) -> None:
        with IPRoute() as route:
            index = route.link_lookup(ifname=interface)[0]
            route.addr("add", index=index, address=text, prefixlen=64, flags=2)  # IFA_F_NODAD

    made.run(address, "n0", "fd00:9::1")
    made.run_there(address, "n1", _SIX)
    yield made
    made.close()


def _narrow() -> None:
    with IPRoute() as route:
        route.link("set", index=route.link_lookup(ifname="n1")[0], mtu=4000)


@pytest.mark.parametrize("host", [PEER, _SIX])
def test_the_largest_packet_that_passes_is_found(world: World, host: str) -> None:
    found = world.run(probe.path_to, host, 0.01)
    assert (found["interface"], found["passes"]) == ("n0", found["mtu"])
    world.run_there(_narrow)
    found = world.run(probe.path_to, host, 0.01)
    assert found["passes"] == 4000 < found["mtu"]
    assert not world.run(probe.echo, host, 4005, 0.1)  # veth lets a VLAN tag more pass


def test_a_host_that_does_not_answer_passes_nothing(world: World) -> None:
    assert world.run(probe.path_to, "fd00:9::7", 0.01)["passes"] == 0
    with pytest.raises(socket.gaierror):
        world.run(probe.echo, "no-such-host.invalid", 64)


@pytest.mark.parametrize("kind", ["blackhole", "prohibit", "unreachable", "", "filter"])
def test_no_way_to_the_peer_is_a_finding(world: World, kind: str) -> None:
    def break_route() -> None:
        with IPRoute() as route:
            if kind:
                route.route("add", dst=f"{PEER}/32", type=kind)
            else:
                route.flush_addr(index=route.link_lookup(ifname="n0")[0], family=socket.AF_INET)
                route.flush_addr(index=route.link_lookup(ifname="m0")[0], family=socket.AF_INET)

    def filter_out() -> None:
        with NFTables(nfgen_family=2) as netfilter:
            netfilter.table("add", name="planted")
            netfilter.chain(
                "add", table="planted", name="out", hook="output", type="filter", policy=0
            )

    world.run(filter_out if kind == "filter" else break_route)
    done = world.examine("path.mtu")
    (outcome,) = done.outcomes
    assert outcome.state is State.BAD, outcome
    assert not done.troubles


def test_an_address_that_two_interfaces_hold_is_found(world: World) -> None:
    """The peer's, by both interfaces of a bridge's two ports as two nodes would have it."""

    def second() -> str:
        with IPRoute() as route:
            below = route.link_lookup(ifname="n1")[0]
            route.link("add", ifname="v1", kind="macvlan", link=below, macvlan_mode="bridge")
            index = route.link_lookup(ifname="v1")[0]
            route.addr("add", index=index, address=PEER, prefixlen=24)
            route.link("set", index=index, state="up")
            return str(next(iter(route.get_links(index))).get_attr("IFLA_ADDRESS"))

    (outcome,) = world.examine("path.holders").outcomes
    assert outcome.state is State.GOOD, outcome
    assert f"10.9.9.1, {PEER}" in outcome.said
    address = world.run_there(second)
    (outcome,) = world.examine("path.holders").outcomes
    assert outcome.state is State.BAD, outcome
    assert address in outcome.said
    assert "this node's" not in outcome.said


def test_holders_that_may_not_be_asked_are_not_good(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(arp, "holders", refused)
    done = world.examine("path.holders")
    assert [each.state for each in done.outcomes] == [State.DENIED]
    assert not done.troubles


def _used(world: World) -> dict[str, set[str]]:
    """The findings of the link on the interfaces that the doctor chooses by itself."""

    def act() -> dict[str, set[str]]:
        source = Source()
        try:
            done = examine(Node(source, Goal.LATENCY), [ALL["link.carrier"], ALL["link.address"]])
        finally:
            source.close()
        names = [each.name for each in done.node.interfaces]
        bad = done.findings()
        return {name: {each.check.name for each in bad if each.interface == name} for name in names}

    return world.run(act)


def test_what_fell_out_of_use_stays_in_the_verdict(world: World) -> None:
    assert world.run(probe.echo, PEER, 64)
    assert world.run_there(probe.echo, "10.9.9.1", 64)
    assert _used(world)["n0"] == set()

    def set_down() -> None:
        with IPRoute() as route:
            route.link("set", index=route.link_lookup(ifname="n0")[0], state="down")

    def lose_addresses() -> None:
        with IPRoute() as route:
            index = route.link_lookup(ifname="n0")[0]
            route.flush_addr(index=index)
            route.link("set", index=index, state="up")

    world.run(set_down)
    assert _used(world)["n0"] == {"link.carrier"}
    world.run(lose_addresses)
    assert _used(world)["n0"] == {"link.address"}


def test_firmware_is_told_where_there_is_any(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert world.run(ethtool.firmware, "n0") == ""  # a virtual link has none
    assert "n0" not in world.run(answers.firmware)
    with pytest.raises(OSError, match="No such device"):
        world.run(ethtool.firmware, "absent")
    monkeypatch.setattr(ethtool, "firmware", lambda name: "1.2" if name == "n0" else "")
    assert world.run(answers.firmware) == {"n0": "1.2"}


def test_facts_have_the_firmware_of_nics_and_of_processors(world: World) -> None:
    def tell() -> dict[str, str]:
        source = Layered(world.good)
        node = Node(source, Goal.THROUGHPUT)
        node.interfaces = tuple(each for each in node.all_interfaces() if each.name == "n0")
        return facts.facts(node)

    world.good.answers["firmware"] = {"n0": "14.32.1010"}
    world.good.files["/proc/cpuinfo"] = (
        "processor\t: 0\nmodel name\t: A\nmicrocode\t: 0x1\n\n"
        "processor\t: 1\nmodel name\t: A\nmicrocode\t: 0x2\n"
    )
    told = world.run(tell)
    assert told["n0 firmware"] == "14.32.1010"
    assert told["processor model"] == "A"
    assert told["microcode"] == "0x1, 0x2"
