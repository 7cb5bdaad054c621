# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which processors ranks get: on a machine of four NUMA nodes in a ring, two cores of two
processors at each (node N has 4N to 4N + 3, of which the first and third share a core), its
interface at node 2."""

from dataclasses import replace

import pytest
from beowire.errors import BeowireError
from beowire.placement.choice import choose
from beowire.placement.machine import Interface, Machine, listed, numbers, read

FACTS = """\
cpus_allowed_list: 0-15
mems_allowed_list: 0-3
capeff: 0000000000000000
limit nice: 30
limit rt: 5
nice: 0
node 0: 0-3
node 1: 4-7
node 2: 8-11
node 3: 12-15
distance 0: 10 20 30 20
distance 1: 20 10 20 30
distance 2: 30 20 10 20
distance 3: 20 30 20 10
interface eth0: 2 up default
interface eth1: -1 down
numactl: yes
""" + "".join(f"core {cpu}: {cpu & ~2},{cpu | 2}\n" for cpu in range(16))


@pytest.fixture
def machine() -> Machine:
    return read("node1", FACTS.encode())


def test_facts_are_read(machine: Machine) -> None:
    assert machine.nodes[3] == (12, 13, 14, 15)
    assert machine.core(9) == (9, 11)
    assert machine.far(2, 0) == 30
    assert machine.interfaces["eth0"] == Interface(2, up=True, default=True)
    assert machine.interfaces["eth1"].node is None
    assert machine.nice_least == -10
    assert machine.numactl


def test_who_has_the_right_has_no_limit() -> None:
    able = read("x", FACTS.replace("capeff: 0000000000000000", "capeff: 0000000000800000").encode())
    assert (able.nice_least, able.rt_most) == (-20, 99)


def test_only_processors_that_may_be_used_count() -> None:
    facts = FACTS.replace("cpus_allowed_list: 0-15", "cpus_allowed_list: 3-5,8")
    machine = read("node1", facts.encode())
    assert machine.nodes == {0: (3,), 1: (4, 5), 2: (8,)}
    assert machine.core(8) == (8,)


@pytest.mark.parametrize(
    "facts",
    [
        "",
        "cpus_allowed_list: 0-x\nmems_allowed_list: 0\n",
        "cpus_allowed_list: 0-99999999\nmems_allowed_list: 0\n",
        FACTS.replace("10 20 30 20", "10 20 30"),
        FACTS + "core 15: 0-9999\n",
        FACTS.replace("eth0: 2 up", "eth0: up"),
        "x" * (5 << 20),
    ],
)
def test_facts_that_are_none_are_refused_by_the_host_s_name(facts: str) -> None:
    with pytest.raises(BeowireError, match="What node9 tells"):
        read("node9", facts.encode())


def test_near_fills_the_interface_s_node_first(machine: Machine) -> None:
    made = choose(machine, "near", 2)
    assert made.processors == [(8, 10), (9, 11)]
    assert "node 2 on, where eth0 is" in made.why
    # Rather a processor of a core that is in use than another node.
    assert choose(machine, "near", 4).processors == [(8,), (9,), (10,), (11,)]
    assert choose(machine, "near", 5).processors[4] == (4, 6)  # the nearer of 1 and 3 by number
    assert not made.shared


def test_latency_has_a_core_for_each_rank(machine: Machine) -> None:
    made = choose(machine, "latency", 4)
    assert made.processors == [(8, 10), (9, 11), (4, 6), (5, 7)]
    assert choose(machine, "latency", 9).processors[0] == (8,)


@pytest.mark.parametrize("way", ["spread", "bandwidth"])
def test_all_nodes_are_used(machine: Machine, way: str) -> None:
    made = choose(machine, way, 5)  # type: ignore[arg-type]
    assert made.processors == [(0, 2), (4, 6), (8, 10), (12, 14), (1, 3)]


def test_more_ranks_than_processors_share(machine: Machine) -> None:
    made = choose(machine, "near", 17)
    assert made.shared
    assert made.processors[16] == made.processors[0]
    assert {cpu for each in made.processors for cpu in each} == set(range(16))


def test_the_interface_that_is_named_decides(machine: Machine) -> None:
    two = {**machine.interfaces, "eth2": Interface(1, up=True, default=False)}
    both = replace(machine, interfaces=two)
    assert choose(both, "near", 1).processors == [(8, 10)]  # of the default route
    assert choose(both, "near", 1, "eth2").processors == [(4, 6)]


def test_what_is_not_known_is_told(machine: Machine) -> None:
    unknown = choose(machine, "near", 1, "br0")
    assert unknown.processors == [(0, 2)]
    assert "no node is known of br0" in unknown.why
    few = replace(machine, nodes={0: (0, 1), 1: (4, 5)})
    beside = choose(few, "near", 1)
    assert beside.processors == [(4,)]
    assert "the nearest to node 2 of eth0" in beside.why


def test_lists_are_as_the_kernel_writes_them() -> None:
    assert numbers("0-2,7") == (0, 1, 2, 7)
    assert numbers("\n") == ()
    assert listed([7, 2, 1, 0]) == "0-2,7"
    for wrong in ("1-", "-1", "3-1", "1,,2", "0x1"):
        with pytest.raises(ValueError, match=r".*"):
            numbers(wrong)
