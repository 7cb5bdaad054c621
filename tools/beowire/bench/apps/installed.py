# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What of the applications is installed, on this machine or on hosts; packages of the
distribution for what is not."""

import shutil
import subprocess

from beowire import places
from beowire.bench.apps import compiled
from beowire.bench.apps.application import Application
from beowire.errors import BeowireError
from beowire.run import remote
from beowire.run.cluster import Cluster
from beowire.terminal import note

_ROOM_BYTES = 2 << 30
"""For all packages and what they need."""


def lacking(application: Application, cluster: Cluster | None) -> str:
    """Why an application cannot be measured, in words; empty if nothing is known against it."""
    real = cluster is not None and cluster.lab is None
    if real and application.shared_files:
        return "all ranks write to one file, which these hosts do not share"
    try:
        if application.source is not None:
            compiled.program(application.source)
        elif application.example:
            places.example(application.example)
    except BeowireError as error:
        return f"{error.what} {error.fix}".splitlines()[0]
    if not application.program:
        return ""
    fix = f"apt-get install {' '.join(application.packages)}"
    if not real or cluster is None:
        if shutil.which(application.program) is None:
            return f"{application.program} is not installed: {fix}"
        return ""
    told = remote.execute_everywhere(cluster, f"command -v {application.program} || true")
    without = [host for host, path in told.items() if not path.strip()]
    return (
        f"{application.program} is not installed on {', '.join(without)}: {fix}" if without else ""
    )


def install(applications: tuple[Application, ...]) -> None:
    """Installs on this machine what the applications need, by apt-get; needs root."""
    wanted = [
        each
        for each in dict.fromkeys(name for one in applications for name in one.packages)
        if not _is_installed(each)
    ]
    if not wanted:
        note("all packages are installed")
        return
    free_bytes = shutil.disk_usage("/").free
    if free_bytes < _ROOM_BYTES:
        raise BeowireError(
            f"There is room for {free_bytes >> 20} MiB on /; the packages may need "
            f"{_ROOM_BYTES >> 20} MiB.",
            "Free some space, or install some of them by hand.",
        )
    apt = places.program("apt-get", "apt")
    command = ["nice", apt, "install", "--yes", "--no-install-recommends", *wanted]
    note(" ".join(command))
    done = subprocess.run(command, check=False, env=_unattended())
    if done.returncode != 0:
        raise BeowireError(
            f"apt-get ended with {done.returncode}.", "See above; it must be run as root."
        )


def _unattended() -> dict[str, str]:
    import os

    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def _is_installed(package: str) -> bool:
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BeowireError(
            "This distribution has no dpkg-query.",
            f"Install by hand what belongs to {package} here.",
        ) from error
    return done.returncode == 0 and done.stdout.strip() == "installed"
