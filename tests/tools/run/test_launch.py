# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Command lines of the launchers: where ranks go, which transport they are held to."""

import subprocess

import pytest
from beowire.errors import BeowireError
from beowire.run import cluster, launch
from beowire.run.launch import Job
from hypothesis import given
from hypothesis import strategies as some


def hosts(count: int) -> cluster.Cluster:
    return cluster.Cluster([f"n{number}" for number in range(count)], ["ssh"])


def job(ranks: int, per_node: int = 0) -> Job:
    return Job(["program"], ranks, "tcp", per_node=per_node)


@given(ranks=some.integers(1, 300), nodes=some.integers(1, 40), per_node=some.integers(0, 40))
def test_every_rank_has_a_place(ranks: int, nodes: int, per_node: int) -> None:
    if per_node and per_node * nodes < ranks:
        with pytest.raises(BeowireError, match="do not fit"):
            launch.place(job(ranks, per_node), hosts(nodes))
        return
    slots = launch.place(job(ranks, per_node), hosts(nodes))
    assert sum(slots.values()) == ranks
    assert list(slots) == hosts(nodes).hosts[: len(slots)]
    assert all(0 < count <= (per_node or ranks) for count in slots.values())


@pytest.mark.parametrize("ranks", [0, -1])
def test_no_ranks_no_job(ranks: int) -> None:
    with pytest.raises(BeowireError, match="-n 1 or more"):
        launch.place(job(ranks), hosts(2))


def test_tcp_is_held_to_tcp() -> None:
    words = launch.command(job(2), hosts(2)).arguments
    assert words[words.index("pml") + 1] == "ob1"
    assert words[words.index("btl") + 1] == "tcp,vader,self"
    assert not any("FI_PROVIDER" in word for word in words)


@pytest.mark.parametrize(("stack", "component"), [("native", "sm,pt2pt"), ("ucx", "ucx")])
def test_one_sided_operations_have_a_component_over_tcp(
    stack: launch.TcpStack, component: str
) -> None:
    over = Job(["program"], 2, "tcp", tcp_stack=stack)
    words = launch.command(over, hosts(2)).arguments
    assert words[words.index("osc") + 1] == component


def test_what_is_printed_with_its_variables_can_be_typed() -> None:
    odd = launch.Command(["env"], {"ODD": "a b'$x\n*", "PLAIN": "1"})
    done = subprocess.run(["sh", "-c", f"{odd.text()} -0"], capture_output=True, check=True)
    assert {b"ODD=a b'$x\n*", b"PLAIN=1"} <= set(done.stdout.split(b"\0"))


def test_beowire_cannot_fall_back_to_tcp() -> None:
    over = Job(["program"], 2, "beowire", provider_dir="/somewhere")
    words = launch.command(over, hosts(2)).arguments
    assert words[words.index("pml") + 1] == "cm"
    assert "tcp" not in words[words.index("btl") + 1]
    assert "FI_PROVIDER=beowire" in words
    assert "FI_PROVIDER_PATH=/somewhere" in words


def test_ranks_that_share_cores_yield_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(launch.YIELD, raising=False)
    monkeypatch.setattr(launch, "_crowded", lambda *_: True)
    assert "mpi_yield_when_idle" in launch.command(job(2), hosts(2)).arguments
    monkeypatch.setenv(launch.YIELD, "0")
    assert "mpi_yield_when_idle" not in launch.command(job(2), hosts(2)).arguments
    monkeypatch.delenv(launch.YIELD)
    monkeypatch.setattr(launch, "_crowded", lambda *_: False)
    assert "mpi_yield_when_idle" not in launch.command(job(2), hosts(2)).arguments


def test_settings_of_beowire_reach_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEOWIRE_WAIT", "block")
    monkeypatch.setenv("BEOWIRE_ROOT", "/checkout")
    words = launch.command(job(2), hosts(2)).arguments
    assert "BEOWIRE_WAIT=block" in words
    assert not any("/checkout" in word for word in words)


def test_what_is_printed_can_be_typed() -> None:
    odd = Job(["program", "a b", "$x"], 1, "tcp")
    assert launch.command(odd, hosts(1)).text().endswith("program 'a b' '$x'")


@pytest.mark.parametrize(
    ("text", "names"),
    [(["a,b"], ["a", "b"]), (["node[1-3]"], ["node1", "node2", "node3"]), (["a,a"], ["a"])],
)
def test_hosts_may_be_sets(text: list[str], names: list[str]) -> None:
    assert cluster.of_hosts(text).hosts == names


@pytest.mark.parametrize("text", [[""], ["node[1-"], []])
def test_hosts_that_cannot_be_read(text: list[str]) -> None:
    with pytest.raises(BeowireError, match="osts"):
        cluster.of_hosts(text)


def test_an_agent_that_open_mpi_would_tear_apart_is_refused() -> None:
    """It splits what it is told at each blank, quoted or not; MPICH's launcher takes one word."""
    torn = cluster.Cluster(["a", "b"], ["/home/my files/agent"])
    with pytest.raises(BeowireError, match="my files"):
        launch.command(job(2), torn)
    whole = launch.command(Job(["program"], 2, "tcp", mpi="mpich"), torn).arguments
    assert whole[whole.index("-launcher-exec") + 1] == "/home/my files/agent"
