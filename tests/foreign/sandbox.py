# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a foreign command where it can neither outlive its time nor leave anything behind: in a
process and mount namespace of its own, with a /dev/shm of its own."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

_PRIVATE = 'mount -t tmpfs -o size=4g tmpfs /dev/shm && exec "$@"'
_OUTPUT_BYTES = 1 << 20


def run(
    command: list[str], limit_s: float, directory: Path, environment: dict[str, str]
) -> tuple[int | None, str]:
    """Exit status (None: it was ended at its limit) and the last part of all that it printed."""
    unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*unshare, "--", "sh", "-c", _PRIVATE, "sh", *command],
            cwd=directory,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        status: int | None
        try:
            status = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(max(0, output.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
        return status, output.read().decode(errors="replace")


def memory_bytes() -> int:
    """What new programs can have without others being pushed out."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("MemAvailable:"))
