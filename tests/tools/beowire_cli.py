# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the command as a user does, in a process of its own, and gives tests labs of their own."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import pytest
from beowire import namespaces, places
from beowire.errors import BeowireError
from beowire.lab import lab, up

COMMAND = [sys.executable, "-P", "-m", "beowire"]

NO_NAMESPACES = namespaces.refusal()
"""Why tests with namespaces and raw frames cannot run here; None when they can."""

_numbers = count(1)


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    status: int
    output: str
    errors: str


def beowire(*arguments: str, text: str = "", **variables: str) -> Answer:
    """Runs the command with these arguments; `variables` are added to its environment."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    return Answer(done.returncode, done.stdout, done.stderr)


@cache
def no_pair() -> str:
    """What a ping-pong between nodes of a lab needs and this machine lacks."""
    try:
        places.product("programs/beowire-pingpong")
    except BeowireError as error:
        return str(error)
    _, reason = up.choose_mode()
    return reason


@contextlib.contextmanager
def small_file_system(place: Path, options: str) -> Iterator[None]:
    """A file system in memory at this place, with the room that the options give it."""
    if os.geteuid() != 0 or NO_NAMESPACES:
        pytest.skip("mounting a small file system needs root")
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "none", place], check=True
    )
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def fresh_name() -> str:
    """A lab name that no other process uses."""
    return f"t{os.getpid()}-{next(_numbers)}"


def remove(name: str) -> None:
    """Removes the lab if there is one."""
    if lab.exists(name):
        up.down(name)


def traces(name: str) -> list[str]:
    """All that a lab of that name leaves on the machine."""
    places = [lab.labs_dir(), namespaces.NETNS_DIR, Path("/etc/netns")]
    found = []
    for place in places:
        if place.is_dir():
            found += [
                str(entry)
                for entry in place.iterdir()
                if entry.name == name or entry.name.startswith(f"bw-{name}-")
            ]
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return found + [line for line in mounts if f"bw-{name}-" in line or f"/labs/{name}/" in line]
