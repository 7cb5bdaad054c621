# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a foreign command where it can neither outlive its time nor leave anything behind: in a
process and mount namespace of its own, with a /dev/shm of its own."""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
from pathlib import Path
from threading import Event, Lock

_PRIVATE = 'mount -t tmpfs -o size=4g tmpfs /dev/shm || exit 125; "$@"; exit $?'
"""The shell stays: the first process of a namespace is deaf to signals that it does not catch."""
_OUTPUT_BYTES = 1 << 20
_DYING_S = 20.0
_running: set["subprocess.Popen[bytes]"] = set()
_lock = Lock()
_no_more = Event()


def run(
    command: list[str], limit_s: float, directory: Path, environment: dict[str, str]
) -> tuple[int | None, str]:
    """Exit status (None: it was ended at its limit) and the last part of all that it printed."""
    unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
    with tempfile.TemporaryFile() as output:
        with _lock:
            if _no_more.is_set():
                return None, ""
            process = subprocess.Popen(
                [*unshare, "--", "sh", "-c", _PRIVATE, "sh", *command],
                cwd=directory,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
            _running.add(process)
        status: int | None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            with _lock:
                _running.discard(process)
            _end(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
        return status, output.read().decode(errors="replace")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kills what has not ended yet, and waits until nothing of it lives: the first process of a
    namespace ends behind all others there."""
    first = _children(process.pid) if process.poll() is None else []
    _kill(process)
    process.wait()
    for each in first:
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(each)
            select.select([descriptor], [], [], _DYING_S)
            os.close(descriptor)


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _kill(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)


def end_all() -> None:
    """Kills what other threads run here, and lets them start nothing more."""
    with _lock:
        _no_more.set()
        for process in _running:
            _kill(process)


def memory_bytes() -> int:
    """What new programs can have without others being pushed out."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("MemAvailable:"))
