# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that a test stops and lets go on."""

import os
import signal


def stop(pid: int) -> None:
    """Stops a child of the caller, and returns when all its threads stand still. After a bare
    SIGSTOP they go on until the one that the kernel tells of the signal has got a processor."""
    os.kill(pid, signal.SIGSTOP)
    await_stopped(pid)


def await_stopped(pid: int) -> None:
    """The same for a child that stops itself, or is about to be stopped."""
    told = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert told is not None
    assert told.si_code == os.CLD_STOPPED, told


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)
