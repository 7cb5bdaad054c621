# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs on hosts reached by a command, as over ssh: here the nodes of a lab on loopback addresses,
entered by the lab's agent."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import lab, up
from beowire.run import cluster, remote
from beowire_cli import COMMAND, NO_NAMESPACES, Answer

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


AGENT = """#!/bin/sh
printf "%s\\n" "$*" >>"$0.log"
if [ -e "$0.struck" ] && [ "$1" = node2 ]; then
	echo $$ >>"$0.pids"
	. "$0.fault"
	exit
fi
exec {agent} "$@"
"""
LIMIT_S = 300.0
"""A command that takes longer hangs; nothing is measured by it."""


@dataclass(frozen=True)
class Reached:
    """Hosts, and the command that reaches them. It writes down what it is told to execute."""

    lab: lab.Lab
    agent: Path

    @property
    def struck(self) -> Path:
        """Once this file is there, node2 is not reached any more: a fault befalls who tries."""
        return Path(f"{self.agent}.struck")

    @property
    def fault(self) -> Path:
        """What the agent executes then, in place of what it is told."""
        return Path(f"{self.agent}.fault")

    def held(self) -> list[Path]:
        """The processes with that fault that are still there."""
        pids = Path(f"{self.agent}.pids").read_text().split()
        assert pids
        return [each for pid in pids if (each := Path(f"/proc/{pid}")).exists()]

    def directories(self) -> set[Path]:
        """Those for temporary files on the hosts: others that run at the same time have some as
        well."""
        said = Path(f"{self.agent}.log").read_text()
        return {Path(each) for each in re.findall(r"/tmp/beowire-[0-9a-f-]{36}", said)}


@pytest.fixture
def reached(lab_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reached]:
    """A lab whose nodes the agent finds by a variable."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    made = up.up(lab_name, 2, 9000)
    monkeypatch.setenv("BEOWIRE_LAB_DIR", str(made.directory))
    agent = tmp_path / "agent"
    agent.write_text(AGENT.format(agent=places.package_file("run/agent.sh")))
    agent.chmod(0o755)
    there = Reached(made, agent)
    yield there
    assert there.directories()
    left = [each for each in there.directories() if each.exists()]
    for each in left:
        shutil.rmtree(each)
    assert left == []


APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""In a network namespace, where they are allowed: what the machine counts on its own loopback
interface is others' too."""


PI = (str(places.example("pi")), "--precision", "1e-5")


def run(
    reached: Reached, hosts: str, transport: str, *more: str, program: tuple[str, ...] = PI
) -> Answer:
    reach = ["--hosts", hosts, "--ssh", str(reached.agent), "--network", "127.0.0.0/8"]
    words = ["run", *reach, "-n", "2", "--transport", transport, *more]
    with subprocess.Popen(
        [*([] if NO_NAMESPACES else APART), *COMMAND, *words, "--", *program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Answer(process.returncode, output, errors)


@pytest.mark.parametrize("transport", ["tcp", "beowire"])
def test_a_job_runs_and_is_proved(transport: str, reached: Reached, tmp_path: Path) -> None:
    stats = tmp_path / "stats"
    answer = run(reached, "node[1-2]", transport, "--prove", "--stats", str(stats))
    assert answer.status == 0, answer.errors
    assert "proved" in answer.errors
    assert answer.output.startswith("pi ")
    endpoints = [file for file in stats.iterdir() if file.name != "job.json"]
    assert len(endpoints) == (2 if transport == "beowire" else 0)
    assert reached.lab.processes() == []


def test_a_host_that_does_not_answer(reached: Reached) -> None:
    answer = run(reached, "node1,node9", "beowire")
    assert answer.status == 1
    assert answer.errors.count("node9 did not do as asked") == 1
    assert "Try it by hand" in answer.errors
    assert reached.lab.processes() == []


@pytest.mark.parametrize(
    ("fault", "said", "swept"),
    [
        ("exec sleep 30", "node2 did not answer within 10 s.", False),
        ("exit 255", "node2 did not do as asked: status 255", False),
        ("echo nonsense", "it tells what makes no sense.", True),
    ],
    ids=["silent", "refuses", "nonsense"],
)
def test_a_host_that_is_lost_for_good(
    fault: str, said: str, swept: bool, reached: Reached, tmp_path: Path
) -> None:
    """It takes neither time without end, nor the job's own status, nor what the others counted."""
    stats = tmp_path / "stats"
    reached.fault.write_text(fault)
    wait = '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exec sleep 1000'
    program = ("sh", "-c", f"{' '.join(PI)}; {wait}; touch {reached.struck}; exit 7")
    answer = run(reached, "node[1-2]", "beowire", "--stats", str(stats), program=program)
    assert answer.status == 7, answer.errors
    assert reached.held() == []
    notes = [line for line in answer.errors.splitlines() if line.startswith("beowire: what ")]
    assert notes == [
        f"beowire: what was counted on node2 is not known: {said}",
        *([] if swept else [f"beowire: what the job left on node2 was not removed: {said}"]),
    ]
    told = json.loads((stats / "job.json").read_text())
    assert (told["exit_status"], told["unheard"]) == (7, ["node2"])
    assert told["endpoints"] > 0
    assert told["tcp_bytes"] > 0  # node1's kernel counted them
    assert reached.lab.processes() == []


LONG = """
import sys
from beowire.run import remote
from beowire.run.cluster import Cluster
agent = ["sh", "-c", 'echo $$ >>"$1"; exec sleep 1000', "sh", sys.argv[1]]
remote.{ask}(Cluster(hosts=["node1", "node2"], agent=agent), "true")
"""


@pytest.mark.parametrize("ask", ["ask_everywhere", "execute_everywhere"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_asks_hosts_can_be_interrupted(
    ask: str, number: signal.Signals, tmp_path: Path
) -> None:
    """Though none of them answers; what was begun ends as well."""
    begun = tmp_path / "begun"
    begun.touch()
    program = [sys.executable, "-P", "-c", LONG.format(ask=ask), str(begun)]
    with subprocess.Popen(program, stderr=subprocess.DEVNULL) as asker:
        while len(pids := begun.read_text().split()) < 2:
            assert asker.poll() is None
            time.sleep(0.01)
        asker.send_signal(number)
        try:
            assert asker.wait(LIMIT_S) in (-signal.SIGINT, 128 + signal.SIGTERM)
        finally:
            asker.kill()
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_what_is_held_back_here_is_not_on_hosts() -> None:
    tell = "import signal; print(input(), *signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    where = cluster.Cluster(hosts=["node1", "node2"], agent=[sys.executable, "-c", tell])
    told = remote.ask_everywhere(where, "true", b"given\n").told
    assert list(told.items()) == [(host, b"given\n") for host in where.hosts]


def test_a_script_that_nobody_bounds_has_a_limit() -> None:
    assert remote.execute_everywhere.__defaults__ == (b"", remote.LIMIT_S)
    agent = ["sh", "-c", '[ "$0" = node1 ] || exec sleep 1000']
    where = cluster.Cluster(hosts=["node1", "node2"], agent=agent)
    with pytest.raises(BeowireError, match=r"node2 did not answer within 0\.3 s\."):
        remote.execute_everywhere(where, "true", limit_s=0.3)


HELD_BACK = """
from beowire import signals
from beowire.run import cluster, remote
where = cluster.Cluster(hosts=["node1"], agent=["sh", "-c", 'kill -INT $PPID; eval "$1"'])
try:
    with signals.uninterrupted():
        print(remote.execute(where, "node1", "echo done"))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interruption_that_is_held_back_ends_nothing() -> None:
    """As where what a job left on hosts is removed. In a process without other threads."""
    said = subprocess.check_output([sys.executable, "-c", HELD_BACK], text=True)
    assert said == "b'done\\n'\ninterrupted\n"
