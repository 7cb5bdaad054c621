# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Directories that nobody else may write to: what lies in them is executed or believed.

Where others may make files, such as in /tmp, somebody may have made a directory of the expected
name before us. So a directory is taken only if it is ours and nobody else can change it.
"""

import os
import stat
from pathlib import Path

from beowire.errors import BeowireError

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def check(directory: Path) -> None:
    """Fails if there is something of that name that is no directory of this user's own, or one
    that others can write to. That nothing is there is no error."""
    try:
        descriptor = os.open(directory, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return  # whoever makes it will tell
    except OSError as error:
        raise _refused(directory, f"cannot be looked at ({error.strerror})") from error
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if stat.S_ISLNK(found.st_mode):
        raise _refused(directory, "is a link, which may lead anywhere")
    if not stat.S_ISDIR(found.st_mode):
        return  # the same
    if found.st_uid != os.geteuid():
        raise _refused(directory, f"belongs to another user (number {found.st_uid})")
    if found.st_mode & _OTHERS_WRITE:
        raise _refused(directory, f"can be written to by others (mode {found.st_mode & 0o7777:o})")


def make(directory: Path) -> None:
    """Makes it, for this user alone, unless it is there; then it is checked. That it cannot be made
    is an OSError."""
    for parent in reversed(directory.parents):
        if not parent.exists():
            parent.mkdir(mode=0o755, exist_ok=True)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise
    check(directory)


def make_script(quoted: str) -> str:
    """The same as commands of a shell, for other hosts; the name is quoted already."""
    alone = f"find {quoted} -prune -type d ! -perm -020 ! -perm -002"
    ours = f'[ -O {quoted} ] && [ -n "$({alone})" ]'
    return f"{{ mkdir -m 700 {quoted} 2>/dev/null || {{ {ours}; }}; }}"


def _refused(directory: Path, why: str) -> BeowireError:
    return BeowireError(
        f"{directory} {why}; what lies there is not trusted.",
        "Remove it, make it yours alone (chmod 700), or name another directory in BEOWIRE_STATE.",
    )
