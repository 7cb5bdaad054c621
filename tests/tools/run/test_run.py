# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs end as their programs end and leave no process; a path not taken is not believed."""

import json
import mmap
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from beowire import places, signals
from beowire.errors import BeowireError
from beowire.lab import jobs, lab, up
from beowire.run import asked, cluster, launch, mpi, path
from beowire.run.job import (
    Ending,
    _execute,
    _loss_seen,
    _with_late_signal,
    check_settings,
    run,
    run_captured,
)
from beowire.run.launch import Command, Job
from beowire.run.once import told_once
from beowire_cli import COMMAND, beowire

pytestmark = [
    pytest.mark.usefixtures("own_shm"),
    pytest.mark.skipif(
        shutil.which("mpirun.openmpi") is None,
        reason="Open MPI is not installed: apt-get install openmpi-bin",
    ),
]

LIMIT_S = 400.0


def tcp_run(made: lab.Lab, *program: str, ranks: int = 2) -> tuple[int, str, str]:
    answer = beowire(
        "run", "--lab", made.name, "-n", str(ranks), "--transport", "tcp", "--", *program
    )
    return answer.status, answer.output, answer.errors


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


def test_settings_that_cannot_be_are_told_once(
    job_lab: lab.Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = cluster.of_lab(job_lab.name)
    monkeypatch.setenv("BEOWIRE_LINKS", "pigeons")
    with pytest.raises(BeowireError, match="BEOWIRE_LINKS=pigeons is not valid"):
        check_settings(where)
    monkeypatch.delenv("BEOWIRE_LINKS")
    for name in launch.carried_variables():
        monkeypatch.delenv(name)
    monkeypatch.setattr(asked, "answer", pytest.fail)
    check_settings(where)


def test_too_many_ranks(job_lab: lab.Lab) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "9", "--ppn", "2", "--transport", "tcp"]
    answer = beowire(*arguments, "--", "true")
    assert answer.status == 1
    assert "--ppn 5" in answer.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_job_leaves_no_process(
    job_lab: lab.Lab, number: signal.Signals, tmp_path: Path
) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp"]
    script = "echo started; sleep 1000"
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--", "sh", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(tmp_path)},
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
        left = [*tmp_path.iterdir(), *lab.load(job_lab.name).directory.glob("job-*")]
        assert left == []


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


GONE = (
    "beowire: node2 (node e45) engine 2 is gone (Connection timed out): operations with it end "
    "with an error"
)


def launched(script: str) -> Ending:
    """How a launcher ended that is this script of a shell."""
    with (
        tempfile.TemporaryDirectory() as stats,
        tempfile.TemporaryFile() as errors,
        told_once(errors) as told,
    ):
        command = Command(["sh", "-c", script], {"BEOWIRE_STATS": stats})
        lost = _loss_seen(told, "", Path(stats))
        return _execute(command, "BEOWIRE_JOB=test", None, told, lost, LIMIT_S)


@pytest.mark.parametrize("to", ["&2", "$BEOWIRE_STATS/x.told"], ids=["stderr", "file"])
def test_a_launcher_that_waits_for_a_lost_node_is_ended(to: str) -> None:
    ending = launched(f"trap '' TERM INT; echo '{GONE}' >{to}; exec sleep 1000")
    assert ending == Ending(1, timed_out=False, interrupted_by=0, lost=True)


KEPT = f"echo '{GONE}' >$BEOWIRE_STATS/x.told; trap '' TERM INT; exec sleep 1000"


@pytest.mark.parametrize("user", ["", "nobody"])
def test_a_loss_that_is_not_on_stderr_ends_the_job(user: str, lab_name: str) -> None:
    """A launcher that serves it late, or a rank whose stderr goes elsewhere, hides nothing."""
    if user and os.geteuid() != 0:
        pytest.skip("ranks of another user take root")
    up.up(lab_name, 2, 9000)
    job = Job(["sh", "-c", KEPT], 2, "tcp", user=user)
    with tempfile.TemporaryFile() as errors:
        where = cluster.of_lab(lab_name)
        record = run(job, where, output=errors, errors=errors, announce=False, limit_s=LIMIT_S)
        errors.seek(0)
        said = errors.read().decode()
    assert not record.timed_out
    assert record.exit_status == 1
    assert said.count(GONE) == 1
    assert lab.load(lab_name).processes() == []


def test_what_else_is_in_a_job_s_files_ends_nothing(tmp_path: Path) -> None:
    with tempfile.TemporaryFile() as errors, told_once(errors) as told:
        lost = _loss_seen(told, "", tmp_path)
        assert not lost()
        (tmp_path / "x.json").write_text(f"{GONE}\n")
        (tmp_path / "x.told").write_text("beowire: node2 is slow\n")
        os.mkfifo(tmp_path / "y.told")
        assert not lost()
        (tmp_path / "z.told").write_text(f"{GONE}\n")
        assert lost()


def test_a_launcher_that_ends_by_itself_has_its_own_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beowire.run.job._GRACE_S", LIMIT_S)
    ending = launched(f"echo '{GONE}' >&2; sleep 1.5; exit 7")
    assert ending == Ending(7, timed_out=False, interrupted_by=0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_launcher_that_a_signal_ends_has_the_status_of_a_shell(number: signal.Signals) -> None:
    ending = launched(f"kill -{number.value} $$")
    assert ending == Ending(128 + number, timed_out=False, interrupted_by=0)


@pytest.mark.parametrize("said", [f"rank 1: {GONE}", "beowire: node2 is slow", f"{GONE}?"])
def test_other_words_end_no_job(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beowire.run.job._GRACE_S", 0.0)
    ending = launched(f"echo '{said}' >&2; sleep 1.5; exit 0")
    assert ending == Ending(0, timed_out=False, interrupted_by=0)


def test_a_node_that_is_cut_off_for_good_ends_the_job(lab_name: str) -> None:
    """The launcher would wait for its daemon there as long as TCP does."""
    made = up.up(lab_name, 2, 9000)
    if made.mode == "loopback":
        pytest.skip("raw frames: a link can be cut on nodes in namespaces only")
    program = [str(places.example("pingpong")), "--sizes", "8", "--iters", "100000000"]
    # What Open MPI says of its end was not text once.
    with tempfile.TemporaryFile("w+", errors="backslashreplace") as errors:
        # Long beside what a rank may stand still on a busy machine, which is no loss.
        job = Job(program, 2, "beowire", environment={"BEOWIRE_DEAD_TIMEOUT": "10"})
        # Cut once frames pass: the ranks have found one another.
        count = "$(cat /sys/class/net/eth0/statistics/tx_packets)"
        flowing = f"until [ {count} -gt 20000 ]; do sleep 0.1; done"
        enter = ["sh", str(made.enter_path("node2"))]
        cutter = subprocess.Popen([*enter, "sh", "-c", f"{flowing}; ip link set eth0 down"])
        where = cluster.of_lab(lab_name)
        try:
            record = run(job, where, errors=errors, output=subprocess.DEVNULL, limit_s=LIMIT_S)
        finally:
            cutter.kill()
            cutter.wait()
        errors.seek(0)
        said = errors.read()
    assert "is gone" in said
    assert not record.timed_out
    assert record.exit_status != 0
    assert made.processes() == []


def test_what_was_counted_is_written(job_lab: lab.Lab, tmp_path: Path) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "tcp"]
    answer = beowire(*arguments, "--stats", str(tmp_path / "new"), "--", "true")
    assert answer.status == 0
    told = json.loads((tmp_path / "new" / "job.json").read_text())
    assert (told["transport"], told["endpoints"], told["exit_status"]) == ("tcp", 0, 0)


def test_where_counters_are_copied_to_stays_as_it_was(job_lab: lab.Lab, tmp_path: Path) -> None:
    """It may be a directory of everybody's."""
    tmp_path.chmod(0o1777)
    arguments = ["run", "--lab", job_lab.name, "-n", "1", "--transport", "tcp"]
    script = "echo {} >$BEOWIRE_STATS/x.told; mkdir $BEOWIRE_STATS/directory"
    answer = beowire(*arguments, "--stats", str(tmp_path), "--", "sh", "-c", script)
    assert answer.status == 0, answer.errors
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777
    assert sorted(each.name for each in tmp_path.iterdir()) == ["job.json", "x.told"]


@pytest.fixture(scope="module")
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


def test_what_other_jobs_may_have_sent_is_no_evidence(tcp_record: path.JobRecord) -> None:
    pretended = replace(tcp_record, job=replace(tcp_record.job, transport="memory"), others=2)
    with pytest.raises(BeowireError, match="cannot be judged: 2 other jobs ran on this lab"):
        path.prove(pretended)
    over = replace(pretended, job=replace(tcp_record.job, transport="beowire"))
    with pytest.raises(BeowireError, match="did not go over beowire as asked: 0 endpoints"):
        path.prove(over)
    nodes = {
        node: replace(counted, tx_bytes=counted.tx_bytes + 5_000_000)
        for node, counted in tcp_record.nodes.items()
    }
    path.prove(replace(tcp_record, nodes=nodes, others=1))
    with pytest.raises(BeowireError, match="of the 30,000,000 sent"):
        path.prove(replace(tcp_record, others=1), 30_000_000)


def test_a_job_beside_another_is_proved(job_lab: lab.Lab) -> None:
    arguments = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "beowire", "--"]
    pi = str(places.example("pi"))
    beside = subprocess.Popen(
        [*COMMAND, *arguments, "sh", "-c", f"{pi} --precision 1e-6; echo started; cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert beside.stdout is not None
    while beside.stdout.readline() not in (b"started\n", b""):
        pass
    job = Job([pi, "--precision", "1e-6"], 2, "beowire")
    record, _ = run_captured(job, cluster.of_lab(job_lab.name), LIMIT_S)
    beside.communicate(b"", LIMIT_S)
    assert beside.returncode == 0
    assert record.others == 1
    path.prove(record)
    alone, _ = run_captured(job, cluster.of_lab(job_lab.name), LIMIT_S)
    assert alone.others == 0


def test_a_script_of_another_mpi_is_told_of(job_lab: lab.Lab) -> None:
    """What it loads is not known before: each rank believes that it is alone, and ends well."""
    words = ["run", "--lab", job_lab.name, "-n", "2", "--transport", "beowire", "--", "sh", "-c"]
    other = beowire(*words, f"exec {places.example('pi')}.mpich --precision 1e-6")
    assert other.status == 0, other.errors
    assert "used Beowire: a program that does not use Open MPI" in other.errors
    own = beowire(*words, f"exec {places.example('pi')} --precision 1e-6")
    assert own.status == 0, own.errors
    assert "jobs of one rank" not in own.errors


def test_jobs_count_one_another(tmp_path: Path) -> None:
    first, second, third = (tmp_path / f"job-{number}" for number in range(3))
    for each in (first, second, third, tmp_path / "job-of-the-dead"):
        each.mkdir()
    with jobs.counted(tmp_path, first) as of_first:
        assert of_first() == 0
        with jobs.counted(tmp_path, second) as of_second:
            assert (of_first(), of_second()) == (1, 1)
        with jobs.counted(tmp_path, third) as of_third:
            assert (of_first(), of_third()) == (2, 1)  # one that ended ran beside it all the same
    with jobs.counted(tmp_path, second) as of_second:
        assert of_second() == 0


def test_what_is_executed_on_a_node_counts_as_a_job(job_lab: lab.Lab, tmp_path: Path) -> None:
    with jobs.counted(job_lab.directory, tmp_path) as others:
        assert others() == 0
    on_node = [*COMMAND, "lab", "exec", job_lab.name, "node1", "--"]
    words = ["sh", "-c", "echo started; cat"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([*on_node, *words], **pipes) as beside:
        assert beside.stdin is not None
        assert beside.stdout is not None
        assert beside.stdout.readline() == b"started\n"
        with jobs.counted(job_lab.directory, tmp_path) as others:
            assert others() == 1
            subprocess.run([*on_node, "true"], check=True)
            assert others() == 2
        beside.stdin.close()
    with jobs.counted(job_lab.directory, tmp_path) as others:
        assert others() == 0


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


@pytest.mark.skipif(os.geteuid() != 0, reason="ranks of another user take root")
def test_shared_memory_of_another_user_s_ranks_is_swept(
    job_lab: lab.Lab, shared_memory: Path
) -> None:
    """His own only: root's stays, as does what was there before."""
    before = shared_memory.with_name(f"{shared_memory.name}_before")
    before.touch()
    os.chown(before, 65534, 65534)
    arguments = ["run", "--lab", job_lab.name, "-n", "1", "--transport", "tcp"]
    script = f"sleep 0.1; id -u; echo 1 >{shared_memory}"
    answer = beowire(*arguments, "--user", "nobody", "--", "sh", "-c", script)
    assert answer.output.split() == ["65534"], answer.errors
    assert before.exists()
    assert not shared_memory.exists()


LARGE = """
import sys
file = open(sys.argv[1], "wb")
memory = bytearray(b"x") * (512 << 20)
print(flush=True)
import signal
signal.pause()
"""


def test_who_is_ending_keeps_no_shared_memory(tmp_path: Path, shared_memory: Path) -> None:
    """Such a process gives its memory back, which takes a while, and closes its files after that.
    Nobody else knows of it by then who could wait for its end."""
    began = tmp_path / "began"
    began.touch()
    sweep = ["sh", str(places.package_file("run/sweep.sh")), str(began)]
    command = [sys.executable, "-c", LARGE, str(shared_memory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        subprocess.run(sweep, check=True)
        assert shared_memory.exists()
        child.kill()
        while Path(f"/proc/{child.pid}/cmdline").read_bytes():
            pass
        subprocess.run(sweep, check=True)
    assert not shared_memory.exists()


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
    where = cluster.of_lab(up.up(lab_name, 2, 9000).name)
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
        signal.raise_signal(signal.SIGINT)
        told = _with_late_signal(ended, waited)
        assert (told.status, told.interrupted_by) == (130, signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        assert _with_late_signal(told, waited) == told  # none strikes twice
        assert signal.sigtimedwait(waited, 0) is None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
