# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs with the preload library that copies text, and what their memory is then."""

import contextlib
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.replicate import command

SOON_S = 60
"""For what takes a moment on an idle machine."""


@dataclass(frozen=True)
class Area:
    """A line of /proc/PID/maps."""

    rights: str
    inode: int
    name: str


def subject() -> str:
    return str(places.product("tests/replicate/subject"))


def run(words: list[str], **settings: str) -> "subprocess.CompletedProcess[str]":
    """A program with the library, alone."""
    return subprocess.run(
        command.line(words, **settings),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * SOON_S,
    )


def areas(text: str) -> list[Area]:
    found = []
    for line in filter(None, text.splitlines()):
        words = line.split(None, 5)
        found.append(Area(words[1], int(words[4]), words[5] if len(words) > 5 else ""))
    return found


def of(pid: int) -> list[Area]:
    """Those of a process."""
    return areas(Path(f"/proc/{pid}/maps").read_text())


def text_of_files(found: list[Area]) -> set[str]:
    """Files whose own text is still executed, but for what is left alone."""
    left = {each.name for each in found if "x" in each.rights and each.name.startswith("/")}
    alone = re.compile(r"/memfd:beowire-|.*/ld-[\w.-]+\.so|.*/libbeowire-replicate\.so")
    return {each for each in left if not alone.match(each)}


@contextlib.contextmanager
def waiting(words: list[str]) -> Iterator["subprocess.Popen[str]"]:
    """The subject that waits for what to do; it is there when its first line is."""
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline().startswith("4 ")
            yield child
        finally:
            child.kill()
