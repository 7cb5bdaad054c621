# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the suites share when they are built."""

import os
import subprocess
from pathlib import Path

from beowire.errors import BeowireError


def build(command: list[str], directory: Path, log: Path, **environment: str) -> None:
    """Runs one step of a build; what it prints goes to the log."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(log, "ab") as output:
        output.write(f"\n$ {' '.join(command)}\n".encode())
        output.flush()
        try:
            status = subprocess.run(
                command,
                cwd=directory,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            ).returncode
        except FileNotFoundError:
            status = 127
    if status != 0:
        raise BeowireError(
            f"`{' '.join(command)}` failed with status {status}.",
            f"Its output is in {log}.",
        )


def wanted(source: Path, file: str, what: str) -> None:
    """Fails unless the source tree is the one that is meant."""
    if not (source / file).exists():
        raise BeowireError(
            f"{source} is not {what}: {file} is missing.",
            "Name the top of the source tree.",
        )
