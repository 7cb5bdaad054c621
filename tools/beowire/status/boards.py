# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The boards of a node: found, read without a word to the processes that write them, and removed
where these are gone.

Root reads those of all users. A directory counts only if it belongs to one user and nobody else
can write to it, a file only if it is a plain one of the same user's; it is read, not mapped, so
that nobody can end the reader by making it shorter. Of each user so much is read at most, and of
all together.
"""

import contextlib
import fcntl
import itertools
import os
import re
import stat
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from beowire import settings
from beowire.status import layout

SHARED_MEMORY = Path("/dev/shm")
_DIRECTORY = re.compile(r"beowire-(\d{1,10})(?:\.[1-7])?")
_FILE = re.compile(r"(\d{1,10})-[0-9a-f]{8}")
_ENTRIES_MAX = 65536
"""Of /dev/shm that are looked at."""
_FILES_MAX = 1024
"""Entries of one user's directories that are looked at, whatever they are."""
_BOARDS_MAX = 8192
"""Of all users that are opened."""
_TRIES = 4
"""A sheet is written four times a second at most, and then the other one is."""
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


@cache
def _say_left_out(what: str) -> None:
    """Once, however often one looks. Who looks from elsewhere is not told."""
    print(f"beowire: {what}: the others are left out", file=sys.stderr)


def _first(directory: int | Path, most: int, if_more: str) -> list[str]:
    """The names of the first entries of a directory; what is said if there are more."""
    with os.scandir(directory) as entries:
        names = [each.name for each in itertools.islice(entries, most + 1)]
    if len(names) > most:
        _say_left_out(if_more)
    return names[:most]


def _directories(within: Path) -> Iterator[tuple[int, int]]:
    """Descriptors of the directories that we may read, and whose they are. Those that are empty
    afterwards are removed."""
    own = os.geteuid()
    names = {f"beowire-{own}"}  # also where others have filled the place with names
    try:
        names |= set(_first(within, _ENTRIES_MAX, f"{within} has more than {_ENTRIES_MAX} names"))
    except OSError:
        return
    for name in sorted(names):
        named = _DIRECTORY.fullmatch(name)
        if named is None:
            continue
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            directory = os.open(within / name, flags)
        except OSError:
            continue
        try:
            status = os.fstat(directory)
            trusted = not status.st_mode & _OTHERS and own in (0, status.st_uid)
            if trusted and named[1] == str(status.st_uid):
                yield directory, status.st_uid
                with contextlib.suppress(OSError):  # it is not empty
                    (within / name).rmdir()
        finally:
            os.close(directory)


def holder(file: int) -> int | None:
    """The process that holds a board's lock, 0 if it is in another namespace; None: nobody. A lock
    that is of an open file and not of a process tells of none: no board has such a one."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    kind, _, _, _, pid = _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))
    if kind != fcntl.F_UNLCK and pid < 0:
        raise layout.DamagedError("no process holds its lock")
    return None if kind == fcntl.F_UNLCK else pid


def read(file: int) -> tuple[layout.Head, dict[str, Any]]:
    """What the board of this descriptor says; DamagedError if it makes no sense."""
    head = layout.head(os.pread(file, layout.HEAD_BYTES, 0))
    if os.fstat(file).st_size != head.numbers["bytes"]:
        raise layout.DamagedError("it is not as long as it says")
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


def root() -> Path:
    """Where the directories are: as BEOWIRE_STATUS says."""
    said = settings.get("BEOWIRE_STATUS")
    return Path(said) if said.startswith("/") else SHARED_MEMORY


def find(within: Path | None = None) -> list[Found]:
    """All boards that we may read, by user and process."""
    found: list[Found] = []
    looked: Counter[int] = Counter()
    opened = 0
    for directory, uid in _directories(within or root()):
        whole = f"user {uid} has more than {_FILES_MAX} names where boards are"
        first = _first(directory, _FILES_MAX - looked[uid], whole)
        looked[uid] += len(first)
        names = sorted(name for name in first if _FILE.fullmatch(name))
        if opened + len(names) > _BOARDS_MAX:
            _say_left_out(f"there are more than {_BOARDS_MAX} boards")
            names = names[: _BOARDS_MAX - opened]
        opened += len(names)
        for name in names:
            with contextlib.suppress(OSError, layout.DamagedError):
                board = _one(directory, name, uid)
                if board is not None:
                    found.append(board)
    return sorted(found, key=lambda each: (each.uid, each.head.numbers["pid"]))
