# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a probe starts on a node ends with it, however slow it is to end by itself."""

import os
import subprocess
import time
from pathlib import Path

import pytest
from beowire.doctor import pair

PATIENCE_S = 60.0


def test_what_does_not_end_by_itself_is_killed_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that has not come to end its ping-pong in time."""
    monkeypatch.setattr(pair, "_END_S", 0.1)
    script = f"sleep 1000 & echo $! >{tmp_path}/pid; echo begun; while :; do sleep 1000; done"
    process = subprocess.Popen(
        ["sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    started = int((tmp_path / "pid").read_text())
    pair._end(process)
    assert process.returncode is not None
    until = time.monotonic() + PATIENCE_S
    while runs(started) and time.monotonic() < until:
        time.sleep(0.01)
    assert not runs(started)


def runs(pid: int) -> bool:
    """Whoever inherits an ended one may be slow to ask for its status."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
