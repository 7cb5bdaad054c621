# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs on hosts reached by a command, as over ssh: here the nodes of a lab on loopback addresses,
entered by the lab's agent."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import lab, up
from beowire_cli import COMMAND, NO_NAMESPACES, Answer

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)


@pytest.fixture
def reached(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[lab.Lab]:
    """A lab whose nodes the agent finds by a variable."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    made = up.up(lab_name, 2, 9000)
    monkeypatch.setenv("BEOWIRE_LAB_DIR", str(made.directory))
    before = strays()
    yield made
    assert strays() - before == set()


def strays() -> set[str]:
    """What runs on hosts put into their directory for temporary files."""
    return {str(entry) for entry in Path("/tmp").glob("beowire-*-*-*-*")}


APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""In a network namespace, where they are allowed: what the machine counts on its own loopback
interface is others' too."""


def run(hosts: str, transport: str, *more: str) -> Answer:
    agent = str(places.package_file("run/agent.sh"))
    reach = ["--hosts", hosts, "--ssh", agent, "--network", "127.0.0.0/8"]
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
def test_a_job_runs_and_is_proved(transport: str, reached: lab.Lab, tmp_path: Path) -> None:
    answer = run("node[1-2]", transport, "--prove", "--stats", str(tmp_path))
    assert answer.status == 0, answer.errors
    assert "proved" in answer.errors
    assert answer.output.startswith("pi ")
    endpoints = [file for file in tmp_path.iterdir() if file.name != "job.json"]
    assert len(endpoints) == (2 if transport == "beowire" else 0)
    assert reached.processes() == []


def test_a_host_that_does_not_answer(reached: lab.Lab) -> None:
    answer = run("node1,node9", "beowire")
    assert answer.status == 1
    assert "node9 did not do as asked" in answer.errors
    assert "Try it by hand" in answer.errors
    assert reached.processes() == []
