# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs are what their topology says, and change while programs run."""

import contextlib
import errno
import json
import signal
import socket
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import astuple
from functools import partial
from pathlib import Path

import beowire_cli
import pytest
import traffic
import typer.main
from beowire import namespaces
from beowire.doctor.ethtool_netlink import Ethtool
from beowire.errors import BeowireError
from beowire.lab import address, cli, lab, link_cli, place, status, up
from beowire.topology import catalogue, reader
from beowire.topology.topology import CLEAR, Model
from beowire_cli import COMMAND, beowire, traces
from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from traffic import raw_frame, receiving, send_raw

pytestmark = pytest.mark.skipif(
    beowire_cli.NO_NAMESPACES is not None, reason=f"raw frames: {beowire_cli.NO_NAMESPACES}"
)

ROUTED = """
[defaults]
mtu = 1500
[[nodes]]
name = "node"
count = 2
[[switches]]
name = "east"
[[switches]]
name = "west"
[[routers]]
name = "router"
[[links]]
a = "node1"
b = "east"
[[links]]
a = "node2"
b = "west"
[[links]]
name = "up-east"
a = "router"
b = "east"
[[links]]
name = "up-west"
a = "west"
b = "router"
"""

PAIR = """
[[nodes]]
name = "node"
count = 2
[[links]]
name = "cable"
a = "node1"
b = "node2"
"""


def refused(*arguments: str) -> str:
    """The error of a command of `beowire lab` that must fail."""
    with pytest.raises(BeowireError) as error:
        typer.main.get_command(cli.app)(list(arguments), standalone_mode=False)
    assert error.value.fix
    return " ".join(str(error.value).split())


def lab_of(name: str, text: str) -> lab.Lab:
    return up.up_topology(name, reader.parse(text, "test", "test.toml"))


def kinds(made: lab.Lab) -> dict[str, str]:
    return {name: wire.kind for name, wire in lab.load(made.name).wires.items()}


def numbered(count: int) -> list[bytes]:
    return [raw_frame(number.to_bytes(4, "big") + bytes(96)) for number in range(count)]


def arriving(made: lab.Lab, sender: str, receiver: str, frames: list[bytes], expected: int) -> int:
    """How many of the frames arrive, not counting others; so many are waited for."""
    with receiving(made, receiver, least=expected) as received:
        send_raw(made, sender, frames)
    return len(received.frames)


def peer_of_tcp(made: lab.Lab, sender: str, receiver: str) -> str:
    """The address that the receiver of a connection is seen to have."""
    listener = namespaces.within(
        made.namespace_path(receiver), partial(socket.create_server, ("", 7))
    )
    with listener:
        connect = partial(socket.create_connection, (made.address(receiver), 7))
        with namespaces.within(made.namespace_path(sender), connect) as stream:
            return str(stream.getpeername()[0])


@pytest.mark.parametrize("name", ["pair", "bonded", "mixed-mtu", "beowulf4"])
def test_a_ready_topology_is_made_and_leaves_nothing(name: str, lab_name: str) -> None:
    made = up.up_topology(lab_name, catalogue.find(name))
    for node in made.node_names()[1:]:
        assert peer_of_tcp(made, "node1", node) == made.address(node)
        assert arriving(made, "node1", node, numbered(5), 5) == 5
    up.down(lab_name)
    assert traces(lab_name) == []


def test_a_lab_of_nodes_is_a_topology_as_well(lab_name: str) -> None:
    made = up.up(lab_name, 3, 1500)
    assert made.topology.node_names() == ["node1", "node2", "node3"]
    assert kinds(made) == dict.fromkeys(made.node_names(), "plain")


def test_two_channels_are_two_networks(lab_name: str) -> None:
    up.up_topology(lab_name, catalogue.find("bonded"))
    made = lab.load_ready(lab_name)
    script = "cat /etc/hosts; ls /sys/class/net"
    told = beowire("lab", "exec", lab_name, "node1", "--", "sh", "-c", script).output.split()
    assert {"eth0", "eth1", "node2", "node2-eth1"} <= set(told)
    first, second = made.addresses["node3"].values()
    assert first.rpartition(".")[0] != second.rpartition(".")[0]
    assert made.network().endswith("/23")


def test_long_packets_pass_only_where_every_switch_has_jumbo_frames(lab_name: str) -> None:
    made = up.up_topology(lab_name, catalogue.find("mixed-mtu"))
    frames = [raw_frame(bytes(size)) for size in (1500, 1501, 9000)]
    assert arriving(made, "node1", "node2", frames, 3) == 3
    assert arriving(made, "node1", "node3", frames, 1) == 1
    assert arriving(made, "node4", "node3", frames, 1) == 1


def test_routers_pass_ip_and_no_raw_frames(lab_name: str) -> None:
    made = lab_of(lab_name, ROUTED)
    assert peer_of_tcp(made, "node1", "node2") == made.address("node2")
    assert peer_of_tcp(made, "node2", "node1") == made.address("node1")
    assert arriving(made, "node1", "node2", numbered(5), 0) == 0
    assert arriving(made, "node1", "router", numbered(5), 5) == 5
    assert beowire("lab", "exec", lab_name, "router", "--", "hostname").output == "router\n"


def test_routes_lead_through_several_routers() -> None:
    text = ROUTED + (
        '[[nodes]]\nname = "far"\n[[routers]]\nname = "second"\n[[switches]]\nname = "north"\n'
        '[[links]]\na = "far"\nb = "north"\n[[links]]\na = "second"\nb = "west"\n'
        '[[links]]\na = "second"\nb = "north"\n'
    )
    read = reader.parse(text, "test", "test.toml")
    addresses = address.assign(read, ["10.0.0", "10.0.1", "10.0.2"])
    assert [(each.network, each.gateway) for each in address.routes(read, addresses, "far")] == [
        ("10.0.0.0/24", "10.0.2.253"),
        ("10.0.1.0/24", "10.0.2.253"),
    ]
    assert [(each.network, each.gateway) for each in address.routes(read, addresses, "node1")] == [
        ("10.0.1.0/24", "10.0.0.254"),
        ("10.0.2.0/24", "10.0.0.254"),
    ]


def test_given_addresses_are_used(lab_name: str) -> None:
    text = PAIR.replace("count = 2\n", "") + '[[nodes]]\nname = "other"\n'
    text = text.replace('"node1"', '"node"').replace('"node2"', '"other"')
    for name, given in (("node", "172.20.9.7/24"), ("other", "172.20.9.8/24")):
        text = text.replace(
            f'name = "{name}"\n', f'name = "{name}"\ninterfaces.eth0.address = "{given}"\n'
        )
    made = lab_of(lab_name, text)
    assert made.address("other") == "172.20.9.8"
    assert peer_of_tcp(made, "node", "other") == "172.20.9.8"


def test_each_direction_has_a_rate_of_its_own(lab_name: str) -> None:
    made = lab_of(lab_name, PAIR + 'ab.rate = "40M"\nba.rate = "10M"\n')
    assert kinds(made) == {"cable": "kernel"}
    frame, seconds = raw_frame(bytes(1500)), 1.0
    for sender, receiver, bits in (("node1", "node2", 40e6), ("node2", "node1", 10e6)):
        flood = partial(traffic.flood_raw, made, sender, frame, seconds)
        traffic.assert_rate(made, receiver, flood, bits)


def test_losses_are_counted_by_link_and_direction(lab_name: str) -> None:
    made = lab_of(lab_name, PAIR + "ab.loss = 1.0\n")
    assert arriving(made, "node1", "node2", numbered(50), 0) == 0
    assert arriving(made, "node2", "node1", numbered(50), 50) == 50
    (told,) = json.loads(beowire("lab", "link", "show", lab_name, "--json").output)
    assert told["counts"]["ab"]["lost"] >= 50
    assert told["counts"]["ba"]["lost"] == 0


def test_a_link_changes_its_kind_under_traffic(two_nodes: lab.Lab) -> None:
    assert kinds(two_nodes)["node1"] == "plain"
    for words, kind, expected in (
        (["loss=100%"], "kernel", 0),
        (["loss=0", "rate=1G"], "kernel", 50),
        (["rate=0", "ab.mtu=90"], "plain", 0),
        (["ab.mtu=0"], "plain", 50),
    ):
        link_cli.set_(two_nodes.name, "node1", words)
        assert kinds(two_nodes) == {"node1": kind, "node2": "plain"}
        assert arriving(two_nodes, "node1", "node2", numbered(50), expected) == expected
    assert lab.load(two_nodes.name).link("node1").ab == CLEAR


@pytest.mark.parametrize(
    "change",
    [
        lambda name: cli.set_(name, corrupt="50%"),
        lambda name: link_cli.set_(name, "all", ["corrupt=50%"]),
    ],
    ids=["shape", "link"],
)
def test_a_change_keeps_what_another_one_just_changed(
    change: Callable[[str], None], two_nodes: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins with the links as they are once it is its turn."""
    real = up.locked

    @contextlib.contextmanager
    def late() -> Iterator[None]:
        monkeypatch.setattr(up, "locked", real)
        up.reshape(two_nodes.name, {"node1": lab.Shape(loss=0.25)})
        with real():
            yield

    monkeypatch.setattr(up, "locked", late)
    change(two_nodes.name)
    shape = lab.load(two_nodes.name).shape("node1")
    assert (shape.loss, shape.corrupt) == (0.25, 0.5)


def test_a_change_that_fails_leaves_the_link_as_it_was(
    two_nodes: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    up.set_links(two_nodes.name, {"node1": {"ab": Model(loss=1.0)}})
    monkeypatch.setenv("BEOWIRE_LINK", "/bin/false")
    with pytest.raises(BeowireError, match="did not start"):
        up.set_links(two_nodes.name, {"node1": {"ab": Model(delay_ns=1000)}})
    assert lab.load_ready(two_nodes.name).link("node1").ab == Model(loss=1.0)
    assert arriving(two_nodes, "node1", "node2", numbered(50), 0) == 0
    up.set_links(two_nodes.name, {"node1": {"ab": CLEAR}})
    assert arriving(two_nodes, "node1", "node2", numbered(50), 50) == 50


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["node9", "loss=1%"], "has no link node9"),
        (["node1", "loss"], "no setting of a link"),
        (["node1", "speed=1"], "keys are rate"),
        (["node1", "cd.loss=1%"], "no setting of a link"),
        (["node1", "loss=2"], "no share"),
        (["node1", "burst=3"], "burst without loss"),
        (["node1", "drop-raw=on", "delay=1ms"], "does not go together"),
    ],
)
def test_settings_that_cannot_be(words: list[str], said: str, job_lab: lab.Lab) -> None:
    assert said in refused("link", "set", job_lab.name, *words)
    assert lab.load(job_lab.name).link("node1").ab == CLEAR


def test_an_emulator_that_does_not_start_leaves_nothing(
    lab_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_LINK", "/bin/false")
    with pytest.raises(BeowireError, match="emulator of link cable did not start"):
        lab_of(lab_name, PAIR + 'delay = "1ms"\n')
    assert traces(lab_name) == []


def has_netem(made: lab.Lab) -> bool:
    """Whether the kernel takes netem at an interface of a node."""

    def add() -> bool:
        with IPRoute() as node:
            index = node.link_lookup(ifname="eth0")[0]
            try:
                node.tc("add", "netem", index=index, handle="1:", delay=0, loss=0)
            except NetlinkError as error:
                if error.code != errno.ENOENT:
                    raise
                return False
            return True

    return namespaces.within(made.namespace_path("node1"), add)


def test_netem_is_used_where_the_kernel_has_it_and_else_missed(two_nodes: lab.Lab) -> None:
    name, there = two_nodes.name, has_netem(two_nodes)
    up.down(name)
    text = PAIR + 'emulator = "netem"\nab.loss = 1.0\n'
    if there:
        made = lab_of(name, text)
        assert kinds(made) == {"cable": "netem"}
        assert arriving(made, "node1", "node2", numbered(50), 0) == 0
        assert arriving(made, "node2", "node1", numbered(50), 50) == 50
        return
    with pytest.raises(BeowireError, match="no netem") as missed:
        lab_of(name, text)
    assert "beowire-link" in missed.value.fix
    assert traces(name) == []


def test_the_same_name_twice(lab_name: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(PAIR)
    assert beowire("lab", "up", lab_name, "--topology", str(file)).status == 0
    assert f"./beowire lab down {lab_name}" in refused("up", lab_name, "--topology", "pair")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "x", "--topology", "no-such"], "There is no topology no-such"),
        (["up", "x", "--topology", "no/such.toml"], "cannot be read"),
        (["up", "x"], "either --nodes N or --topology"),
        (["up", "x", "--topology", "pair", "--nodes", "2"], "either --nodes N or --topology"),
        (["up", "x", "--topology", "pair", "--loss", "1%"], "stands in the topology"),
        (["up", "x", "--topology", "/dev/null"], "there are no nodes"),
        (["check", "no-such"], "There is no topology no-such"),
        (["graph", "no-such"], "There is no topology no-such"),
        (["shell", "no-such", "node1"], "no lab no-such"),
        (["capture", "no-such", "node1"], "no lab no-such"),
        (["status", "--live"], "Which lab?"),
        (["check-rates", "no-such"], "no lab no-such"),
        (["link", "set", "no-such", "node1", "loss=1%"], "no lab no-such"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    assert said in refused(*arguments)
    assert not lab.exists("x")


def test_a_file_with_a_mistake_is_told_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(PAIR + "rate = 0\n")
    for arguments in (["check", str(file)], ["up", "x", "--topology", str(file)]):
        assert f"{file}:9: rate: a rate of 0" in refused(*arguments)
    assert not lab.exists("x")


def test_a_good_file_is_checked_without_making_it(tmp_path: Path) -> None:
    file = tmp_path / "right.toml"
    file.write_text(ROUTED)
    answer = beowire("lab", "check", str(file))
    assert answer.status == 0
    assert "2 nodes, 2 switches, 1 routers, 4 links, 2 networks" in " ".join(answer.output.split())
    assert lab.labs_dir().is_dir() is False or file.stem not in lab.names()


def test_topologies_are_listed() -> None:
    told = beowire("lab", "topologies").output
    assert all(name in told for name in catalogue.names())


def test_frames_past_the_queueing_discipline_are_captured(
    two_nodes: lab.Lab, tmp_path: Path
) -> None:
    file = tmp_path / "frames.pcap"
    command = [*COMMAND, "lab", "capture", two_nodes.name, "node1", "-o", str(file), "--"]
    capture = subprocess.Popen(
        [*command, "-c", "3", "ether proto 0x88b6"], stderr=subprocess.PIPE, text=True
    )
    assert capture.stderr is not None
    while "listening on" not in capture.stderr.readline():
        assert capture.poll() is None
    send_raw(two_nodes, "node1", numbered(3))
    capture.communicate()
    assert capture.returncode == 0
    assert file.read_bytes().count(numbered(3)[2]) == 1


def test_the_drawing_has_every_device_and_what_its_links_do(tmp_path: Path) -> None:
    file = tmp_path / "sites.svg"
    assert beowire("lab", "graph", "two-sites", "-o", str(file)).status == 0
    image = ET.fromstring(file.read_text())
    words = {text for each in image.iter() if (text := each.text)}
    read = catalogue.find("two-sites")
    assert set(read.node_names()) | set(read.switch_names()) | {"router"} <= words
    assert {"1G", "100M, 12500us"} <= words
    lines = [each for each in image.iter() if each.tag.endswith("path")]
    assert len(lines) == len(read.links)


def test_a_lab_is_drawn_with_its_addresses(job_lab: lab.Lab) -> None:
    told = beowire("lab", "graph", job_lab.name).output
    assert job_lab.address("node1") in told


def test_status_tells_links(job_lab: lab.Lab) -> None:
    (told,) = json.loads(beowire("lab", "status", job_lab.name, "--json").output)
    assert told["nodes"] == 2
    assert [link["name"] for link in told["links"]] == ["node1", "node2"]
    assert told["links"][0] | {"counts": {}} == {
        "name": "node1",
        "a": "node1.eth0",
        "b": "switch",
        "made_by": "plain",
        "pid": 0,
        "offloads": True,
        "ab": {},
        "ba": {},
        "counts": {},
    }


def _active_features() -> list[str]:
    asked = Ethtool()
    active: list[str] = asked.get("eth0", "features")["active"]
    asked.close()
    return active


@pytest.mark.parametrize("offloads", [True, False])
def test_no_offload_makes_super_frames_once_they_are_off(lab_name: str, offloads: bool) -> None:
    """TCP's, UDP's and those that the kernel joins on receipt."""
    made = up.up(lab_name, 2, 1500, offloads=offloads)
    active = namespaces.within(made.namespace_path("node1"), _active_features)
    for each in ("tx-tcp-segmentation", "tx-udp-segmentation", "tx-generic-segmentation"):
        assert (each in active) == offloads, each
    assert "rx-gro" not in active or offloads


def test_live_rates_are_those_of_the_traffic(two_nodes: lab.Lab) -> None:
    up.set_links(two_nodes.name, {"node1": {"ab": Model(loss=1.0), "ba": Model(loss=0.5)}})
    made = lab.load_ready(two_nodes.name)
    before = status.flows(made)
    send_raw(made, "node1", numbered(100))
    send_raw(made, "node2", numbered(100))
    out, back, way = ("node1", "ab"), ("node1", "ba"), ("node2", "ab")

    def more(of: tuple[str, str]) -> status.Flow:
        now, then = status.flows(made)[of], before[of]  # type: ignore[index]
        return status.Flow(*(b - a for a, b in zip(astuple(then), astuple(now), strict=True)))

    traffic.until(lambda: more(out).lost >= 100 and more(way).frames >= 100)
    traffic.until(lambda: more(back).frames + more(back).lost >= 100)
    assert 10 < more(back).lost < 95


def test_processor_time_is_limited_equally(lab_name: str) -> None:
    text = PAIR.replace("count = 2", "count = 2\ncpus = 0.25")
    try:
        lab_of(lab_name, text)
    except BeowireError as error:
        pytest.skip(f"control groups: {error.what}")
    (told,) = json.loads(beowire("lab", "status", lab_name, "--json").output)
    assert {node: quota["cpus"] for node, quota in told["quotas"].items()} == {
        "node1": 0.25,
        "node2": 0.25,
    }
    script = (
        "import time; begin, end = time.process_time(), time.monotonic() + 1\n"
        "while time.monotonic() < end: pass\n"
        "print(time.process_time() - begin)"
    )
    spent = beowire("lab", "exec", lab_name, "node1", "--", "python3", "-c", script).output
    assert float(spent) < 0.25 * 1.5  # a period more, and what ran before the first
    # A launcher on one node enters another one, where the limit is to be seen too.
    enter = lab.load(lab_name).enter_path("node2")
    look = "cat /proc/self/cgroup; cat $(find /sys/fs/cgroup -path '*/node2/*' -name cpu.max -o "
    look += "-path '*/node2/*' -name cpu.cfs_quota_us)"
    seen = beowire("lab", "exec", lab_name, "node1", "--", "sh", str(enter), "sh", "-c", look)
    assert f"/beowire-{lab_name}/node2\n" in seen.output, seen.errors
    assert seen.output.split("\n")[-2].split()[0] == "5000"
    groups = [Path(place) for place in lab.load(lab_name).quotas.values()]
    assert all(group.is_dir() for group in groups)
    with subprocess.Popen(["sleep", "100"]) as entering:  # in its group, not yet on its node
        (groups[0] / "cgroup.procs").write_text(str(entering.pid))
        up.down(lab_name)
        assert entering.wait() == -signal.SIGKILL
    assert not any(group.exists() or group.parent.exists() for group in groups)


def test_nodes_of_a_lab_for_measuring_go_before_the_rest_of_the_machine(lab_name: str) -> None:
    try:
        lab_of(lab_name, "realtime = true\n" + PAIR.replace("count = 2", "count = 2\ncpus = 0.25"))
    except BeowireError as error:
        pytest.skip(f"control groups: {error.what}")
    (top,) = {Path(place).parent for place in lab.load(lab_name).quotas.values()}
    weights = {"cpu.weight": 100, "cpu.shares": 1024}  # of groups that nobody gave one
    found = {name: int((top / name).read_text()) for name in weights if (top / name).exists()}
    assert found
    assert all(found[name] >= 100 * weights[name] for name in found)


def test_rates_are_checked_with_both_kinds_of_sender(lab_name: str) -> None:
    lab_of(lab_name, PAIR + 'rate = "20M"\n')
    answer = beowire("lab", "check-rates", lab_name, "--seconds", "1", "--json")
    checks = json.loads(answer.output)
    assert [(each["sender"], each["receiver"]) for each in checks] == [
        ("node1", "node2"),
        ("node2", "node1"),
    ]
    for each in checks:
        assert each["limit_bits"] == 20_000_000
        # What a busy machine takes off from both alike has to be borne, whatever it is; nothing may
        # come on top but a burst.
        assert 0.2 * 20e6 < each["tcp_bits"] < 1.05 * 20e6
        assert 0.2 * 20e6 < each["raw_bits"] < 1.05 * 20e6
        assert each["offered_bits"] > 1.1 * 20e6
        assert each["good"]
    assert answer.status == 0


def test_a_rate_that_only_one_sender_meets_is_noticed(lab_name: str) -> None:
    """A token bucket on the node's own egress: what bypasses it is faster than TCP."""
    made = lab_of(lab_name, PAIR + 'rate = "100M"\n')

    def pace_the_node() -> None:
        with IPRoute() as node:
            index = node.link_lookup(ifname="eth0")[0]
            node.tc(
                "add", "tbf", index=index, handle="1:", rate=500_000, burst=20_000, limit=60_000
            )

    namespaces.within(made.namespace_path("node1"), pace_the_node)
    answer = beowire("lab", "check-rates", lab_name, "--seconds", "0.3")
    assert answer.status == 1
    assert "not seen to get the same rate" in answer.errors


def test_interrupted_making_of_a_topology_leaves_nothing(lab_name: str) -> None:
    process = subprocess.Popen(
        [*COMMAND, "lab", "up", lab_name, "--topology", "bonded"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (lab.labs_dir() / lab_name / "lab.json").exists() and process.poll() is None:
        time.sleep(0.002)
    process.terminate()
    process.communicate()
    if lab.exists(lab_name):
        assert lab.load(lab_name).ready
    else:
        assert process.returncode != 0
        assert traces(lab_name) == []


def test_a_place_is_the_switch_of_the_link() -> None:
    read = reader.parse(ROUTED, "test", "test.toml")
    places = {link.name: place.place(read, link) for link in read.links}
    assert {name: (where.namespace, where.inward) for name, where in places.items()} == {
        "node1": ("east", "ab"),
        "node2": ("west", "ab"),
        "up-east": ("east", "ab"),
        "up-west": ("west", "ba"),
    }
