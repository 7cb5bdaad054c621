# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The demonstration on hosts reached by a command, as over ssh: here the nodes of a lab on loopback
addresses, entered by the lab's agent. The programs are short: what they take is not asked."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.demo import programs
from beowire.lab import lab, up
from beowire_cli import NO_NAMESPACES, Answer

pytestmark = pytest.mark.skipif(
    any(shutil.which(name) is None for name in ("mpirun.openmpi", "hpcc", "tshark")),
    reason="programs are not installed: apt-get install openmpi-bin hpcc tshark",
)

AGENT = """#!/bin/sh
printf "%s\\n" "$*" >>"$0.log"
exec {agent} "$@"
"""
APART = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
"""What the machine counts on its own loopback interface is others' too, so it has one of its own
where that is allowed."""
# Both hosts count what passes this one interface, so that all counts twice: what is short enough is
# no more than a launcher's own.
SHORTENED = """
import os
from dataclasses import replace

from beowire.__main__ import main
from beowire.demo import comparison

SHORT = {
    "pi": ("--precision", "1e-5", "--json"),
    "tridiagonal": ("--size", "2000", "--json"),
    "ping-pong 8 B": ("--json", "-", "--sizes", "8", "--iters", "20"),
    "ping-pong 1 MiB": ("--json", "-", "--mode", "bandwidth", "--iters", "1", "--window", "1"),
}
STAND_INS = {"hpcc": os.environ["HPCC"]}
comparison.PROGRAMS = tuple(
    replace(
        each,
        rounds=1,
        arguments=SHORT.get(each.name, ()),
        executable=STAND_INS.get(each.executable, each.executable),
    )
    for each in comparison.PROGRAMS
)
main()
"""
HPCC = """#!/bin/sh
# Stands in for hpcc, which takes minutes where four ranks share two cores: the ranks meet, and the
# first leaves a report beside the input.
[ -s {input} ] || exit 3
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || cp {report} {output}
exec ./pi --precision 1e-5 --json
"""
REPORT = (
    "WR11C2R4         720    80     2     2               0.05              5.1e+00\n"
    "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0051 ...... PASSED\n"
)
LIMIT_S = 600.0
"""A run that takes longer hangs."""


@dataclass(frozen=True)
class Reached:
    """Hosts, the command that reaches them, which writes down what it is told to execute, and what
    stands in for hpcc there."""

    lab: lab.Lab
    agent: Path
    hpcc: Path

    def directories(self) -> set[str]:
        """Those that the hosts were told of: others that run at the same time have some as well."""
        said = Path(f"{self.agent}.log").read_text()
        return set(re.findall(r"/tmp/beowire-(?:demo-)?[0-9a-f-]{36}", said))

    def left(self) -> list[str]:
        return [each for each in self.directories() if Path(each).exists()]


@pytest.fixture
def reached(lab_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reached]:
    """A lab whose nodes the agent finds by a variable."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    made = up.up(lab_name, 2, 9000)
    monkeypatch.setenv("BEOWIRE_LAB_DIR", str(made.directory))
    report = tmp_path / "report"
    report.write_text(REPORT * programs.HPL_REPEATS + "Success=1\n")
    names = {"input": programs.HPCC_INPUT, "output": programs.HPCC_OUTPUT, "report": report}
    there = Reached(made, tmp_path / "agent", tmp_path / "hpcc")
    agent = AGENT.format(agent=places.package_file("run/agent.sh"))
    for file, text in {there.agent: agent, there.hpcc: HPCC.format(**names)}.items():
        file.write_text(text)
        file.chmod(0o755)
    yield there
    assert there.left() == []
    assert made.processes() == []


def demonstrate(reached: Reached, results: Path) -> Answer:
    """The command, with short programs."""
    reach = ["--hosts", "node[1-2]", "--ssh", str(reached.agent), "--network", "127.0.0.0/8"]
    words = [sys.executable, "-P", "-c", SHORTENED, "demo", *reach, "--json", str(results)]
    done = subprocess.run(
        [*([] if NO_NAMESPACES else APART), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env=os.environ | {"HPCC": str(reached.hpcc)},
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def test_the_table_between_hosts(reached: Reached, tmp_path: Path) -> None:
    results = tmp_path / "results"
    answer = demonstrate(reached, results)
    assert answer.status == 0, answer.errors
    found = json.loads(results.read_text())
    names = [each.name for each in programs.PROGRAMS]
    assert [each["name"] for each in found["rows"]] == names
    for row in found["rows"]:
        assert len(row["tcp"]) == len(row["beowire"]) == 1
        assert re.search(rf"^\W*{re.escape(row['name'])} ", answer.output, re.MULTILINE), row
    agreed = [each["name"] for each in found["rows"] if each["answers_agree"]]
    assert agreed == ["pi", "tridiagonal", "HPL"]
    assert "Left out: on real hosts" in answer.output
    assert [each for each in reached.directories() if "demo" in each]
