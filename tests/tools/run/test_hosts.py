# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs on hosts reached by a command, as over ssh: here the nodes of a lab on loopback addresses,
entered by the lab's agent."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import lab, up
from beowire_cli import COMMAND, NO_NAMESPACES, Answer

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


AGENT = """#!/bin/sh
printf "%s\\n" "$*" >>"$0.log"
exec {agent} "$@"
"""


@dataclass(frozen=True)
class Reached:
    """Hosts, and the command that reaches them. It writes down what it is told to execute."""

    lab: lab.Lab
    agent: Path

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
    assert [each for each in there.directories() if each.exists()] == []


APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""In a network namespace, where they are allowed: what the machine counts on its own loopback
interface is others' too."""


def run(reached: Reached, hosts: str, transport: str, *more: str) -> Answer:
    reach = ["--hosts", hosts, "--ssh", str(reached.agent), "--network", "127.0.0.0/8"]
    words = ["run", *reach, "-n", "2", "--transport", transport, *more]
    program = [str(places.example("pi")), "--precision", "1e-5"]
    done = subprocess.run(
        [*([] if NO_NAMESPACES else APART), *COMMAND, *words, "--", *program],
        capture_output=True,
        text=True,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


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
    assert "node9 did not do as asked" in answer.errors
    assert "Try it by hand" in answer.errors
    assert reached.lab.processes() == []
