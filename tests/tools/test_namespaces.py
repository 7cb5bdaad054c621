# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes of namespaces and jobs are ended for certain."""

import os
import subprocess
import sys

from beowire import namespaces

LARGE = """
memory = bytearray(b"x") * (512 << 20)
print(flush=True)
import signal
signal.pause()
"""


def test_killed_processes_have_closed_their_files() -> None:
    """Nothing lists a process that gives its memory back, which takes a while; its files are still
    open then: what is left behind by a job cannot be told before they are closed."""
    with subprocess.Popen([sys.executable, "-c", LARGE], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"\n"
        listed = [[child.pid]]
        assert namespaces.kill(lambda: listed.pop() if listed else []) == []
        ended = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        assert ended is not None


def test_processes_that_outlive_the_patience_are_told() -> None:
    assert namespaces.kill(lambda: [2**22 + 1], patience_s=0.02) == [2**22 + 1]
