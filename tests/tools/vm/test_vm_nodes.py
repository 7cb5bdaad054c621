# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests of several NUMA nodes: what their kernels then see."""

from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import kernels, nodes, several
from beowire.vm.guest import Guest, Seat
from beowire_cli import beowire

NODES = Path("/sys/devices/system/node")


def values(words: list[str], option: str) -> list[str]:
    return [words[i + 1] for i, word in enumerate(words) if word == option]


def test_a_guest_of_one_node_is_as_before() -> None:
    assert nodes.arguments(Guest(["true"])) == []
    assert nodes.processors(Guest(["true"], cpus=3)) == "3"


def test_processors_and_memory_are_divided() -> None:
    """All of both, and each processor once, also where they do not divide."""
    guest = Guest(["true"], cpus=5, memory_mb=1000, nodes=3)
    words = nodes.arguments(guest)
    told = [value for value in values(words, "-numa") if value.startswith("node,")]
    assert told == [
        "node,nodeid=0,cpus=0-1,memdev=memory0",
        "node,nodeid=1,cpus=2-3,memdev=memory1",
        "node,nodeid=2,cpus=4-4,memdev=memory2",
    ]
    sizes = [int(value.rpartition("=")[2][:-1]) for value in values(words, "-object")]
    assert sizes == [334, 333, 333]
    assert nodes.processors(guest) == "5,sockets=5,cores=1,threads=1"


def test_distances_are_those_of_a_ring() -> None:
    row = [nodes.distance(4, 0, other) for other in range(4)]
    assert row == [10, 20, 30, 20]
    assert len(values(nodes.arguments(Guest(["true"], cpus=4, nodes=4)), "-numa")) == 4 + 16


def test_what_a_guest_is_too_small_for_is_refused() -> None:
    for guest, mend in (
        (Guest(["true"], cpus=2, nodes=4), "--cpus 4"),
        (Guest(["true"], cpus=4, memory_mb=255, nodes=4), "--memory 256"),
        (Guest(["true"], nodes=9), "--numa 1 to 8"),
        (Guest(["true"], nodes=2, seat=Seat(1, 1, "x", 1500, Path(), Path(), node=2)), "--nic"),
    ):
        with pytest.raises(BeowireError) as error:
            nodes.arguments(guest)
        assert mend in f"{error.value} {error.value.mend}"


def test_the_command_line_names_what_is_missing() -> None:
    done = beowire("vm", "--numa", "2", "--nic-node", "2", "--", "true")
    assert done.status != 0
    assert "0 to 1" in done.errors


def test_a_guest_s_kernel_knows_its_nodes_and_where_its_interface_is(tmp_path: Path) -> None:
    try:
        kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    script = f"""
    cat {NODES}/online {NODES}/node[01]/cpulist {NODES}/node1/distance
    cat /sys/class/net/eth0/device/../numa_node
    grep -h MemTotal {NODES}/node*/meminfo
    """
    guest = Guest(["sh", "-ec", script], cpus=3, memory_mb=512, nodes=2)
    said = tmp_path / "said"
    with said.open("w") as output:
        done = several.run(guest, several.Network(1, nic_node=1), output.fileno())
    assert (done.guests[0].exit_status, done.guests[0].complaints) == (0, [])
    lines = [line.partition(": ")[2] for line in said.read_text().splitlines()]
    assert lines[:5] == ["0-1", "0-1", "2", "20 10", "1"]
    assert [int(line.split()[3]) >> 10 in range(150, 257) for line in lines[5:]] == [True, True]
