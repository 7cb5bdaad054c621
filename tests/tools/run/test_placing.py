# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks at their places: the words that pin them, priorities within limits, and jobs of both
launchers whose ranks tell where they run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import lab, up
from beowire.placement.machine import Interface, Machine
from beowire.run import placing
from beowire.run.cluster import Cluster
from beowire.run.launch import Job
from beowire_cli import beowire

HOSTS = Cluster(["a", "b"], ["ssh"])
MACHINE = Machine(
    nodes={0: (0, 1), 1: (2, 3)},
    distances={0: {0: 10, 1: 20}, 1: {0: 20, 1: 10}},
    memory=(0, 1),
    interfaces={"eth0": Interface(1, up=True, default=True)},
    nice_least=-5,
    rt_most=10,
)
OTHER = Machine(nodes={0: (0, 1)}, nice_least=0, rt_most=0)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Machine]:
    """What the hosts are found to be."""
    machines = {"a": MACHINE, "b": MACHINE}
    monkeypatch.setattr(placing, "_look", lambda _: machines)
    monkeypatch.delenv("BEOWIRE_MEMORY", raising=False)
    monkeypatch.delenv("BEOWIRE_INTERFACE", raising=False)
    return machines


def job(ranks: int = 4) -> Job:
    return Job(["program"], ranks, "beowire", provider_dir="/somewhere")


def test_ranks_are_pinned_on_each_host_by_what_it_has(known: dict[str, Machine]) -> None:
    known["b"] = OTHER
    made = placing.placed(job(), HOSTS, placing.Asked("near"))
    assert made.before[-1] == "2:3:0:1"
    assert made.environment == {}


def test_the_table_pins_by_rank() -> None:
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("one processor only")
    table = f"{first}:{others[0]}:{first}"
    show = 'echo "$0 $1"; grep Cpus_allowed_list /proc/self/status'
    words = ["sh", "-c", placing._PIN, "place", table, "sh", "-c", show, "a b", "c"]
    for variable in ("OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        environment = {"PATH": os.environ["PATH"], variable: "1"}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        assert done.stdout == f"a b c\nCpus_allowed_list:\t{others[0]}\n"


def test_latency_and_bandwidth_say_where_memory_lies(
    known: dict[str, Machine], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert placing.placed(job(), HOSTS, placing.Asked("latency")).environment == {
        "BEOWIRE_MEMORY": "preferred"
    }
    made = placing.placed(job(), HOSTS, placing.Asked("bandwidth"))
    assert made.environment == {"BEOWIRE_MEMORY": "interleave"}
    assert "numactl" not in made.before
    assert "a has no numactl" in capsys.readouterr().err
    for host in "ab":
        known[host] = Machine(nodes=MACHINE.nodes, memory=(0, 1), numactl=True)
    made = placing.placed(job(), HOSTS, placing.Asked("bandwidth"))
    assert made.before[:2] == ["numactl", "--interleave=all"]
    monkeypatch.setenv("BEOWIRE_MEMORY", "bind:0")
    assert placing.placed(job(), HOSTS, placing.Asked("latency")).environment == {}


@pytest.mark.parametrize("text", ["nice", "nice:20", "nice:-21", "rt:0", "rt:100", "rt:-1", "x:1"])
def test_priorities_that_there_are_not(text: str) -> None:
    with pytest.raises(BeowireError, match="is none"):
        placing.priority(text)


def test_priorities_are_checked_against_limits(known: dict[str, Machine]) -> None:
    for allowed, words in (
        ("nice:-5", ["nice", "-n", "-5"]),
        ("nice:19", ["nice", "-n", "19"]),
        ("rt:10", ["chrt", "--fifo", "10"]),
    ):
        asked = placing.Asked("none", placing.priority(allowed))
        assert placing.placed(job(), HOSTS, asked).before == words
    known["b"] = OTHER
    for refused, why in (
        ("nice:-1", r"b allows this user a niceness of 0 or more, and not -1"),
        ("rt:1", r"b allows this user real-time priorities up to 0, and not 1"),
    ):
        asked = placing.Asked("near", placing.priority(refused))
        with pytest.raises(BeowireError, match=why) as error:
            placing.placed(job(), HOSTS, asked)
        assert "limits.conf" in error.value.fix


def test_a_niceness_is_absolute(known: dict[str, Machine]) -> None:
    for host in "ab":
        known[host] = Machine(nodes=MACHINE.nodes, nice_now=3, nice_least=0)
    asked = placing.Asked("none", placing.priority("nice:5"))
    assert placing.placed(job(), HOSTS, asked).before == ["nice", "-n", "2"]


@pytest.fixture
def made(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> lab.Lab:
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    return up.up(lab_name, 2, 9000)


@pytest.mark.parametrize("mpi", ["openmpi", "mpich"])
def test_ranks_run_where_they_were_placed(made: lab.Lab, mpi: str) -> None:
    if mpi == "openmpi" and shutil.which("mpirun.openmpi") is None:
        pytest.skip("Open MPI is not installed: apt-get install openmpi-bin")
    if mpi == "mpich" and not (places.root() / ".venv/mpich/bin/mpirun").exists():
        pytest.skip("MPICH is not installed: ./beowire test does that")
    tell = "echo rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} "
    tell += "$(grep Cpus_allowed_list /proc/self/status) niceness $(nice)"
    words = ["run", "--lab", made.name, "-n", "2", "--transport", "tcp", "--mpi", mpi]
    words += ["--place", "near", "--priority", "nice:7"]
    done = beowire(*words, "--", "sh", "-c", tell)
    assert done.status == 0, done.errors
    told = dict(re.findall(r"rank (\d) Cpus_allowed_list: (\S+) niceness 7$", done.output, re.M))
    match = re.search(r"place near: ranks 0-1 on processors (\S+) (\S+) of this", done.errors)
    assert match is not None, done.errors
    assert (told["0"], told["1"]) == match.groups()
    assert f"nice -n {7 - os.nice(0)} sh -c" in done.errors


def test_two_ways_of_pinning_are_one_too_many(made: lab.Lab) -> None:
    words = ["run", "--lab", made.name, "-n", "2", "--transport", "tcp", "--bind", "core"]
    done = beowire(*words, "--place", "near", "--", "true")
    assert done.status == 1
    assert "--bind" in done.errors


def test_the_facts_are_those_of_this_machine() -> None:
    script = places.package_file("run/facts.sh")
    said = subprocess.run(["sh", str(script)], capture_output=True, check=True).stdout
    machine = placing.read("here", said)
    assert set(machine.processors()) == os.sched_getaffinity(0)
    devices = [each for each in Path("/sys/class/net").iterdir() if (each / "device").exists()]
    assert set(machine.interfaces) == {each.name for each in devices}
