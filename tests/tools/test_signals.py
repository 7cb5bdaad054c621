# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A Ctrl-C that comes where Python throws its exception away still ends the command."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, time
from beowire import signals

def interrupt():
    signal.raise_signal(signal.SIGINT)

class Object:
    def __del__(self):
        interrupt()

def at_a_fork():
    os.register_at_fork(after_in_parent=interrupt)
    if os.fork() == 0:
        os._exit(0)

def at_an_objects_end():
    Object()

signals.never_lose_an_interruption()
try:
    {where}()
    {then}
except KeyboardInterrupt:
    print("ended")
"""


@pytest.mark.parametrize("where", ["at_a_fork", "at_an_objects_end"])
@pytest.mark.parametrize(
    "then", ["time.sleep(20)", "signal.sigtimedwait({signal.SIGUSR1}, 20)", "while True: pass"]
)
def test_an_interruption_is_not_lost(where: str, then: str) -> None:
    text = PROGRAM.replace("{where}", where).replace("{then}", then)
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_other_exceptions_that_nobody_can_catch_are_told() -> None:
    text = """
from beowire import signals
class Object:
    def __del__(self):
        raise ValueError("told")
signals.never_lose_an_interruption()
Object()
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert "ValueError: told" in done.stderr


def test_the_reader_of_what_a_job_says_can_be_ended() -> None:
    """It holds signals back only until it has left the terminal's group."""
    text = """
import os, signal, subprocess
from beowire.run.once import told_once
with told_once(None):
    children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
    while os.getsid(int(children[0])) == os.getsid(0):
        pass
    os.kill(int(children[0]), signal.SIGTERM)
    print(os.waitid(os.P_PID, int(children[0]), os.WEXITED | os.WNOWAIT).si_status)
"""
    done = subprocess.run(
        [sys.executable, "-P", "-c", text], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.split() == [str(int(signal.SIGTERM))], done.stderr
