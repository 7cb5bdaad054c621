# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs end as their programs end and leave no process; a path not taken is not believed."""

import json
import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from beowire import cluster, lab, lab_up, mpi, path, places, signals
from beowire.errors import BeowireError
from beowire.launch import Job
from beowire.run import Ending, _with_late_signal, run, run_captured
from beowire_cli import COMMAND, beowire

pytestmark = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None,
    reason="Open MPI is not installed: apt-get install openmpi-bin",
)

LIMIT_S = 120.0


def tcp_run(made: lab.Lab, *program: str, ranks: int = 2) -> tuple[int, str, str]:
    answer = beowire(
        "run", "--lab", made.name, "-n", str(ranks), "--transport", "tcp", "--", *program
    )
    return answer.status, answer.output, answer.errors


def temporary_files() -> set[str]:
    """Files of launchers, MPI libraries and ours where such files are put."""
    marks = ("ompi", "vader", "pmix", "beowire", "job-", "bw-")
    places = (Path(tempfile.gettempdir()), Path("/dev/shm"))
    names = {entry.name for place in places for entry in place.iterdir()}
    return {name for name in names if any(mark in name for mark in marks)}


def test_ranks_run_on_the_nodes(job_lab: lab.Lab) -> None:
    script = "echo $OMPI_COMM_WORLD_RANK $(hostname) $BEOWIRE_NODE"
    status, output, _ = tcp_run(job_lab, "sh", "-c", script, ranks=4)
    assert status == 0
    ranks = sorted(line.split() for line in output.splitlines())
    expected = ["node1", "node1", "node2", "node2"]
    if job_lab.mode == "loopback":
        assert [words[2] for words in ranks] == expected
    else:
        assert [words[:2] for words in ranks] == [[str(k), expected[k]] for k in range(4)]


def test_the_status_is_the_program_s(job_lab: lab.Lab) -> None:
    assert tcp_run(job_lab, "sh", "-c", "exit 7")[0] == 7


def test_the_command_line_is_printed(job_lab: lab.Lab) -> None:
    _, output, errors = tcp_run(job_lab, "true")
    assert output == ""
    assert "mpirun.openmpi" in errors
    assert "--mca pml ob1" in errors


def test_a_program_that_is_not_there(job_lab: lab.Lab) -> None:
    status, _, errors = tcp_run(job_lab, "/no/such/program")
    assert status != 0
    assert "/no/such/program" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-n", "2", "--transport", "tcp", "--", "true"], "Give one of --lab"),
        (["-n", "2", "--transport", "smoke", "--lab", "x", "--", "true"], "smoke"),
        (["-n", "2", "--transport", "tcp", "--lab", "nosuchlab", "--", "true"], "no lab nosuchlab"),
        (["-n", "2", "--transport", "tcp", "--hostfile", "/none", "--", "true"], "/none"),
        (["-n", "2", "--transport", "tcp", "--lab", "x"], "PROGRAM"),
    ],
)
def test_bad_input_is_named(arguments: list[str], said: str) -> None:
    answer = beowire("run", *arguments)
    assert answer.status != 0
    assert said in answer.errors
    assert "Traceback" not in answer.errors


def test_too_many_ranks(job_lab: lab.Lab) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "9", "--ppn", "2", "--transport", "tcp"]
    answer = beowire(*arguments, "--", "true")
    assert answer.status == 1
    assert "--ppn 5" in answer.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_job_leaves_no_process(job_lab: lab.Lab, number: signal.Signals) -> None:
    files = temporary_files()
    arguments = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp"]
    script = "echo started; sleep 1000"
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    assert process.stdout.readline() == b"started\n"
    process.send_signal(number)
    status = process.wait()
    process.stdout.close()
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    if number == signal.SIGKILL:  # nobody is left to wait for the launcher, which ends by itself
        while lab.load(job_lab.name).processes():
            time.sleep(0.05)
    assert lab.load(job_lab.name).processes() == []
    if number != signal.SIGKILL:
        assert temporary_files() - files == set()


def test_a_job_that_takes_too_long_is_ended(job_lab: lab.Lab) -> None:
    with open(os.devnull, "wb") as nowhere:
        record = run(
            Job(["sleep", "1000"], 2, "tcp"),
            cluster.of_lab(job_lab.name),
            output=nowhere,
            errors=nowhere,
            announce=False,
            limit_s=2.0,
        )
    assert record.timed_out
    assert record.exit_status != 0
    assert job_lab.processes() == []


def test_what_was_counted_is_written(job_lab: lab.Lab, tmp_path: Path) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp"]
    answer = beowire(*arguments, "--stats", str(tmp_path / "new"), "--", "true")
    assert answer.status == 0
    told = json.loads((tmp_path / "new" / "job.json").read_text())
    assert (told["transport"], told["endpoints"], told["exit_status"]) == ("tcp", 0, 0)


@pytest.fixture
def tcp_record(job_lab: lab.Lab) -> path.JobRecord:
    """A job that went over TCP: 20 MB from node1 to node2, by a plain socket."""
    if job_lab.mode == "loopback":
        pytest.skip("raw frames: the kernel's counters of each node need namespaces")
    script = (
        "import os, socket, time\n"
        "if os.environ['OMPI_COMM_WORLD_RANK'] == '1':\n"
        "    connection, _ = socket.create_server(('', 47001)).accept()\n"
        "    while connection.recv(1 << 20): pass\n"
        "else:\n"
        "    while True:\n"
        "        try: connection = socket.create_connection(('node2', 47001)); break\n"
        "        except ConnectionRefusedError: time.sleep(0.01)\n"
        "    connection.sendall(bytes(20_000_000))\n"
    )
    job = Job(["python3", "-c", script], 2, "tcp")
    record, _ = run_captured(job, cluster.of_lab(job_lab.name), LIMIT_S)
    return record


def test_a_job_over_tcp_is_believed(tcp_record: path.JobRecord) -> None:
    path.prove(tcp_record, 20_000_000)
    with pytest.raises(BeowireError, match="of the 30,000,000 sent"):
        path.prove(tcp_record, 30_000_000)


def test_a_silent_fall_back_to_tcp_is_not_believed(tcp_record: path.JobRecord) -> None:
    pretended = replace(tcp_record, job=replace(tcp_record.job, transport="beowire"))
    with pytest.raises(BeowireError, match=r"TCP carried 2\d,.* bytes, more than"):
        path.prove(pretended, 20_000_000)


def test_uncounted_raw_frames_are_not_believed(tcp_record: path.JobRecord) -> None:
    nodes = {
        node: replace(counted, tx_bytes=counted.tx_bytes + 5_000_000)
        for node, counted in tcp_record.nodes.items()
    }
    with pytest.raises(BeowireError, match="in raw frames"):
        path.prove(replace(tcp_record, nodes=nodes))


@pytest.fixture
def shared_memory() -> Iterator[Path]:
    """A name for files in shared memory such as MPICH makes, removed afterwards."""
    stem = Path(f"/dev/shm/mpich_shm_{os.getpid():x}")
    yield stem
    for file in stem.parent.glob(f"{stem.name}*"):
        file.unlink()


def test_shared_memory_of_the_job_is_swept(job_lab: lab.Lab, shared_memory: Path) -> None:
    """Only what the job made: not what was there before, what others use, or other files."""
    before, used, opened, left, other = (
        shared_memory.with_name(f"{shared_memory.name}{end}")
        for end in ("_before", "_used", "_opened", "_left", "_0")
    )
    other = other.with_name(f"not-{other.name}")
    before.touch()
    arguments = ["run", "--lab", job_lab.name, "-n", "1", "--transport", "tcp"]
    script = f"sleep 0.1; echo 1 > {left}; echo 1 > {other}; echo made; read line"
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"made\n"
    used.write_bytes(b"1")
    try:
        with used.open("r+b") as stream, mmap.mmap(stream.fileno(), 1), opened.open("wb"):
            stream.close()
            process.communicate(b"\n", LIMIT_S)
            there = [file.exists() for file in (before, used, opened, left, other)]
        assert process.returncode == 0
        assert there == [True, True, True, False, True]
    finally:
        other.unlink(missing_ok=True)


@pytest.mark.parametrize("name", ["mpich", "mpich5", "openmpi5"])
def test_a_killed_rank_leaves_no_shared_memory(name: str, job_lab: lab.Lab) -> None:
    directory = mpi.wheel_dir(name)
    if not (directory / "bin" / "mpirun").exists():
        pytest.skip(f"{name} is not installed in {directory}")
    if name == "openmpi5" and job_lab.mode == "loopback":
        pytest.skip("Open MPI 5 starts nothing on loopback addresses; namespaces are refused here")
    suffix = ".mpich" if mpi.find(str(directory)).family == "mpich" else ""
    program = places.product(f"tests/mpi/killed{suffix}")
    before = set(Path("/dev/shm").iterdir())
    job = Job([str(program)], 4, "tcp", mpi=str(directory))
    with pytest.raises(BeowireError):
        run_captured(job, cluster.of_lab(job_lab.name), LIMIT_S)
    assert set(Path("/dev/shm").iterdir()) - before == set()


def test_nodes_on_loopback_share_no_memory(lab_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have one host name, after which Open MPI names its segments of shared memory."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    where = cluster.of_lab(lab_up.up(lab_name, 2, 9000).name)
    job = Job([str(places.example("pi")), "--precision", "1e-6"], 4, "tcp")
    for _ in range(4):
        run_captured(job, where, LIMIT_S)


def test_a_signal_before_the_job_has_become_a_program_ends_it() -> None:
    """Ctrl-C reaches the whole group, a child that was just forked too."""
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def in_child() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        signals.release(old)

    try:
        child = subprocess.Popen(["sleep", "60"], preexec_fn=in_child)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
    assert child.wait() == -signal.SIGINT


def test_a_signal_that_comes_as_a_job_ends_counts() -> None:
    waited = {signal.SIGINT, signal.SIGTERM, signal.SIGCHLD}
    ended = Ending(status=0, timed_out=False, interrupted_by=0)
    old = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    try:
        assert _with_late_signal(ended, waited) == ended
        os.kill(os.getpid(), signal.SIGINT)
        told = _with_late_signal(ended, waited)
        assert (told.status, told.interrupted_by) == (130, signal.SIGINT)
        os.kill(os.getpid(), signal.SIGTERM)
        assert _with_late_signal(told, waited) == told  # none strikes twice
        assert signal.sigtimedwait(waited, 0) is None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
