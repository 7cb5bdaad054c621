# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks that run as another user than the launcher, which is root's, on a lab."""

import contextlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.run.cluster import Cluster


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


def _known(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise BeowireError(f"There is no user {name}.", "getent passwd names them all.") from None


_REACHED = "/tmp"
"""TMPDIR may be root's alone."""
_OPENED = 'chmod -R a+rwX "$0"/ompi.* 2>/dev/null; exec "$@"'


def become(name: str, session_dir: Path | None = None) -> list[str]:
    """The words that execute what follows as this user, with nothing of root's rights. Where the
    daemons of Open MPI, which are root's, keep their files in this directory, which is the user's,
    its ranks need to make some of their own."""
    found = _known(name)
    setpriv = places.program("setpriv", "util-linux")
    words = ["sh", "-c", _OPENED, str(session_dir)] if session_dir else []
    words += [setpriv, f"--reuid={found.pw_uid}", f"--regid={found.pw_gid}", "--init-groups"]
    words += ["--inh-caps=-all", "env", f"HOME={found.pw_dir}"]
    return [*words, f"USER={found.pw_name}", f"LOGNAME={found.pw_name}"]


@contextlib.contextmanager
def directory(name: str, otherwise: Path) -> Iterator[Path]:
    """A directory of the user's own for what the job leaves, gone afterwards; without a user the
    other one."""
    if not name:
        yield otherwise
        return
    found = _known(name)
    made = Path(tempfile.mkdtemp(prefix="beowire-user-", dir=_REACHED))
    try:
        os.chown(made, found.pw_uid, found.pw_gid)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
