# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The boards of a node: found, read without a word to the processes that write them, and removed
where these are gone.

Root reads those of all users. A directory counts only if it belongs to one user and nobody else
can write to it, a file only if it is a plain one of the same user's; it is read, not mapped, so
that nobody can end the reader by making it shorter.
"""

import contextlib
import fcntl
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire.status import layout

SHARED_MEMORY = Path("/dev/shm")
_DIRECTORY = re.compile(r"beowire-\d{1,10}(?:\.[1-7])?")
_FILE = re.compile(r"(\d{1,10})-[0-9a-f]{8}")
_FILES_MAX = 4096
"""Of one directory that are looked at."""
_TRIES = 20
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_FLOCK = struct.Struct("hhqqi4x")
"""struct flock of fcntl(2): type, whence, start, length, process."""


@dataclass(frozen=True)
class Found:
    """A board: who keeps it, and what it says."""

    uid: int
    pid: int
    """Of the process that holds its lock, as the kernel says; 0: in another namespace."""
    head: layout.Head
    sheet: dict[str, Any]


def _directories(within: Path) -> Iterator[tuple[int, int]]:
    """Descriptors of the directories that we may read, and whose they are. Those that are empty
    afterwards are removed."""
    own = os.geteuid()
    try:
        names = sorted(each.name for each in within.iterdir() if _DIRECTORY.fullmatch(each.name))
    except OSError:
        return
    for name in names:
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            directory = os.open(within / name, flags)
        except OSError:
            continue
        try:
            status = os.fstat(directory)
            trusted = not status.st_mode & _OTHERS and own in (0, status.st_uid)
            if trusted:
                yield directory, status.st_uid
                with contextlib.suppress(OSError):  # it is not empty
                    (within / name).rmdir()
        finally:
            os.close(directory)


def holder(file: int) -> int | None:
    """The process that holds a board's lock, 0 if it is in another namespace; None: nobody."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    return None if kind == fcntl.F_UNLCK else max(pid, 0)


def read(file: int) -> tuple[layout.Head, dict[str, Any]]:
    """What the board of this descriptor says; DamagedError if it makes no sense."""
    head = layout.head(os.pread(file, layout.HEAD_BYTES, 0))
    size = head.numbers["sheet_bytes"]
    for _ in range(_TRIES):
        begin = head.sheets[layout.current(os.pread(file, layout.HEAD_BYTES, 0))]
        data = os.pread(file, size, begin)
        before = layout.turn(data)
        if before % 2 == 0 and layout.turn(os.pread(file, 8, begin)) == before:
            return head, layout.sheet(head, data, time.monotonic_ns())
    raise layout.DamagedError("it is written to without end")


def _one(directory: int, name: str, uid: int) -> Found | None:
    """The board in this file. One that nobody keeps any more is removed."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=directory)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != uid:
            return None
        pid = holder(file)
        if pid is None:
            os.unlink(name, dir_fd=directory)
            return None
        head, sheet = read(file)
        return Found(uid, pid, head, sheet)
    finally:
        os.close(file)


def _names(directory: int) -> list[str]:
    """Of the boards in a directory."""
    with os.scandir(directory) as entries:
        return sorted(each.name for each in entries if _FILE.fullmatch(each.name))[:_FILES_MAX]


def root() -> Path:
    """Where the directories are: as BEOWIRE_STATUS says."""
    said = os.environ.get("BEOWIRE_STATUS", "")
    return Path(said) if said.startswith("/") else SHARED_MEMORY


def find(within: Path | None = None) -> list[Found]:
    """All boards that we may read, by user and process."""
    found = []
    for directory, uid in _directories(within or root()):
        names = _names(directory)
        for name in names:
            with contextlib.suppress(OSError, layout.DamagedError):
                board = _one(directory, name, uid)
                if board is not None:
                    found.append(board)
    return sorted(found, key=lambda each: (each.uid, each.head.numbers["pid"]))
