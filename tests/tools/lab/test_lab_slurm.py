# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slurm in a lab: one cluster for all of these tests, jobs of two users on shared nodes."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import beowire_cli
import psutil
import pytest
from beowire import places
from beowire.env import settings
from beowire.lab import counters, lab, slurm
from beowire.run import mpi
from beowire.run.path import Endpoint, read_endpoints
from beowire_cli import beowire, traces

USERS = ("nobody", "daemon")
LIMIT_S = 240.0
PI = ("--precision", "1e-6", "--json")
FOREVER = ("--precision", "1e-11", "--wait", "1000")
CHECKSUM = "400921fbd927b6a7"
"""The bits of what `pi` computes with that precision, whoever computes it."""


class Cluster:
    """A lab with Slurm, and what its users do there."""

    def __init__(self, made: lab.Lab, place: Path) -> None:
        self.lab = made
        self.place = place
        """Where users may write."""

    def command(self, node: str, user: str, *command: str) -> list[str]:
        """The words that execute a command on a node as a user without privilege."""
        entry = pwd.getpwnam(user)
        become = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}"]
        enter = ["/bin/sh", str(self.lab.enter_path(node)), *become, "--clear-groups", "--"]
        return [*enter, *command]

    def environment(self, stats: Path | None = None, **variables: str) -> dict[str, str]:
        """What `beowire env` sets, and that nothing but Beowire's frames reaches the other node."""
        told = {**os.environ, **settings.variables(places.provider_dir()), **variables}
        told["BEOWIRE_LINKS"] = "local,packet"
        return told if stats is None else told | {"BEOWIRE_STATS": str(stats)}

    def run(self, node: str, user: str, *command: str, **variables: str) -> str:
        """What a command says that must succeed."""
        done = subprocess.run(
            self.command(node, user, *command),
            env=self.environment(**variables),
            cwd=self.place,
            capture_output=True,
            text=True,
            timeout=2 * LIMIT_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def begin(self, node: str, user: str, *command: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(node, user, *command),
            env=self.environment(),
            cwd=self.place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def submit(self, node: str, user: str, script: str) -> int:
        """The number of a job of two nodes that executes a script."""
        options = ["--parsable", "-N2", "--ntasks-per-node=2", "--output=%j.out"]
        return int(self.run(node, user, "sbatch", *options, f"--wrap={script}"))

    def stats(self, name: str) -> Path:
        directory = self.place / name
        directory.mkdir()
        directory.chmod(0o777)
        return directory

    def pids(self) -> set[int]:
        """What runs on the nodes beside Slurm's and Beowire's own."""
        own = {pid for each in self.lab.slurm.values() for pid in each.values()}
        for pid in self.lab.services.values():  # and the process that reads its policy
            own |= {pid, *(each.pid for each in psutil.Process(pid).children())}
        scripts = {pid for pid in self.lab.processes() if name_of(pid) in ("slurmscriptd", "")}
        return set(self.lab.processes()) - own - scripts

    def left(self) -> list[str]:
        """What jobs leave behind that must not stay."""
        found = [f"process {pid} {name_of(pid)}" for pid in self.pids()]
        found += [str(each) for each in Path("/dev/shm").iterdir()]
        for node in self.lab.node_names():
            own = slurm.directory(self.lab) / node
            found += [str(each) for each in (own / "tmp").iterdir()]
            found += [str(each) for each in (own / "spool").glob("job*")]
            found += [str(each) for each in (own / "spool").glob("*pmix*")]
        return found


def name_of(pid: int) -> str:
    """The name of a process; empty if it is gone, or waits to be asked for its status."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return "" if text.rpartition(") ")[2][0] == "Z" else text.partition("(")[2].rpartition(")")[0]


def until(holds: Callable[[], object], what: Callable[[], object] = str) -> None:
    """Waits for a state, as long as it may take on a busy machine."""
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, what()
        time.sleep(0.02)


@pytest.fixture(scope="module")
def cluster(own_shm: None) -> Iterator[Cluster]:
    """A lab of two nodes with Slurm, and with the service, so that users have raw frames."""
    del own_shm
    if beowire_cli.NO_NAMESPACES:
        pytest.skip(f"raw frames: {beowire_cli.NO_NAMESPACES}")
    name = beowire_cli.fresh_name()
    place = Path(f"/tmp/beowire-slurm-{name}")
    place.mkdir()
    place.chmod(0o1777)
    try:
        mask = os.umask(0o077)  # users reach what they need all the same
        try:
            answer = beowire("lab", "up", name, "--nodes", "2", "--slurm", "--service")
        finally:
            os.umask(mask)
        assert answer.status == 0, answer.errors
        assert f"./beowire lab exec {name} node1 -- srun -N 2 hostname" in answer.output
        made = lab.load(name)
        yield Cluster(made, place)
        beowire_cli.remove(name)
        gone(made)
    finally:
        beowire_cli.remove(name)
        shutil.rmtree(place)


def gone(made: lab.Lab) -> None:
    """Nothing of the lab is left."""
    assert traces(made.name) == []
    assert not made.public_directory.exists()
    assert f"{made.public_directory}/" not in Path("/proc/self/mountinfo").read_text()
    pids = {pid for each in made.slurm.values() for pid in each.values()}
    assert not any(name_of(pid) for pid in pids)


def proven(endpoints: list[Endpoint], raw_bytes: int) -> None:
    """All ranks spoke with the other node by Beowire's frames; the kernel says the same."""
    assert len(endpoints) == 4
    assert len({each.node for each in endpoints}) == 2
    assert all(each.links["packet"]["tx_payload"] > 0 for each in endpoints)
    assert all(each.links["udp"]["tx_frames"] == 0 for each in endpoints)
    assert raw_bytes >= sum(each.links["packet"]["tx_payload"] for each in endpoints) > 0


def raw(made: lab.Lab) -> int:
    return sum(each.raw_bytes for each in counters.of_lab(made).values())


@pytest.mark.parametrize(("family", "plugin"), [("openmpi", "pmix"), ("mpich", "pmi2")])
def test_programs_of_both_families(cluster: Cluster, family: str, plugin: str) -> None:
    """Each by the plug-in that it speaks with, from a node that slurmctld is not on."""
    program = str(places.example("pi" if family == "openmpi" else "pi.mpich"))
    variables = {"LD_LIBRARY_PATH": found} if (found := mpi.find(family).library_path()) else {}
    stats = cluster.stats(family)
    before = raw(cluster.lab)
    words = ["srun", "-N2", "--ntasks-per-node=2", f"--mpi={plugin}", program, *PI]
    said = cluster.run("node2", "nobody", *words, **variables, BEOWIRE_STATS=str(stats))
    told = json.loads(said)
    assert (told["ranks"], told["checksum"]) == (4, CHECKSUM)
    proven(read_endpoints(stats), raw(cluster.lab) - before)
    until(lambda: not cluster.left(), cluster.left)


MEETING = """
touch "$1/$(id -un).$SLURM_PROCID"
until [ "$(ls "$1" | wc -l)" -eq 8 ]; do sleep 0.05; done
echo "$(id -un) on $(hostname)" >&2
exec "$2" --precision 1e-6 --json
"""


def test_two_users_at_once_on_shared_nodes(cluster: Cluster) -> None:
    """Ranks of each go on once those of the other are there, too."""
    there = cluster.stats("there")
    words = ["srun", "-N2", "--ntasks-per-node=2", "sh", "-c", MEETING, "sh", str(there)]
    words.append(str(places.example("pi")))
    both = [
        cluster.begin(node, user, *words)
        for node, user in zip(cluster.lab.node_names(), USERS, strict=True)
    ]
    for user, process in zip(USERS, both, strict=True):
        said, _ = process.communicate(timeout=2 * LIMIT_S)
        assert process.returncode == 0, said
        for node in cluster.lab.node_names():
            assert said.count(f"{user} on {node}") == 2
        assert f'"checksum": "{CHECKSUM}"' in said
    assert {each.owner() for each in there.iterdir()} == set(USERS)


def ranks(user: str) -> list[int]:
    """The ranks of the program, as the boards of their endpoints name them."""
    boards = Path(f"/dev/shm/beowire-{pwd.getpwnam(user).pw_uid}")
    found = [int(each.name.partition("-")[0]) for each in boards.glob("*-*")]
    return [pid for pid in found if name_of(pid) == "pi"]


@pytest.mark.parametrize("how", ["scancel", "kill"])
def test_a_job_that_is_ended_leaves_nothing(cluster: Cluster, how: str) -> None:
    """By Slurm, or by the death of one of its ranks; not even what has left its session."""
    detaching = '(setsid sleep infinity </dev/null >/dev/null 2>&1 &); exec "$0" "$@"'
    words = ["srun", "-N2", "--ntasks-per-node=2", "sh", "-c", detaching]
    words += [str(places.example("pi")), *FOREVER]
    with cluster.begin("node1", "daemon", *words) as process:
        try:
            until(lambda: len(ranks("daemon")) == 4 or process.poll() is not None)
            those = ranks("daemon")
            assert len(those) == 4, process.communicate()
            if how == "kill":
                os.kill(those[-1], signal.SIGKILL)
            else:
                cluster.run("node2", "daemon", "scancel", "--user=daemon")
            said, _ = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
    assert process.returncode != 0
    assert ("Killed" if how == "kill" else "CANCELLED") in said
    until(lambda: not cluster.left(), cluster.left)
    until(lambda: not cluster.run("node1", "daemon", "squeue", "--noheader", "--user=daemon"))


def test_status_answers_for_a_job_by_its_number(cluster: Cluster) -> None:
    """By its ranks alone: no batch script or srun, nor what another user calls so."""
    number = cluster.submit("node2", "nobody", f"srun {places.example('pi')} {' '.join(FOREVER)}")
    claims = {"SLURM_JOB_ID": number, "SLURM_STEP_ID": 0, "SLURM_PROCID": 4, "PMIX_RANK": 4}
    claims["PMIX_NAMESPACE"] = f"slurm.pmix.{number}.0"  # type: ignore[assignment]
    words = [f"{name}={value}" for name, value in claims.items()]
    with cluster.begin("node1", "daemon", "env", *words, "sleep", "infinity") as stranger:
        try:
            until(lambda: name_of(stranger.pid) == "sleep")
            until(lambda: len(ranks("nobody")) == 4)
            ask = ["status", "--job", str(number), "--json", "--timeout", str(LIMIT_S)]
            inside = ["lab", "exec", cluster.lab.name, "node2", "--", *beowire_cli.COMMAND, *ask]
            for command in ([*ask, "--lab", cluster.lab.name], inside):
                answer = beowire(*command)
                assert answer.status == 0, answer.errors
                members = json.loads(answer.output)["members"]
                assert [each["rank"] for each in members] == [0, 1, 2, 3]
                assert {each["pid"] for each in members} == set(ranks("nobody"))
        finally:
            stranger.kill()
    cluster.run("node1", "nobody", "scancel", str(number))
    until(lambda: not cluster.left(), cluster.left)


def test_a_job_that_is_requeued_runs_right(cluster: Cluster) -> None:
    script = (
        f'if [ "${{SLURM_RESTART_COUNT:-0}}" -eq 0 ]; then touch begun; exec sleep infinity; fi\n'
        f"srun {places.example('pi')} {' '.join(PI)}"
    )
    number = cluster.submit("node2", "nobody", script)
    until(lambda: (cluster.place / "begun").exists())
    cluster.run("node1", "nobody", "scontrol", "requeue", str(number))
    output = cluster.place / f"{number}.out"
    until(lambda: output.read_text().endswith("}\n"), output.read_text)
    told = json.loads(output.read_text())
    assert (told["ranks"], told["checksum"]) == (4, CHECKSUM)
