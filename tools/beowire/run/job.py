# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs one MPI job and leaves nothing of it behind.

The launcher is a child in our process group, so that its input, output and Ctrl-C are the
program's own; of its standard error only repeated remarks of Beowire's are left out. Every process
of the job carries the job's name in its environment; what the launcher leaves alive is found and
killed by it. Shared memory of killed processes is swept away.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from beowire import installed, namespaces, places, signals
from beowire.errors import BeowireError
from beowire.lab import jobs
from beowire.lab.lab import Lab, marked_processes
from beowire.run import asked, key, launch, mpi, user
from beowire.run.cluster import Cluster
from beowire.run.endings import LEFT, is_a_loss, read_losses
from beowire.run.launch import Command, Job
from beowire.run.observer import observed
from beowire.run.once import Passage, told_once
from beowire.run.path import JobRecord, read_endpoints
from beowire.terminal import note

_PATIENCE_S = 10.0
_GRACE_S = 3.0
"""For a launcher to end once one of its ranks was lost."""
_LOOK_S = 1.0
_SWEEP_S = 10.0
_ROOM_BYTES = 24 << 20
_ROOM_FILES = 100
_PR_SET_PDEATHSIG = 1


class Ending(NamedTuple):
    """How a job ended."""

    status: int
    timed_out: bool
    interrupted_by: int
    lost: bool = False
    """It had lost a rank, its launcher did not end, and so it was ended."""


def run(
    job: Job,
    cluster: Cluster,
    *,
    output: IO[bytes] | int | None = None,
    errors: IO[bytes] | int | None = None,
    announce: bool = True,
    limit_s: float | None = None,
    keep_stats: Path | None = None,
) -> JobRecord:
    """Runs the job to its end; the record says how it ended and what was counted meanwhile.

    `output` and `errors` are as for subprocess; `limit_s` bounds the job's time, after which it
    is killed and the record says so. The endpoints' own counters are copied to `keep_stats`.
    """
    ask_ahead(job, cluster)
    launch.check_program(job, cluster)
    with (
        session(cluster) as directory,
        _others(cluster, directory) as others,
        user.directory(job.user, directory) as place,
    ):
        stats_dir = place / "stats"
        stats_dir.mkdir()
        user.give(job.user, stats_dir)
        stated = launch.command(job, cluster, None)
        if announce:
            note(stated.text())
        with told_once(errors) as told:
            with observed(cluster, stats_dir) as observation:
                environment = {"BEOWIRE_STATS": observation.stats_dir, **job.environment}
                command = launch.command(replace(job, environment=environment), cluster, place)
                started_ns = time.monotonic_ns()
                lost = _loss_seen(told, job.user, stats_dir)
                ending = _execute_whole(command, job.user, place, output, told, lost, limit_s)
                elapsed_ns = time.monotonic_ns() - started_ns
            stats_dir = user.take(job.user, stats_dir, directory)
            # A launcher that ends its job may lose what a rank said last.
            told.say(read_losses(stats_dir))
        if ending.lost:
            note(
                "the job lost a rank (see above), and its launcher did not end within "
                f"{_GRACE_S:.0f} s: it was ended"
            )
        if keep_stats is not None:
            _keep(stats_dir, keep_stats)
        return JobRecord(
            job=job,
            command=stated.text(),
            exit_status=ending.status,
            timed_out=ending.timed_out,
            interrupted_by=ending.interrupted_by,
            elapsed_ns=elapsed_ns,
            nodes=observation.nodes,
            exclusive=observation.exclusive,
            unheard=observation.unheard,
            others=others(),
            endpoints=read_endpoints(stats_dir),
        )


def _keep(stats_dir: Path, to: Path) -> None:
    """Copies what is in the files, and nothing else: the other directory may be anybody's, and
    keeps its owner, mode and times."""
    to.mkdir(parents=True, exist_ok=True)
    for each in stats_dir.iterdir():
        if each.is_file():
            shutil.copyfile(each, to / each.name)


def _loss_seen(told: Passage, user_name: str, stats_dir: Path) -> Callable[[], bool]:
    """What tells whether the job has lost a rank by now. Its ranks say so on stderr, which may go
    elsewhere or come late, and in files, which are at hand in a lab."""
    owner = user.ranks_uid(user_name)

    def seen() -> bool:
        return told.loss_was_told() or any(map(is_a_loss, user.look(owner, stats_dir, LEFT)))

    return seen


def _execute_whole(
    command: Command,
    user_name: str,
    place: Path,
    output: IO[bytes] | int | None,
    told: Passage,
    lost: Callable[[], bool],
    limit_s: float | None,
) -> Ending:
    """Executes the command, and kills and removes what is left of the job afterwards."""
    mark = f"BEOWIRE_JOB={uuid.uuid4()}"
    began = place / "began"
    began.touch()
    try:
        return _execute(command, mark, output, told, lost, limit_s)
    finally:
        with signals.uninterrupted():
            left = namespaces.kill(lambda: marked_processes(mark))
            _sweep(began)
            if user_name:
                _sweep(began, user.become(user_name))
        if left:
            note(f"these processes of the job do not die: {left}")


def _sweep(began: Path, become: Sequence[str] = ()) -> None:
    """Removes the shared memory that the job left, of who executes this, or whom they become, who
    may not be able to reach the script's directory."""
    with (
        places.package_file("run/sweep.sh").open() as script,
        contextlib.suppress(subprocess.TimeoutExpired),  # that user may have stopped it
    ):
        subprocess.run(
            [*become, "sh", "-s", str(began)], stdin=script, check=False, timeout=_SWEEP_S
        )


def run_captured(
    job: Job, cluster: Cluster, limit_s: float, keep_stats: Path | None = None
) -> tuple[JobRecord, str]:
    """Runs a job and returns its output; a job that fails is an error that shows why."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        record = run(
            job,
            cluster,
            output=output,
            errors=errors,
            announce=False,
            limit_s=limit_s,
            keep_stats=keep_stats,
        )
        output.seek(0)
        errors.seek(0)
        text = output.read().decode(errors="replace")
        complaint = errors.read().decode(errors="replace")
    if record.interrupted_by == signal.SIGINT:
        raise KeyboardInterrupt
    if record.interrupted_by:
        raise SystemExit(128 + record.interrupted_by)
    if record.exit_status != 0:
        ending = "took too long" if record.timed_out else f"ended with {record.exit_status}"
        tail = "\n".join((text + complaint).splitlines()[-30:])
        raise BeowireError(
            f"A run over {job.transport} {ending}:\n{tail}",
            f"It was started by: {record.command}",
        )
    return record, text


def ask_ahead(job: Job, cluster: Cluster, *, settings: bool = False) -> None:
    """Begins the commands that tell whether the job can be started, and for `check_settings` too:
    they run while others are waited for."""
    if settings and cluster.lab is not None and launch.carried_variables():
        asked.begin(_settings_command(cluster, cluster.lab))
    mpi.find(job.mpi).ask_ahead(job.program, libfabric=job.transport == "beowire")


def check_settings(cluster: Cluster) -> None:
    """Fails if Beowire cannot be used on the first node of a lab as its variables demand: once, and
    not in every rank between the complaints of an MPI. Without any nothing is asked."""
    if cluster.lab is None or not launch.carried_variables():
        return
    command = _settings_command(cluster, cluster.lab)
    status, said = asked.answer(command)
    if status != 0:
        raise BeowireError(
            said.strip().removeprefix("beowire-info: "),
            f"Change or unset that variable; {installed.COMMAND} lab exec {cluster.lab.name} "
            f"{cluster.hosts[0]} -- {command[-2]} tells more.",
        )


def check_key(job: Job, cluster: Cluster) -> None:
    """Fails unless the key that ranks are to take, if any, is there and the same wherever they
    run."""
    named = {**launch.carried_variables(), **job.environment}.get("BEOWIRE_KEY")
    if not named:
        return
    if not Path(named).is_absolute():
        raise BeowireError(
            f"BEOWIRE_KEY={named} is another file wherever a rank starts.",
            "Write its name from / on, or name it by --key.",
        )
    used = replace(cluster, hosts=list(launch.place(job, cluster)))
    key.agreed(Path(named), key.look_everywhere(used, Path(named)))


def _settings_command(cluster: Cluster, lab: Lab) -> list[str]:
    info = str(places.product("programs/beowire-info"))
    return ["sh", str(lab.enter_path(cluster.hosts[0])), info, "--check"]


@contextlib.contextmanager
def session(cluster: Cluster) -> Iterator[Path]:
    """A directory for the launcher's files and the counters, gone afterwards. In a lab it lies in
    the lab's own directory, so that removing the lab removes it whatever happens to us."""
    parent = cluster.lab.directory if cluster.lab else Path(tempfile.gettempdir())
    _check_room(parent)
    directory = Path(tempfile.mkdtemp(prefix=jobs.PREFIX, dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _others(cluster: Cluster, directory: Path) -> Iterator[Callable[[], int]]:
    """Tells how many other jobs ran on the same lab; nobody knows that of real hosts."""
    if cluster.lab is None:
        yield lambda: 0
        return
    with jobs.counted(cluster.lab.directory, directory) as others:
        yield others


def _check_room(directory: Path) -> None:
    """Fails where the launcher would, with words that tell nothing, for want of space."""
    disk = os.statvfs(directory)
    free_bytes = disk.f_bavail * disk.f_frsize
    # Some file systems do not count files; they say that they have room for none.
    if free_bytes < _ROOM_BYTES or (disk.f_files and disk.f_favail < _ROOM_FILES):
        raise BeowireError(
            f"There is room for {free_bytes >> 10} KiB and {disk.f_favail} files in {directory}; "
            f"an MPI's launcher needs {_ROOM_BYTES >> 10} KiB and {_ROOM_FILES} files.",
            "Free some space there.",
        )


def _execute(
    command: Command,
    mark: str,
    output: IO[bytes] | int | None,
    told: Passage,
    lost: Callable[[], bool],
    limit_s: float | None,
) -> Ending:
    """Starts the command and waits, passing on signals that only we got. The status is that of
    a shell: 128 + N when signal N ended it. `lost` tells whether the job lost a rank."""
    name, _, value = mark.partition("=")
    environment = {**os.environ, **command.environment, name: value}
    waited = {*signals.ENDING, signal.SIGCHLD}
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    parent = os.getpid()

    def in_child() -> None:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)
        signals.release(old_mask)

    try:
        child = subprocess.Popen(
            command.arguments,
            env=environment,
            stdout=output,
            stderr=told.descriptor,
            preexec_fn=in_child,
        )
        return _with_late_signal(_wait(child, waited, lost, limit_s), waited)
    finally:
        # A signal that came for the job was dealt with; none may strike twice.
        while signal.sigtimedwait(waited, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def _with_late_signal(ending: Ending, waited: set[signal.Signals]) -> Ending:
    """A signal that came as the job ended by itself is one for whoever runs it all the same."""
    while (received := signal.sigtimedwait(waited, 0)) is not None:
        if received.si_signo in signals.ENDING and not ending.interrupted_by:
            number = received.si_signo
            ending = ending._replace(status=128 + number, interrupted_by=number)
    return ending


def _wait(
    child: "subprocess.Popen[bytes]",
    waited: set[signal.Signals],
    lost: Callable[[], bool],
    limit_s: float | None,
) -> Ending:
    deadline = time.monotonic() + limit_s if limit_s else None
    timed_out = False
    lost_at: float | None = None
    interrupted_by = 0
    while child.poll() is None:
        now = time.monotonic()
        if lost_at is None and lost():
            lost_at = now
        left = max(deadline - now, 0) if deadline else _LOOK_S
        received = signal.sigtimedwait(waited, min(left, _LOOK_S))
        if received is not None and received.si_signo in signals.ENDING:
            interrupted_by = interrupted_by or received.si_signo
            deadline = time.monotonic() + _PATIENCE_S
            # A negative or zero code: sent to us alone. The terminal signals the whole group.
            if received.si_code <= 0:
                child.send_signal(received.si_signo)
        elif lost_at is not None and time.monotonic() >= lost_at + _GRACE_S:
            # It waits for its daemon on a node that is lost. Told to end it would do so again, and
            # some then crash; its processes are found by their mark, here and on a lab's nodes.
            child.kill()
            child.wait()
            status = 128 + interrupted_by if interrupted_by else 1
            return Ending(status, timed_out=False, interrupted_by=interrupted_by, lost=True)
        elif deadline and time.monotonic() >= deadline and child.poll() is None:
            timed_out = not interrupted_by
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(timeout=2.0)
            child.kill()
            child.wait()
    status = child.returncode
    if interrupted_by:
        status = -interrupted_by
    return Ending(128 - status if status < 0 else status, timed_out, interrupted_by)
