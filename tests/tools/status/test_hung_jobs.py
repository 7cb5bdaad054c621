# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MPI jobs that hang, each for a reason of its own: `status --job` finds which."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import beowire_cli
import pytest
from beowire import places
from beowire.lab import lab, up
from beowire.run import mpi
from beowire_cli import COMMAND, beowire

pytestmark = [
    pytest.mark.usefixtures("own_shm"),
    pytest.mark.skipif(
        beowire_cli.NO_NAMESPACES is not None,
        reason=f"nodes: {beowire_cli.NO_NAMESPACES}",
    ),
]

PATIENCE_S = 300.0
EARLY = {"running", "computing", "unknown", "starved"}
"""What may be said before anybody has waited long enough; the last one on a busy machine, where it
is true until a better reason is known."""


@pytest.fixture(scope="module")
def three_nodes() -> Iterator[lab.Lab]:
    name = beowire_cli.fresh_name()
    made = up.up(name, 3, 1500)
    yield made
    beowire_cli.remove(name)


@dataclass
class Job:
    """A job that was started, by its launcher."""

    pid: int

    def look(self) -> dict[str, Any]:
        words = ["--timeout", str(PATIENCE_S), "--json"]
        answer = beowire("status", "--job", str(self.pid), *words)
        assert answer.status == 0, answer.errors
        told: dict[str, Any] = json.loads(answer.output)
        return told

    def verdict(self) -> dict[str, Any]:
        """The first conclusion that does not say that it is too early for one."""
        until = time.monotonic() + PATIENCE_S
        while True:
            told = self.look()
            if told["conclusion"]["cause"] not in EARLY:
                return told
            assert time.monotonic() < until, told

    def process(self, rank: int) -> int:
        """The number of a rank's process."""
        found: list[int] = [each["pid"] for each in self.look()["members"] if each["rank"] == rank]
        return found[0]


@contextlib.contextmanager
def hanging(where: lab.Lab, how: str, library: str = "openmpi") -> Iterator[Job]:
    """A job of three ranks on three nodes, past its start."""
    chosen = "openmpi" if library == "openmpi" else str(mpi.wheel_dir(library))
    if library != "openmpi" and not Path(chosen).is_dir():
        pytest.skip(f"{library} is not installed in {chosen}")
    suffix = "" if library == "openmpi" else ".mpich"
    program = str(places.product(f"tests/mpi/hang{suffix}"))
    words = [
        "run",
        "--lab",
        where.name,
        "-n",
        "3",
        "--transport",
        "beowire",
        "--mpi",
        chosen,
    ]
    process = subprocess.Popen(
        [*COMMAND, *words, "--", program, how],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"BEOWIRE_DEAD_TIMEOUT": "600"},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        yield Job(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
    assert where.processes() == []


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_a_receive_that_nobody_sends(three_nodes: lab.Lab, library: str) -> None:
    with hanging(three_nodes, "receive", library) as job:
        told = job.verdict()
        assert told["conclusion"]["cause"] == "receive"
        says = told["conclusion"]["says"]
        assert says.startswith("rank 0 waits for a message of rank 1 with tag 7 since ")
        assert "rank 1 is outside MPI" in says
        assert [each["rank"] for each in told["members"]] == [0, 1, 2]
        assert [each["calls"] for each in told["members"]] == [True, False, False]


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_sends_that_wait_for_one_another(three_nodes: lab.Lab, library: str) -> None:
    with hanging(three_nodes, "sends", library) as job:
        told = job.verdict()
        assert told["conclusion"]["cause"] == "sends"
        assert {(each["who"], each["whom"]) for each in told["waits"]} == {
            (0, 1),
            (1, 0),
        }
        assert "MPI_Sendrecv" in told["conclusion"]["fix"]


def test_a_stopped_rank(three_nodes: lab.Lab) -> None:
    with hanging(three_nodes, "ring") as job:
        pid = job.process(1)
        os.kill(pid, signal.SIGSTOP)
        try:
            await_stopped(pid)
            told = job.look()
            assert told["conclusion"]["cause"] == "stopped"
            assert f"rank 1 (process {pid} on node2)" in told["conclusion"]["says"]
            assert f"kill -CONT {pid} on node2" in told["conclusion"]["fix"]
            words = ["--timeout", str(PATIENCE_S)]
            shown = beowire("status", "--job", str(job.pid), *words).output
            assert f"Likely cause: rank 1 (process {pid} on node2) is stopped" in shown
        finally:
            os.kill(pid, signal.SIGCONT)
        assert job.look()["conclusion"]["cause"] != "stopped"


def await_stopped(pid: int) -> None:
    """A thread goes on until it has got a processor to stop on."""
    until = time.monotonic() + PATIENCE_S
    while not all(state(each) == "T" for each in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < until
        time.sleep(0.01)


def state(thread: Path) -> str:
    return (thread / "stat").read_text().rpartition(") ")[2][0]


@contextlib.contextmanager
def losses(where: lab.Lab, share: str) -> Iterator[None]:
    """Node 3 loses this share of its frames."""
    command = ["lab", "set", where.name, "--node", "node3", "--loss"]
    assert beowire(*command, share).status == 0
    try:
        yield
    finally:
        assert beowire(*command, "0").status == 0


def test_a_node_cut_off(three_nodes: lab.Lab) -> None:
    with hanging(three_nodes, "ring") as job, losses(three_nodes, "100%"):
        told = job.verdict()
        assert told["conclusion"]["cause"] == "cut-off"
        assert told["conclusion"]["says"].startswith("node3 is cut off: ")


def test_a_lossy_link(three_nodes: lab.Lab) -> None:
    with hanging(three_nodes, "ring") as job, losses(three_nodes, "8%"):
        told = job.verdict()
        assert told["conclusion"]["cause"] == "lossy"
        assert "node3" in told["conclusion"]["says"]


def test_the_nodes_of_a_lab(three_nodes: lab.Lab) -> None:
    with hanging(three_nodes, "ring") as job:
        pids = {f"node{rank + 1}": job.process(rank) for rank in range(3)}
        words = ["--timeout", str(PATIENCE_S), "--json"]
        answer = beowire("status", "--lab", three_nodes.name, *words)
        told = json.loads(answer.output)
        assert told["nodes"] == ["node1", "node2", "node3"]
        assert told["unreached"] == {}
        assert {each["node"]: each["pid"] for each in told["endpoints"]} == pids
        names = {f"{node}:{pid}" for node, pid in pids.items()}
        for each in told["endpoints"]:
            others = {peer["name"] for peer in each["peers"]}
            assert others == names - {f"{each['node']}:{each['pid']}"}


def test_a_job_that_is_not_there() -> None:
    answer = beowire("status", "--job", str(os.getpid()))
    assert answer.status == 1
    assert "No process of a job" in answer.errors
