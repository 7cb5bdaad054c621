# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debuggers see a program that runs from copies as they see any other."""

import shutil
import subprocess

import pytest
from beowire.replicate import command
from replicated import SOON_S, subject, waiting

pytestmark = pytest.mark.skipif(shutil.which("gdb") is None, reason="apt-get install gdb")


def gdb(*words: str) -> str:
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=2 * SOON_S,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_breakpoint_in_a_copy_and_the_frames_above_it() -> None:
    with waiting(command.line([subject(), "wait"], "small")) as child:
        assert child.stdin is not None
        child.stdin.write("1\n")
        child.stdin.flush()
        steps = ["break stopped_here", "continue", "backtrace", "delete", "detach"]
        said = gdb(subject(), "-p", str(child.pid), *each_as_ex(steps, child))
        assert "stopped_here" in said
        assert " in waits" in said
        assert " in main" in said
        # and it goes on
        assert child.stdout is not None
        assert child.stdout.readline()


def each_as_ex(steps: list[str], child: "subprocess.Popen[str]") -> list[str]:
    """With a byte for the program between the breakpoint and what follows."""
    write = f"shell printf x > /proc/{child.pid}/fd/0"
    words = [steps[0], write, *steps[1:]]
    return [part for each in words for part in ("-ex", each)]


def test_a_program_that_is_started_by_a_debugger() -> None:
    """Its breakpoint is there before anything is copied: that text is left alone, and works."""
    words = command.line([subject(), "7"], "small")
    variables = [part for each in words[1:-2] for part in ("-ex", f"set environment {each}")]
    steps = [
        "handle SIGUSR1 nostop noprint pass",
        "break computes",
        "run",
        "backtrace 1",
        "delete",
        "continue",
    ]
    steps = [part for each in steps for part in ("-ex", each)]
    said = gdb(*variables, "-ex", "set startup-with-shell off", *steps, "--args", *words[-2:])
    assert "computes" in said
    assert "exited with code 07" in said
