# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests of several NUMA nodes: what QEMU is told, and what is refused. What their kernels see is
in tests/tools/placement/test_machine_of_nodes.py."""

from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import nodes
from beowire.vm.guest import Guest, Seat
from beowire_cli import beowire


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
    for guest, fix in (
        (Guest(["true"], cpus=2, nodes=4), "--cpus 4"),
        (Guest(["true"], cpus=4, memory_mb=255, nodes=4), "--memory 256"),
        (Guest(["true"], nodes=9), "--numa 1 to 8"),
        (Guest(["true"], nodes=2, seat=Seat(1, 1, "x", 1500, Path(), Path(), node=2)), "--nic"),
    ):
        with pytest.raises(BeowireError) as error:
            nodes.arguments(guest)
        assert fix in f"{error.value} {error.value.fix}"


def test_the_command_line_names_what_is_missing() -> None:
    done = beowire("vm", "--numa", "2", "--nic-node", "2", "--", "true")
    assert done.status != 0
    assert "0 to 1" in done.errors
