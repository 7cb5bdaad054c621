# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Topologies in files: what stands in them is what is read, and what is wrong is told with its
line."""

import contextlib
import dataclasses
import itertools
import json
import re
import tomllib

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.topology import catalogue, keys, reader, toml_lines, topology
from beowire.topology.topology import End, Model, Topology
from hypothesis import given
from hypothesis import strategies as st

TWO = """
[[nodes]]
name = "node"
count = 2

[[switches]]
name = "switch"

[[links]]
a = "node[1-2]"
b = "switch"
"""


def parse(text: str) -> Topology:
    return reader.parse(text, "test", "test.toml")


def complaint(text: str) -> str:
    with pytest.raises(BeowireError) as refused:
        parse(text)
    return refused.value.what


def test_the_ready_ones_are_these() -> None:
    wanted = {"pair", "beowulf4", "beowulf16", "two-sites", "mvs1000", "bonded", "mixed-mtu"}
    assert wanted <= set(catalogue.names())


@pytest.mark.parametrize("name", catalogue.names())
def test_a_ready_one_is_good_and_survives_writing_down(name: str) -> None:
    read = catalogue.find(name)
    assert read.nodes
    assert read.description
    assert topology.decode(json.loads(json.dumps(dataclasses.asdict(read)))) == read


def test_sets_are_spelled_out() -> None:
    read = parse(TWO)
    assert read.node_names() == ["node1", "node2"]
    assert [(link.name, link.a, link.b) for link in read.links] == [
        ("node1", End("node1", "eth0"), End("switch")),
        ("node2", End("node2", "eth0"), End("switch")),
    ]
    assert read.links[0].line == 9


def test_nodes_at_a_switch_are_what_the_option_makes() -> None:
    read, made = parse(TWO), topology.plain(2, topology.MTU_DEFAULT_BYTES)
    assert (read.nodes, read.switches, read.links) == (made.nodes, made.switches, made.links)


def test_a_direction_overrides_the_link_and_the_link_the_defaults() -> None:
    text = TWO + 'rate = "100M"\nba = { rate = "1G", loss = "1%" }\n'
    read = parse('[defaults]\nrate = "10M"\ndelay = "5us"\n' + text)
    assert read.links[0].ab == Model(rate_bits=100_000_000, delay_ns=5000)
    assert read.links[0].ba == Model(rate_bits=10**9, delay_ns=5000, loss=0.01)


def test_every_setting_is_read() -> None:
    values = {
        "rate": '"2.5G"',
        "delay": '"1ms"',
        "jitter": '"10us"',
        "loss": "0.02",
        "burst": "3",
        "duplicate": '"1%"',
        "reorder": '"2%"',
        "corrupt": '"0.1%"',
        "queue": '"64Ki"',
        "mark": "20000",
        "coalesce": '"100us"',
    }
    read = parse(TWO + "".join(f"{key} = {value}\n" for key, value in values.items()))
    assert read.links[0].ab == Model(
        rate_bits=2_500_000_000,
        delay_ns=1_000_000,
        jitter_ns=10_000,
        loss=0.02,
        burst_frames=3,
        duplicate=0.01,
        reorder=0.02,
        corrupt=0.001,
        queue_bytes=65536,
        mark_bytes=20000,
        coalesce_ns=100_000,
    )


def test_a_nic_for_throughput_gathers_what_it_receives() -> None:
    read = parse(TWO.replace("count = 2", 'count = 2\nnic = "throughput"'))
    assert (read.links[0].ab.coalesce_ns, read.links[0].ba.coalesce_ns) == (0, 125_000)
    assert parse(TWO).links[0].ba.coalesce_ns == 0


def test_an_old_switch_drops_what_is_longer_than_its_mtu() -> None:
    read = parse(TWO.replace('"switch"\n\n', '"switch"\nmtu = 1500\n\n'))
    assert read.hosts()[0].interfaces[0].mtu_bytes == topology.MTU_DEFAULT_BYTES
    assert (read.links[0].ab.mtu_bytes, read.links[0].ba.mtu_bytes) == (1500, 1500)


def test_an_mtu_of_the_link_is_that_of_its_interfaces() -> None:
    read = parse(TWO + "mtu = 1500\n")
    assert read.hosts()[0].interfaces[0].mtu_bytes == 1500
    assert read.links[0].ab.mtu_bytes == 0


def test_addresses_and_names_of_interfaces_are_kept() -> None:
    read = parse(
        """
[[nodes]]
name = "left"
interfaces.fast0 = { address = "192.168.7.1/24", mtu = 3000 }
[[nodes]]
name = "right"
interfaces.eth0 = { address = "192.168.7.9/24" }
[[links]]
name = "cable"
a = "left.fast0"
b = "right"
"""
    )
    assert read.host("left").interfaces == (topology.Interface("fast0", 3000, "192.168.7.1/24"),)
    assert read.host("right").interfaces[0].address == "192.168.7.9/24"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (TWO + "rate = 0\n", 12, "a rate of 0 lets nothing pass"),
        (TWO + 'rate = "fast"\n', 12, "no rate"),
        (TWO + 'loss = "101%"\n', 12, "no share"),
        (TWO + "loss = nan\n", 12, "no share"),
        (TWO + 'delay = "5"\n', 12, "no time"),
        (TWO + 'delay = "200s"\n', 12, "no time"),
        (TWO + "mtu = 65536\n", 12, "no MTU that the devices take: 68 to 65535"),
        (TWO + "mtu = 67\n", 12, "no MTU"),
        (TWO + "mtu = true\n", 12, "no MTU"),
        (TWO + "dealy = 3\n", 12, "unknown key dealy of links: did you mean delay?"),
        (TWO + 'ab = { rate = "x" }\n', 12, "no rate"),
        (TWO + 'ab = { name = "x" }\n', 12, "unknown key name"),
        (TWO + "ab = 3\n", 12, "links.ab is no table"),
        (TWO + 'offloads = "no"\n', 12, "neither true nor false"),
        (TWO + 'emulator = "magic"\n', 12, "none of auto, kernel, beowire-link, netem"),
        (TWO + 'burst = 3\nloss = "1%"\nname = "n"\n', 14, "one name for several links"),
        (TWO.replace("count = 2", "count = 0"), 4, "no number of devices"),
        (TWO.replace("count = 2", "count = 2\ncpus = 0"), 5, "no share of processors"),
        (TWO.replace('name = "node"\n', ""), 2, "without name"),
        (TWO.replace('"node"', '"Node"'), 3, "'Node1' is no name"),
        (TWO.replace('"switch"\n\n', '"node2"\n\n'), 7, "there is a node node2 already, on line 2"),
        (TWO.replace("[1-2]", "[1-3]"), 10, "no device node3"),
        (TWO.replace("[1-2]", ""), 10, "no device node; its nodes are node[1-2]"),
        (TWO.replace("[1-2]", "[1-"), 10, "cannot be read"),
        (TWO.replace('"switch"\n\n', '"switch"\nmtu = "x"\n\n'), 8, "no MTU"),
        (TWO + '[[links]]\na = "switch"\nb = "switch"\n', 12, "from switch to itself"),
        (TWO + '[[nodes]]\nname = "alone"\n', 12, "node alone has no link"),
        (TWO + '[[switches]]\nname = "alone"\n', 12, "switch alone has no link"),
        (TWO + '[[routers]]\nname = "r"\n[[links]]\na = "r"\nb = "switch"\n', 12, "joins nothing"),
        (TWO + '[[links]]\na = "node1"\nb = "switch"\n', 2, "are in one network"),
        (TWO + '[[links]]\na = "node1.eth0"\nb = "switch"\n', 12, "has a link already"),
        (TWO + '[[links]]\na = "node1"\nb = "switch.eth0"\n', 14, "its ports have no names"),
        (TWO + 'emulator = "kernel"\ndelay = "1ms"\n', 9, "more than the kernel's"),
        (TWO + 'jitter = "1ms"\n', 9, "jitter above the delay"),
        (TWO + "burst = 5\n", 9, "burst without loss"),
        (TWO + 'drop-raw = true\ndelay = "1ms"\n', 9, "does not go together"),
        (TWO + "[[links]]\na = 3\nb = 4\n", 13, "is no text"),
        ('emulator-cpus = "2-"\n' + TWO, 1, "no list of processors"),
        ('realtime = "yes"\n' + TWO, 1, "neither true nor false"),
        ("seed = -1\n" + TWO, 1, "no seed"),
        ("nodes = 3\n", 1, "write [[nodes]]"),
        ("\n[[nodes]]\nname = 'a'\n[[nodes]]\nname = 'a'\n", 5, "there is a node a already"),
        ("description = 'nothing'\n", 1, "there are no nodes"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int, said: str) -> None:
    told = complaint(text)
    assert said in told
    assert any(
        each.startswith(f"test.toml:{line}: ") for each in told.splitlines() if said in each
    ), told


def test_no_toml_is_told_with_its_line() -> None:
    assert "at line 2" in complaint("a = 1\nb = = 2\n")


def test_all_that_is_wrong_is_told_at_once() -> None:
    assert len(complaint(TWO + "rate = 0\nmtu = 3\nspeed = 1\n").splitlines()) == 3


SITES = """
[[nodes]]
name = "a"
[[nodes]]
name = "b"
[[switches]]
name = "east"
[[switches]]
name = "west"
[[links]]
a = "a"
b = "east"
[[links]]
a = "b"
b = "west"
"""


def test_sites_without_a_router() -> None:
    assert complaint(SITES).startswith("test.toml:4: nothing joins b to a")


def test_sites_with_a_router_are_two_networks() -> None:
    text = '[[routers]]\nname = "r"\n[[links]]\na = "r"\nb = "east"\n[[links]]\na="r"\nb="west"\n'
    read = parse(SITES + text)
    assert [[str(end) for end in ends] for ends in read.networks()] == [
        ["a.eth0", "r.eth0"],
        ["b.eth0", "r.eth1"],
    ]


def test_two_switches_in_a_loop() -> None:
    wires = '[[links]]\nname = "x{}"\na = "east"\nb = "west"\n'
    told = complaint(SITES + wires.format(1) + wires.format(2))
    assert told.startswith("test.toml:20: ")
    assert "loop of switches" in told


def test_a_loop_is_found_whatever_the_order_of_its_links() -> None:
    """The one that closes it is named."""
    ring = [("s1", "s2"), ("s2", "s3"), ("s3", "s1")]
    head = TWO.replace('b = "switch"', 'b = "s1"').replace('"switch"', '"s1"')
    head += "".join(f'[[switches]]\nname = "{name}"\n' for name in ("s2", "s3"))
    for order in itertools.permutations(ring):
        for turned in itertools.product((False, True), repeat=3):
            ways = [way[::-1] if turn else way for way, turn in zip(order, turned, strict=True)]
            links = [
                f'[[links]]\nname = "x{number}"\na = "{a}"\nb = "{b}"\n'
                for number, (a, b) in enumerate(ways)
            ]
            line = (head + "".join(links[:2])).count("\n") + 1
            told = complaint(head + "".join(links))
            assert told.startswith(f"test.toml:{line}: "), (ways, told)
            assert "loop of switches" in told
            parse(head + "".join(links[:2]))


def test_a_loop_without_a_switch() -> None:
    ring = '[[nodes]]\nname = "n"\ncount = 3\n' + "".join(
        f'[[links]]\nname = "c{a}"\na = "n{a}"\nb = "n{b}"\n' for a, b in ((1, 2), (2, 3), (3, 1))
    )
    told = complaint(ring)
    assert "test.toml:12: " in told
    assert "loop without a switch" in told


ADDRESSED = """
[[nodes]]
name = "a"
interfaces.eth0 = {{ address = "{}" }}
[[nodes]]
name = "b"
interfaces.eth0 = {{ address = "{}" }}
[[links]]
name = "cable"
a = "a"
b = "b"
"""


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("10.1.1.1/24", "10.1.1.1/24", "b.eth0 and a.eth0 have one address"),
        ("10.1.1.1/24", "10.1.2.1/24", "several subnets"),
        ("10.1.1.1", "10.1.1.2", "write 10.1.1.1/24"),
        ("10.1.1.0/24", "10.1.1.2/24", "no host's address"),
        ("10.1.1.1/24", "10.1.1.255/24", "no host's address"),
        ("10.1.1.1/24", "10.1.1.300/24", "no address"),
    ],
)
def test_addresses_that_cannot_be(first: str, second: str, said: str) -> None:
    assert said in complaint(ADDRESSED.format(first, second))


def test_an_address_for_several_nodes() -> None:
    text = TWO.replace("count = 2", 'count = 2\ninterfaces.eth0.address = "10.0.0.1/24"')
    assert "one address for several nodes" in complaint(text)


def test_an_interface_without_link() -> None:
    text = TWO.replace("count = 2", "count = 2\ninterfaces.eth7.mtu = 1500")
    assert complaint(text).startswith("test.toml:5: node1.eth7 has no link")


@given(st.text(max_size=200))
def test_any_text_is_a_topology_or_refused(text: str) -> None:
    with pytest.raises(BeowireError):
        reader.parse(text, "test", "test.toml")


@given(st.data())
def test_a_damaged_file_is_a_topology_or_refused(data: st.DataObject) -> None:
    path = catalogue.directory() / "two-sites.toml"
    lines = path.read_text().splitlines()
    number = data.draw(st.integers(0, len(lines) - 1))
    change = data.draw(st.sampled_from(["drop", "double", "swap", "cut"]))
    if change == "drop":
        del lines[number]
    elif change == "double":
        lines.insert(number, lines[number])
    elif change == "swap":
        other = data.draw(st.integers(0, len(lines) - 1))
        lines[number], lines[other] = lines[other], lines[number]
    else:
        lines[number] = lines[number][: len(lines[number]) // 2]
    told = ""
    with contextlib.suppress(BeowireError):
        told = "a topology" if parse("\n".join(lines)).nodes else ""
    if not told:
        told = complaint("\n".join(lines))
    assert told.startswith(("a topology", "test.toml"))


_keys = st.sampled_from(["plain", '"quoted key"', "dotted.key", "'a.b'"])
_values = st.sampled_from(
    ["1", '"text"', "[1,\n 2]", "{ in = 1, there = { deep = 2 } }", "'''a\nb'''"]
)


@given(st.lists(st.tuples(st.integers(0, 2), _values), max_size=6), st.integers(0, 3))
def test_lines_are_those_of_the_text(tables: list[tuple[int, str]], blanks: int) -> None:
    """Every value that the standard parser knows has a line, and it is where the key was put."""
    text, expected, number = "\n" * blanks, {}, blanks + 1
    for index, (comments, value) in enumerate(tables):
        text += "# comment [[t]] = 1\n" * comments + f"[[t]] # {index}\n"
        number += comments
        expected["t", index] = number
        text += f"first = {value}\nlast.of = 0\n"
        expected["t", index, "first"] = number + 1
        expected["t", index, "last", "of"] = number + 2 + value.count("\n")
        number += 3 + value.count("\n")
    found = toml_lines.lines(text)
    assert {way: line for way, line in found.items() if way in expected} == expected

    def ways(value: object, way: toml_lines.Path) -> None:
        assert way == () or way in found
        pairs = value.items() if isinstance(value, dict) else ()
        for key, inner in [*pairs, *(enumerate(value) if isinstance(value, list) else ())]:
            ways(inner, (*way, key))

    ways(tomllib.loads(text), ())


_models = st.builds(
    Model,
    rate_bits=st.integers(keys.RATE_MIN_BITS, keys.RATE_MAX_BITS),
    delay_ns=st.integers(0, keys.DELAY_MAX_NS),
    loss=st.integers(0, 10**9).map(lambda parts: parts / 10**9),
    queue_bytes=st.integers(0, 10**9),
    mtu_bytes=st.one_of(st.just(0), st.integers(68, 65535)),
    drop_raw=st.booleans(),
)


@given(_models)
def test_settings_are_read_back_as_they_were_written(model: Model) -> None:
    words = keys.settings(model)
    read = {keys.KEYS[key].field: keys.KEYS[key].parse(text)
            for key, text in words.items()}  # fmt: skip
    assert Model(**read) == model


@st.composite
def _trees(draw: st.DrawFn) -> tuple[int, list[int], list[int]]:
    """A tree of switches (the parent of each but the first) and the switch of each node."""
    switches = draw(st.integers(1, 5))
    parents = [draw(st.integers(0, number)) for number in range(switches - 1)]
    homes = draw(st.lists(st.integers(0, switches - 1), min_size=switches, max_size=12))
    return switches, parents, homes


@given(_trees())
def test_a_tree_of_switches_is_one_network(tree: tuple[int, list[int], list[int]]) -> None:
    switches, parents, homes = tree
    text = f'[[nodes]]\nname = "n"\ncount = {len(homes)}\n'
    text += "".join(f'[[switches]]\nname = "s{number}"\n' for number in range(switches))
    text += "".join(
        f'[[links]]\na = "n{number}"\nb = "s{home}"\n' for number, home in enumerate(homes, 1)
    )
    wires = "".join(
        f'[[links]]\na = "s{number + 1}"\nb = "s{parent}"\n'
        for number, parent in enumerate(parents)
    )
    read = parse(text + wires)
    assert [len(ends) for ends in read.networks()] == [len(homes)]
    if parents:
        assert "loop of switches" in complaint(text + wires + '[[links]]\nname = "extra"\n'
                                               f'a = "s1"\nb = "s{parents[0]}"\n')  # fmt: skip


DOCUMENT = (places.root() / "docs" / "lab.md").read_text()


def test_the_documented_file_is_good() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", DOCUMENT, re.DOTALL)
    read = parse(example)
    assert len(read.nodes) == 8
    assert [read.links[-1].ab.rate_bits, read.links[-1].ba.rate_bits] == [10**8, 2 * 10**7]


def test_every_key_and_every_ready_topology_is_documented() -> None:
    described = set(re.findall(r"(?<=[`. ])[a-z0-9-]+(?=[`. ,])", DOCUMENT))
    assert set(keys.KEYS) | set(catalogue.names()) <= described
    tables = reader.TABLES.values()
    assert {key for readers in tables for key in readers} <= described
