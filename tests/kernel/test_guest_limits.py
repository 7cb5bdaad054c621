# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A program in a guest that does not end is named, with its test and where it stands in the kernel;
and others run all the same, as long as there is time."""

import re
import subprocess
from pathlib import Path

import pytest
from beowire import places
from test_kernel_module import run

LIMIT_S = 60  # of a program: the one that ends takes a fraction of it


def test_what_hangs_is_named() -> None:
    found = run("", ("hang", "test_compat"), LIMIT_S)
    with pytest.raises(AssertionError, match="hang: test_that_hangs did not end"):
        found.check("hang", "test_that_hangs")
    assert "status 124" in found.errors["hang"]
    said = found.told()
    late = f"hang: test_that_hangs did not end\nhang did not end within {LIMIT_S} s\n"
    assert said.startswith(late), said
    # A thread has its system call, and its stack; the kernel speaks in between, also within a line.
    said = re.sub(r"\[ *\d+\.\d+\] .*\n", "", f"{said}\n")
    thread = r"  \d+: S, system call .*\n((?:    .*\n)+)"
    here = re.search(rf"^process \d+: \S+/hang\n{thread}", said, re.MULTILINE)
    assert here, said
    assert "bwk_msg_recvmsg" in here[1], said
    found.check("hang", "test_that_ends")
    found.check("test_compat", "test_every_ioctl")


def test_what_a_program_leaves_behind_ends_with_it() -> None:
    """Processes of a test that failed would keep sockets from those that follow, and the module."""
    limit = str(places.product("tools/guest/guest-limit"))
    leaves = "sleep 1000 >/dev/null 2>&1 & echo $!; exit 3"
    done = subprocess.run(
        [limit, "60", "sh", "-c", leaves], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 3
    state = Path(f"/proc/{int(done.stdout)}/stat")
    assert not state.exists() or state.read_text().rpartition(") ")[2][0] in "ZX"
