# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which jobs run on a lab at the same time: they share its interfaces, and the counters of these.

Each job holds a lock on its own directory, as long as it lives and however it ends, and adds a byte
to a file when it begins. So those that ran when another began are seen by their locks, and those
that began later by the file's length, ended or not. What `lab exec` executes counts, too; all of it
shares one directory and its lock.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

PREFIX = "job-"
"""Of the names of jobs' directories, in that of their lab."""
_EXECUTED = f"{PREFIX}exec"
_BEGAN = "jobs-begun"


@contextlib.contextmanager
def counted(lab: Path, job: Path) -> Iterator[Callable[[], int]]:
    """Counts this job as long as the context lasts. What it yields tells how many others ran since
    then, for a while at least."""
    descriptor = _begin(lab, job, fcntl.LOCK_EX)
    try:
        file = lab / _BEGAN
        begun = file.stat().st_size
        earlier = sum(_lives(each) for each in lab.glob(f"{PREFIX}*") if each != job)
        yield lambda: earlier + file.stat().st_size - begun
    finally:
        os.close(descriptor)


def join(lab: Path) -> None:
    """Counts this process, what it executes and the processes that it leaves behind as a job: they
    inherit the descriptor that has the lock."""
    job = lab / _EXECUTED
    job.mkdir(exist_ok=True)
    os.set_inheritable(_begin(lab, job, fcntl.LOCK_SH), True)


def _begin(lab: Path, job: Path, lock: int) -> int:
    """Locks the job's directory, by the descriptor returned, and says that a job began."""
    descriptor = os.open(job, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, lock)
    with (lab / _BEGAN).open("ab", buffering=0) as stream:
        stream.write(b".")
    return descriptor


def _lives(job: Path) -> bool:
    """Whether somebody holds the lock of this directory."""
    try:
        descriptor = os.open(job, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False  # it ended just now
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
