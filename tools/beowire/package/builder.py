# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the distribution's tool that builds packages, and tells why it failed."""

import os
import subprocess
from pathlib import Path

from beowire.errors import BeowireError

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LAST_LINES = 30


def execute(words: list[str], sources: Path, log: Path, **variables: str) -> bool:
    """Whether the distribution's tool, begun in the sources, ended well; the log has what it said.
    An environment of Python in front of the distribution's would be asked by such tools."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    with log.open("w") as stream:
        done = subprocess.run(
            words,
            cwd=sources,
            env={**environment, "PATH": _PATH, **variables},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return done.returncode == 0


def failed(log: Path) -> BeowireError:
    """The last that a build said; what it lacked is looked for before."""
    last = "\n    ".join(log.read_text(errors="replace").splitlines()[-_LAST_LINES:])
    return BeowireError(f"The build of the packages failed; all it said is in {log}.", last)


def lacking(packages: str, fix: str) -> BeowireError:
    """A build that wants other packages."""
    return BeowireError(f"Building packages needs others that are not here: {packages}.", fix)
