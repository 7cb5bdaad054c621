# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Takes back what interrupted a link, unless somebody confirms in time that the node is reached.

The guard is a process of its own session, started before the first change: it outlives the
terminal, whose connection may be what the change cut.
"""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

from beowire import places
from beowire.doctor import fix, journal
from beowire.doctor.source import Source
from beowire.errors import BeowireError

_LOOK_S = 0.1
_READY = "ready"


def start(path: Path, within_s: float) -> None:
    """Starts a guard over the journal at `path`; it counts from now."""
    process = subprocess.Popen(
        [*places.module("beowire.doctor.guard"), str(path.resolve()), str(within_s)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    said = process.stdout.readline().strip()
    process.stdout.close()
    if said != _READY:
        process.kill()
        process.wait()
        raise BeowireError(
            "The guard that would take the changes back did not start. Nothing was changed.",
            "Try beowire doctor --list: is the installation whole?",
        )


def watch(path: Path, within_s: float) -> None:
    """The guard's life. Undoes the journal when the time is over and nobody confirmed."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    deadline = time.monotonic() + within_s
    print(_READY, flush=True)
    while time.monotonic() < deadline:
        if journal.is_confirmed(path) or not path.exists():
            return
        time.sleep(_LOOK_S)
    with contextlib.suppress(FileNotFoundError), journal.held(path, wait=True):
        if path.exists() and not journal.is_confirmed(path):
            for _ in fix.put_back(Source(), journal.read(path), force=True):
                pass


if __name__ == "__main__":
    watch(Path(sys.argv[1]), float(sys.argv[2]))
