# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks that run as another user than the launcher, which is root's, on a lab."""

import contextlib
import errno
import os
import pwd
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster
from beowire.terminal import note


def check(name: str, cluster: Cluster) -> None:
    """Fails unless ranks can run as this user there."""
    if cluster.lab is None:
        raise BeowireError(
            "On real hosts ranks run as who logs in there.",
            f"Leave --user out, and log in as {name}: --ssh 'ssh -l {name}'.",
        )
    _known(name)
    if os.geteuid() != 0:
        raise BeowireError("Only root can run ranks as another user.", "Leave --user out.")
    if unprotected := [each for each in _PROTECTED if _is_off(_SETTINGS / each)]:
        note(
            f"{name} could lead the launcher, which is root's, to other files by links; "
            f"sysctl {' '.join(f'fs.{each}=1' for each in unprotected)} holds it back"
        )


def _is_off(setting: Path) -> bool:
    return setting.exists() and setting.read_text().strip() == "0"


def _known(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise BeowireError(f"There is no user {name}.", "getent passwd names them all.") from None


_REACHED = "/tmp"
"""TMPDIR may be root's alone."""
_SETTINGS = Path("/proc/sys/fs")
_PROTECTED = ("protected_symlinks", "protected_hardlinks")
_FILES, _FILE_BYTES, _BYTES = 16384, 1 << 20, 16 << 20
"""Of what a job leaves, so much is read: files, bytes of each, and of all, which is less than the
room that a job begins with (job.py)."""


def become(name: str, session_dir: Path | None = None) -> list[str]:
    """The words that execute what follows as this user, with nothing of root's rights. Where the
    daemons of Open MPI, which are root's, keep their files in this directory, which is root's too,
    its ranks need to make some of their own beside them."""
    found = _known(name)
    setpriv = places.program("setpriv", "util-linux")
    words = []
    if session_dir:
        words = [sys.executable, "-I", str(places.package_file("run/opened.py")), str(session_dir)]
    words += [setpriv, f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--init-groups"]
    words += ["--inh-caps=-all", "env", f"HOME={found.pw_dir}"]
    return [*words, f"USER={found.pw_name}", f"LOGNAME={found.pw_name}"]


@contextlib.contextmanager
def directory(name: str, otherwise: Path) -> Iterator[Path]:
    """A directory of root's that the user can reach, for what is his and for the launcher, gone
    afterwards; without a user the other one."""
    if not name:
        yield otherwise
        return
    made = Path(tempfile.mkdtemp(prefix="beowire-user-", dir=_REACHED))
    try:
        made.chmod(0o711)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def give(name: str, place: Path) -> None:
    """Makes a directory in a place of root's the user's; without a user, nothing."""
    if name:
        found = _known(name)
        os.chown(place, found.pw_uid, found.pw_gid, follow_symlinks=False)


def ranks_uid(name: str) -> int:
    """Who the ranks, and their files, belong to: without a user to who runs the launcher."""
    return _known(name).pw_uid if name else os.geteuid()


def look(owner: int, given: Path, ending: str) -> list[bytes]:
    """What is in files of a directory that was given, whose names end so, while ranks go on writing
    there. Files that take() would not copy are passed over."""
    try:
        place = os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            return [data for _, data in _files(place, owner, ending)]
        finally:
            os.close(place)
    except OSError:
        return []


def take(name: str, given: Path, to: Path) -> Path:
    """Copies what the user left in a directory of his to a new one in `to`: plain files that are
    his, whatever else he has put there. Without a user it is read where it is."""
    if not name:
        return given
    owner = ranks_uid(name)
    copies = to / f"{given.name}-taken"
    try:
        copies.mkdir(mode=0o700)
        place = os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            for each, data in _files(place, owner):
                (copies / each).write_bytes(data)
        finally:
            os.close(place)
    except OSError as error:
        raise BeowireError(
            f"What the ranks of {name} counted cannot be copied to {to}: {error.strerror}.",
            "Free some space there." if error.errno in (errno.ENOSPC, errno.EDQUOT) else "",
        ) from error
    return copies


def _files(place: int, owner: int, ending: str = "") -> Iterator[tuple[str, bytes]]:
    """Files of a directory whose names end so, in order, and what is in them, until there is no
    more room for it."""
    room = _BYTES
    with os.scandir(place) as entries:  # one after another: there may be any number
        listed = [entry.name for entry in islice(entries, _FILES)]
    names = sorted(name for name in listed if name.endswith(ending))
    for name in names:
        data = _read(place, name, owner, min(room, _FILE_BYTES))
        if data is not None:
            yield name, data
            room -= len(data)


def _read(place: int, name: str, owner: int, most: int) -> bytes | None:
    """So many bytes of a file of a directory, if it is plain, this user's, and nowhere else; else
    nothing."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    try:
        opened = os.open(name, flags, dir_fd=place)
    except OSError:
        return None
    try:
        told = os.fstat(opened)
        if not stat.S_ISREG(told.st_mode) or told.st_uid != owner or told.st_nlink != 1:
            return None
        return os.read(opened, most)
    finally:
        os.close(opened)
