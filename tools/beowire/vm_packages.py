# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of the distribution, looked up and unpacked into a directory, but never installed."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError


@dataclass(frozen=True)
class Archive:
    """A package archive; `options` are apt's for it, none for those that the machine uses."""

    options: tuple[str, ...] = ()

    def has(self, package: str) -> bool:
        command = [places.program("apt-cache", "apt"), *self.options, "show", package]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def needs(self, package: str) -> list[str]:
        """What this package depends on, by name, in the archive's order."""
        text = told(["apt-cache", *self.options, "depends", package], f"No package {package}")
        return re.findall(r"^\s*Depends: (\S+)", text, re.MULTILINE)

    def unpack(self, packages: list[str], tree: Path) -> None:
        """Fetches these packages, their signatures checked, and lays out their files in `tree`."""
        tree.mkdir(parents=True, exist_ok=True)
        what = f"{packages[0]} cannot be fetched"
        told(["apt-get", *self.options, "download", *packages], what, cwd=tree)
        for file in tree.glob("*.deb"):
            told(["dpkg-deb", "-x", file.name, "."], f"{file.name} cannot be unpacked", cwd=tree)
            file.unlink()


STOCK = Archive()


def told(command: list[str], what: str, cwd: Path | None = None, package: str = "apt") -> str:
    """What a command of the package system prints; `what` failed if it fails."""
    program = places.program(command[0], package)
    done = subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, check=False, cwd=cwd
    )
    if done.returncode:
        raise BeowireError(
            f"{what}: {done.stderr.strip() or 'no reason given'}",
            "Refresh the package lists: apt-get update. `apt-cache search linux-image` shows "
            "which kernels there are.",
        )
    return done.stdout
