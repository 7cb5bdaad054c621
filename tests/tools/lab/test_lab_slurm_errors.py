# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A lab with Slurm that cannot be made says why, and leaves nothing, whatever stopped it."""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from beowire import namespaces, places
from beowire.errors import BeowireError
from beowire.lab import daemon, lab, slurm, slurm_conf, up
from beowire_cli import COMMAND, NO_NAMESPACES, beowire, traces

needs_namespaces = pytest.mark.skipif(
    NO_NAMESPACES is not None, reason=f"raw frames: {NO_NAMESPACES}"
)


def nothing_left(name: str) -> None:
    assert not lab.exists(name)
    assert traces(name) == []
    assert not (lab.PUBLIC / name).exists()
    assert f"{lab.PUBLIC}/{name}/" not in Path("/proc/self/mountinfo").read_text()


def test_missing_packages_are_named(
    lab_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All at once, before anything is made."""
    monkeypatch.setattr(slurm, "_SYSTEM", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("munged", "srun"):
        (tmp_path / name).touch(mode=0o755)
    with pytest.raises(BeowireError) as caught:
        up.up(lab_name, 2, 9000, with_slurm=True)
    assert str(caught.value) == (
        "Slurm is not installed: there is no slurmctld, slurmd, sinfo.\n"
        "  Install it: apt-get install slurm-client slurmctld slurmd"
    )
    nothing_left(lab_name)


def test_who_is_not_root_is_told(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root of a user namespace that has no other users is not, either."""
    with monkeypatch.context() as context:
        context.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(BeowireError, match="Slurm needs root"):
            slurm.check_possible()
    in_namespace = ["unshare", "--user", "--map-root-user", *COMMAND]
    done = subprocess.run(
        [*in_namespace, "lab", "up", lab_name, "--nodes", "2", "--slurm"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Slurm needs root: slurmd starts the steps of jobs as the users" in done.stderr
    nothing_left(lab_name)


def test_loopback_addresses_have_no_slurm(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    with pytest.raises(BeowireError, match="where nodes share their ports"):
        up.up(lab_name, 2, 9000, with_slurm=True)
    nothing_left(lab_name)


@needs_namespaces
def test_a_port_that_is_taken_is_named(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a daemon is started that would only say that it failed."""
    held: list[socket.socket] = []
    prepare = slurm.prepare

    def take(made: lab.Lab) -> None:
        prepare(made)
        here = lambda: socket.create_server(("", slurm_conf.NODE_PORT))  # noqa: E731
        held.append(namespaces.within(made.namespace_path("node2"), here))

    monkeypatch.setattr(slurm, "prepare", take)
    with pytest.raises(BeowireError, match="Port 6818 of node2 is taken: slurmd cannot listen"):
        up.up(lab_name, 2, 9000, with_slurm=True)
    held[0].close()
    nothing_left(lab_name)


@needs_namespaces
def test_a_daemon_that_does_not_start_leaves_nothing(
    lab_name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that run already end, and what they keep is unmounted."""
    broken = tmp_path / "slurmd"
    broken.write_text("#!/bin/sh\necho it is broken >&2\nexit 1\n")
    broken.chmod(0o755)
    program = places.program
    choose = lambda name, of: str(broken) if name == "slurmd" else program(name, of)  # noqa: E731
    monkeypatch.setattr(places, "program", choose)
    with pytest.raises(BeowireError, match="slurmd of node1 did not start: it is broken"):
        up.up(lab_name, 2, 9000, with_slurm=True)
    nothing_left(lab_name)


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@needs_namespaces
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_making_leaves_nothing(lab_name: str, number: int, tmp_path: Path) -> None:
    """At once after Ctrl-C; of one that was killed, after `lab down`. It waits for a daemon of the
    last kind, which says nothing."""
    silent = tmp_path / "slurmd"
    silent.write_text("#!/bin/sh\nexec sleep infinity\n")
    silent.chmod(0o755)
    words = [*COMMAND, "lab", "up", lab_name, "--nodes", "2", "--slurm"]
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=variables) as making:
        last = lab.labs_dir() / lab_name / "node2.slurmd"
        until(lambda: last.exists() or making.poll() is not None)
        making.send_signal(number)
        making.communicate()
    if number == signal.SIGKILL:
        assert making.returncode == -number
        assert beowire("lab", "down", lab_name).status == 0
    else:
        assert making.returncode == 130
    nothing_left(lab_name)


def test_who_has_not_come_to_its_node_yet_is_ended(tmp_path: Path) -> None:
    """Who removes a lab finds a node's processes by its namespace, and waits for its own."""
    pid = daemon.spawn([places.program("sleep", "coreutils"), "infinity"], tmp_path / "log")
    removal = threading.Thread(target=daemon.reap, args=(pid,), daemon=True)
    removal.start()
    removal.join(30)
    assert not removal.is_alive()
    assert not Path(f"/proc/{pid}").exists()
    daemon.reap(pid)
    daemon.reap(1)  # not ours


@needs_namespaces
def test_a_dead_daemon_is_told(lab_name: str) -> None:
    """And a second lab of the same name, and a node that there is not."""
    made = up.up(lab_name, 1, 9000, with_slurm=True)
    assert made.slurm.keys() == {"node1"}
    told = slurm.told(made)
    assert told is not None
    assert (told["nodes"], told["dead"]) == ({"node1": "idle"}, [])
    with pytest.raises(BeowireError, match=f"There is a lab {lab_name} already"):
        up.up(lab_name, 1, 9000, with_slurm=True)
    answer = beowire("lab", "exec", lab_name, "node2", "--", "srun", "hostname")
    assert f"Lab {lab_name} has no node node2" in answer.errors
    os.kill(made.slurm["node1"]["slurmctld"], signal.SIGKILL)
    until(lambda: slurm.dead(made) == ["slurmctld of node1"])
    answer = beowire("lab", "status", lab_name)
    assert "namespace, Slurm" in answer.output
    assert "slurmctld of node1 is dead, Slurm does not work there" in answer.errors
    assert slurm.told(made) == {**told, "nodes": {}, "dead": ["slurmctld of node1"]}
    up.down(lab_name)
    nothing_left(lab_name)
