# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine of several NUMA nodes, as its kernel tells of it: where an endpoint's memory lies, and
that of the kernel module; pages that `beowire place` moves. One guest does for all: it has four
nodes, and its interface is at node 2; programs run on node 0."""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import kernels, several
from beowire.vm.guest import Guest

NODES = "/sys/devices/system/node"
PAGE = os.sysconf("SC_PAGESIZE")
AREA_PAGES = (12 << 20) // PAGE
BOUND_PAGES = (2 << 20) // PAGE
HUGE = "/sys/devices/system/node/node2/hugepages/hugepages-2048kB/nr_hugepages"
GROUP = "/sys/fs/cgroup/some"
CASES = {
    "default": "env",
    "bind": "env BEOWIRE_MEMORY=bind:1",
    "bind by the interface": "env BEOWIRE_MEMORY=bind",
    "interleave": "env BEOWIRE_MEMORY=interleave",
    "preferred many": "env BEOWIRE_MEMORY=preferred:1,3",
    "local": "env BEOWIRE_LINKS=local",
    "huge": f"echo 4 > {HUGE}; env BEOWIRE_HUGE_PAGES=1",
    "huge elsewhere": "env BEOWIRE_HUGE_PAGES=2M BEOWIRE_MEMORY=bind:1",
    "cpuset": f"""mount -t cgroup2 none /sys/fs/cgroup
        echo +cpuset > /sys/fs/cgroup/cgroup.subtree_control
        mkdir {GROUP}; echo 0-1 > {GROUP}/cpuset.mems; echo $$ > {GROUP}/cgroup.procs
        env""",
    "cpuset forbids": "env BEOWIRE_MEMORY=bind:1,3",
}
MACHINE = f"cat {NODES}/online {NODES}/node[01]/cpulist {NODES}/node1/distance"
TRACE = "/sys/kernel/tracing"
ATTACH = f"""mount -t tracefs none {TRACE} 2>/dev/null
    trace() {{ for each in {TRACE}/events/kmem/kmalloc*/enable; do echo $1 > $each; done; }}
    trace 1; {places.product("programs/beowire-attach")} eth0; trace 0
    grep bwk_iface {TRACE}/trace"""
"""Of the allocator's events only those that are asked about: all of them, of four emulated
processors, once kept a guest busy for ten minutes."""


@dataclass(frozen=True)
class Case:
    """What one endpoint told, and what the kernel told of its process."""

    text: str

    def said(self, word: str) -> str:
        return next(
            line.partition(": ")[2]
            for line in self.text.splitlines()
            if line.startswith(f"{word}: ")
        )

    def maps(self, what: str) -> list[str]:
        """Of the mappings in which such memory begins: policy, nodes and pages, each once."""
        starts = [int(found, 16) for found in re.findall(rf"^{what} (\w+)$", self.text, re.M)]
        lines = re.findall(r"^map (\w+) (.*)$", self.text, re.M)
        bounds = [int(start, 16) for start, _ in lines]
        within = {max(each for each in bounds if each <= start) for start in starts}
        return [line for start, line in lines if int(start, 16) in within]

    def nodes(self, what: str) -> set[int]:
        """The nodes of its pages."""
        found = [re.findall(r"\bN(\d+)=", line) for line in self.maps(what)]
        return {int(node) for nodes in found for node in nodes}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    try:
        kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    said = tmp_path_factory.mktemp("told") / "said"
    program = places.product("tests/user/homes")
    lines = ["export BEOWIRE_RING=1048576 BEOWIRE_LINKS=local,packet,udp BEOWIRE_LOG=info"]
    for name, words in CASES.items():
        lines += [f"echo 'case {name}'", f"{words} taskset -c 0 {program} 2>&1"]
    script = Path(__file__).with_name("place_in_guest.py")
    lines[1:1] = ["echo 'case place'", f"{sys.executable} -P {script}"]
    lines[1:1] = ["echo 'case machine'", MACHINE, "echo 'case attach'", ATTACH]
    command = ["sh", "-c", "\n".join(lines)]
    guest = Guest(command, cpus=4, memory_mb=1024, nodes=4, modules=True)
    with said.open("w") as output:
        done = several.run(guest, several.Network(1, nic_node=2), output.fileno())
    assert (done.guests[0].exit_status, done.guests[0].complaints) == (0, [])
    text = re.sub(r"^1: ", "", said.read_text(), flags=re.M)
    parts = re.split(r"^case (.*)$", text, flags=re.M)
    return {name: Case(part) for name, part in zip(parts[1::2], parts[2::2], strict=True)}


def test_a_guest_s_kernel_knows_its_nodes(told: dict[str, Case]) -> None:
    assert told["machine"].text.split("\n")[1:5] == ["0-3", "0", "1", "20 10 20 30"]


def test_the_module_s_interface_lies_where_the_device_is(told: dict[str, Case]) -> None:
    """As the tracepoints of the allocator say: the node that was asked for."""
    assert re.findall(r"kmalloc.* node=(\S+)", told["attach"].text) == ["2"], told["attach"].text


def test_memory_lies_where_the_interface_is(told: dict[str, Case]) -> None:
    case = told["default"]
    assert case.said("told") == "node 2, where eth0 is (preferred)"
    for what in ("engine", "buffer", "ring", "udp"):
        assert case.nodes(what) == {2}, (what, case.text)
    assert all(line.startswith("prefer:2 ") for line in case.maps("engine"))
    assert "info: memory: node 2" in case.text


def test_memory_is_bound_to_nodes_by_name(told: dict[str, Case]) -> None:
    for what in ("engine", "buffer", "ring", "udp"):
        assert told["bind"].nodes(what) == {1}, (what, told["bind"].text)
    assert all(line.startswith("bind:1 ") for line in told["bind"].maps("engine"))
    case = told["bind by the interface"]
    assert case.said("told") == "node 2, where eth0 is (bind)"
    assert all(line.startswith("bind:2 ") for line in case.maps("engine"))


def test_memory_is_interleaved(told: dict[str, Case]) -> None:
    case = told["interleave"]
    assert case.said("told") == "nodes 0-3 (interleave)"
    assert all(line.startswith("interleave:0-3 ") for line in case.maps("engine"))
    assert case.nodes("ring") == {0, 1, 2, 3}, case.text


def test_several_nodes_are_preferred(told: dict[str, Case]) -> None:
    case = told["preferred many"]
    assert case.said("told") == "nodes 1,3 (preferred)"
    assert case.nodes("engine") <= {1, 3}, case.text


def test_memory_without_an_interface_is_left_to_the_kernel(told: dict[str, Case]) -> None:
    case = told["local"]
    assert case.said("told") == "where it is touched first"
    assert all(line.startswith("default ") for line in case.maps("engine"))


def test_huge_pages_are_of_the_reserve_and_the_node(told: dict[str, Case]) -> None:
    case = told["huge"]
    assert case.said("told").endswith("pools in 2048 KiB: huge pages of the reserve")
    for what in ("engine", "buffer"):
        assert case.nodes(what) == {2}, case.text
        assert all("kernelpagesize_kB=2048" in line for line in case.maps(what))
    assert "warning" not in case.text


def test_huge_pages_that_the_node_does_not_have_are_told_of(told: dict[str, Case]) -> None:
    case = told["huge elsewhere"]
    assert case.said("told").endswith("transparent huge pages where the kernel finds some")
    assert case.nodes("engine") == {1}, case.text
    assert "warning: BEOWIRE_HUGE_PAGES=2M: none of 2048 KiB" in case.text


def test_the_nearest_node_takes_the_place_of_one_that_is_forbidden(told: dict[str, Case]) -> None:
    case = told["cpuset"]
    assert case.said("told") == "node 1 (preferred), the nearest to node 2 of eth0 that is allowed"
    assert case.nodes("engine") == {1}, case.text
    assert "eth0 is at node 2, and this process may have memory of node 0-1 only" in case.text


def test_a_node_that_a_cpuset_forbids_is_refused(told: dict[str, Case]) -> None:
    why = told["cpuset forbids"].said("refused")
    assert "BEOWIRE_MEMORY=bind:1,3" in why
    assert "node 0-1 only" in why


@pytest.fixture(scope="module")
def moved(told: dict[str, Case]) -> dict:
    found: dict = json.loads(told["place"].text.strip().splitlines()[-1])
    return found


def test_pages_and_threads_are_shown(moved: dict) -> None:
    shown = moved["shown"]
    assert moved["before"]["N0"] == AREA_PAGES
    assert (shown["target"], shown["processors"]) == (1, [1])
    assert shown["time_by_node"]["1"] > 0.5
    assert shown["remote_bytes"] >= (AREA_PAGES + BOUND_PAGES) * PAGE
    assert AREA_PAGES * PAGE <= shown["movable_bytes"] <= shown["remote_bytes"] - BOUND_PAGES * PAGE


def test_a_dry_run_moves_nothing(moved: dict) -> None:
    assert moved["dry"]["moved_bytes"] == 0
    assert moved["after dry"] == moved["before"]


def test_a_pass_moves_no_more_than_it_may(moved: dict) -> None:
    """What others map counts as well, although it stays."""
    moved, more = moved["bounded"]
    assert more
    assert 0 < moved <= 1 << 20


def test_pages_come_to_the_threads_but_those_with_a_policy(moved: dict) -> None:
    plain, bound = moved["after"]
    assert plain == {"N1": AREA_PAGES}
    assert bound == {"N0": BOUND_PAGES}
    assert moved["moved"]["moved_bytes"] >= AREA_PAGES * PAGE - (1 << 20)


def test_all_that_was_moved_goes_back(moved: dict) -> None:
    assert moved["after undo"] == {"N0": AREA_PAGES}
    assert "Nothing of process" in moved["no undo"]


def test_watching_moves_at_a_bounded_rate(moved: dict) -> None:
    """12 MiB at 8 MiB a second, not before two looks agree; all of it is there when it ends."""
    assert moved["watch"][0] == 0
    assert moved["watch"][1] == 8 << 20
    assert max(moved["watch"]) <= 8 << 20
    assert "There is no process" in moved["gone"]
