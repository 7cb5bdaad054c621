# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What cannot be done is said before anything is begun: in a few words, with the fix, and with a
status other than zero."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.lab import lab, up
from beowire_cli import COMMAND, Answer, beowire, small_file_system, traces

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)

BENCH = ["--rounds", "1", "--mode", "latency", "--sizes", "8", "--iters", "10"]
BENCH += ["--baseline", "native"]


def refused(*arguments: str, **variables: str) -> str:
    """The words of a command that must fail, and by itself: no launcher speaks."""
    answer: Answer = beowire(*arguments, **variables)
    assert answer.status != 0, answer.output
    assert answer.output == ""
    assert "Traceback" not in answer.errors
    assert "mpirun" not in answer.errors
    assert len(answer.errors.splitlines()) >= 2, "no fix is named"
    return answer.errors


def test_programs_that_cannot_be_started(job_lab: lab.Lab, tmp_path: Path) -> None:
    run = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp", "--"]
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"\0\1\2\3" * 100)
    garbage.chmod(0o755)
    assert "There is no program /no/such" in refused(*run, "/no/such")
    assert "on the search path" in refused(*run, "no-such-program")
    assert f"{tmp_path} is a directory" in refused(*run, str(tmp_path))
    assert f"chmod +x {plain}" in refused(*run, str(plain))
    assert f"{garbage} is no program" in refused(*run, str(garbage))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ssh", ""], "--ssh names no command"),
        (["--ssh", '"'], "Close the quotes"),
        (["--ssh", "/no/ssh"], "/no/ssh cannot be executed"),
        (["--ssh", "false"], "did not do as asked"),
        (["--network", "1.2.3"], "no network"),
        (["--network", "10.0.0.0/40"], "no network"),
    ],
)
@pytest.mark.parametrize("command", ["bench", "demo"])
def test_hosts_that_cannot_be_reached(command: str, arguments: list[str], said: str) -> None:
    if command == "demo" and shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    subcommand = ["bench", "pingpong", *BENCH] if command == "bench" else ["demo"]
    assert said in refused(*subcommand, "--hosts", "a,b", *arguments)


def test_a_host_file_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_bytes(bytes(range(128, 256)))
    bench = ["bench", "pingpong", *BENCH, "--hostfile"]
    assert "it is no text" in refused(*bench, str(file))
    assert "Is a directory" in refused(*bench, str(tmp_path))
    assert "No hosts named" in refused(*bench, os.devnull)


@pytest.mark.parametrize("file", ["/nowhere/x.json", "/tmp", "/proc/x.json"])
def test_results_that_cannot_be_written(file: str, job_lab: lab.Lab) -> None:
    bench = ["bench", "pingpong", "--lab", job_lab.name, *BENCH]
    assert f"{file} cannot be written" in refused(*bench, "--json", file)
    assert f"{file} cannot be written" in refused("demo", "--json", file)


@pytest.mark.parametrize("directory", ["/proc/x", "/etc/passwd", "/etc/passwd/x"])
def test_counters_that_cannot_be_written(directory: str, job_lab: lab.Lab) -> None:
    run = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp"]
    words = refused(*run, "--stats", directory, "--", "true")
    assert f"{directory} cannot be written" in words


def test_a_full_device_at_the_end(job_lab: lab.Lab) -> None:
    answer = beowire("bench", "pingpong", "--lab", job_lab.name, *BENCH, "--json", "/dev/full")
    assert answer.status == 1
    assert "/dev/full cannot be written: No space left" in answer.errors
    assert "Traceback" not in answer.errors


@pytest.mark.parametrize("sizes", ["0x", "-1", "8,,9", "1t"])
def test_sizes_that_are_none(sizes: str, job_lab: lab.Lab) -> None:
    bench = ["bench", "pingpong", "--lab", job_lab.name]
    assert f"--sizes {sizes}?" in refused(*bench, "--sizes", sizes)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("BEOWIRE_INTERFACE", "nosuch", "no such interface; there are: lo"),
        ("BEOWIRE_LINKS", "smoke", "comma list of local, packet, udp and kernel"),
        ("BEOWIRE_MTU", "10", "from 576 to 65000"),
    ],
)
def test_settings_are_refused_once(variable: str, value: str, said: str, job_lab: lab.Lab) -> None:
    """In one voice, instead of every rank's."""
    if job_lab.mode == "loopback" and variable != "BEOWIRE_MTU":
        pytest.skip("raw frames: the nodes' interfaces and links are given on loopback addresses")
    run = ["run", "--lab", job_lab.name, "-n", "4", "--transport", "beowire", "--", "true"]
    bench = ["bench", "pingpong", "--lab", job_lab.name, *BENCH]
    for command in (run, bench):
        words = refused(*command, **{variable: value})
        assert words.count(said) == 1


def test_a_ping_pong_of_one_node(lab_name: str) -> None:
    up.up(lab_name, 1, 9000)
    assert "needs two nodes" in refused("bench", "pingpong", "--lab", lab_name)


def test_a_lab_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    state = {"BEOWIRE_STATE": str(tmp_path), "BEOWIRE_LAB_MODE": "loopback"}
    assert beowire("lab", "up", "whole", "--nodes", "2", **state).status == 0
    try:
        (tmp_path / "labs" / "broken").mkdir()
        (tmp_path / "labs" / "broken" / "lab.json").write_text("{")
        for words in ((), ("--json",)):
            answer = beowire("lab", "status", *words, **state)
            assert answer.status == 1
            assert "whole" in answer.output
            assert "broken" in answer.errors
            assert "cannot be read" in answer.errors
    finally:
        assert beowire("lab", "down", "whole", **state).status == 0


@pytest.mark.parametrize("content", ["{", "[]", '{"name": "x"}', '{"shapes": {"a": {"b": 1}}}'])
def test_a_damaged_description(content: str, lab_name: str, tmp_path: Path) -> None:
    state = {"BEOWIRE_STATE": str(tmp_path), "BEOWIRE_LAB_MODE": "loopback"}
    directory = tmp_path / "labs" / "damaged"
    directory.mkdir(parents=True)
    (directory / "lab.json").write_text(content)
    for command in (["lab", "down", "damaged"], ["lab", "status"]):
        assert f"rm -r {directory}" in refused(*command, **state)
    # Others are not hindered.
    assert beowire("lab", "up", lab_name, "--nodes", "1", **state).status == 0
    assert beowire("lab", "down", lab_name, **state).status == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for a lab, and little else."""
    with small_file_system(tmp_path, "size=1m"):
        yield tmp_path


def fill(file: Path) -> None:
    """Takes all the room that there is."""
    with open(file, "wb", buffering=0) as stream, contextlib.suppress(OSError):
        while True:
            stream.write(bytes(1 << 14))


def test_a_job_without_room(small_disk: Path, lab_name: str) -> None:
    state = {"BEOWIRE_STATE": str(small_disk)}
    assert beowire("lab", "up", lab_name, "--nodes", "2", **state).status == 0
    run = ["run", "--lab", lab_name, "-n", "2", "--transport", "tcp", "--", "true"]
    assert "Free some space" in refused(*run, **state)
    fill(small_disk / "fill")
    if os.environ.get("BEOWIRE_LAB_MODE") != "loopback":
        assert "No space is left" in refused("lab", "set", lab_name, "--loss", "1%", **state)
    assert beowire("lab", "down", lab_name, **state).status == 0
    assert traces(lab_name) == []
    assert list((small_disk / "labs").iterdir()) == []


@pytest.fixture
def as_nobody() -> list[str]:
    """What makes a command one of a user without privileges, who can read what it needs."""
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    probe = [*become, *COMMAND, "version"]
    if subprocess.run(probe, capture_output=True, check=False, cwd="/").returncode != 0:
        pytest.skip("other users cannot read this checkout or its Python")
    return become


def test_a_user_without_privileges(as_nobody: list[str], lab_name: str) -> None:
    state = Path("/tmp") / f"beowire-test-{os.getpid()}"
    state.mkdir()
    os.chown(state, 65534, 65534)

    def run(*arguments: str, **variables: str) -> Answer:
        done = subprocess.run(
            [*as_nobody, *COMMAND, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd="/",
            env={**os.environ, "BEOWIRE_STATE": str(state), "HOME": "/", **variables},
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    try:
        forced = run("lab", "up", lab_name, "--nodes", "2", BEOWIRE_LAB_MODE="namespace")
        assert forced.status == 1
        assert "Run as root" in forced.errors
        made = run("lab", "up", lab_name, "--nodes", "2", BEOWIRE_LAB_MODE="loopback")
        assert made.status == 0
        assert "No namespaces" in made.errors
        pi = [str(places.example("pi")), "--precision", "1e-4"]
        over = ["run", "--lab", lab_name, "-n", "2", "--transport", "beowire", "--prove", "--"]
        assert run(*over, *pi).status == 0
        assert run("lab", "down", lab_name).status == 0
        assert list((state / "labs").iterdir()) == []
    finally:
        shutil.rmtree(state)


def test_a_build_directory_that_cannot_be() -> None:
    done = subprocess.run(
        [places.root() / "beowire", "info"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "BEOWIRE_BUILD": "/proc/nothing"},
    )
    assert done.returncode == 1
    assert "name another in BEOWIRE_BUILD" in done.stderr
