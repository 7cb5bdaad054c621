# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Opens the directories that Open MPI's daemons, which are root's, made in a place of root's to
ranks of another user, and then executes the rank: opened.py PLACE WORDS...

The user puts into these directories what he likes. So nothing is changed by its name, which may
stand for something else by then: each is opened without following links, looked at, and changed
only if it is root's and reached through what is root's. What has another name as well (a hard link)
may be anything of root's, from anywhere.
"""

import contextlib
import os
import stat
import sys
from pathlib import Path

_FOUND = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def open_up(parent: int, name: str) -> None:
    """Lets others add to a directory, where nobody can take away what is not his, and call a
    socket; what is in the directory likewise."""
    found = os.open(name, _FOUND, dir_fd=parent)
    try:
        told = os.fstat(found)
        itself = Path(f"/proc/self/fd/{found}")
        if told.st_uid != 0:
            return
        if stat.S_ISSOCK(told.st_mode) and told.st_nlink == 1:
            itself.chmod(stat.S_IMODE(told.st_mode) | 0o666)
        if not stat.S_ISDIR(told.st_mode):
            return
        itself.chmod(0o1777)
        for each in itself.iterdir():
            with contextlib.suppress(OSError):  # it may be gone
                open_up(found, each.name)
    finally:
        os.close(found)


def main() -> None:
    """See above."""
    place = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    for each in Path(sys.argv[1]).glob("ompi.*"):
        with contextlib.suppress(OSError):
            open_up(place, each.name)
    os.close(place)
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
