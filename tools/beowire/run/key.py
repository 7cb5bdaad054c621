# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The file with a cluster's key: made here, looked at here and on hosts, the same everywhere.

A key is only ever written into its file. What is looked at and told is its fingerprint, which a
shell computes where the file is, so that the key travels nowhere.
"""

import contextlib
import os
import re
import secrets
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.run import remote
from beowire.run.cluster import Cluster

_BYTES = 32
_REMARK = "# A key of a Beowire cluster: whoever reads it can speak for every node and listen.\n"


@dataclass(frozen=True)
class Told:
    """What was found of a file on a host."""

    fingerprint: str | None
    """None: it is no key that can be used there."""
    why: str = ""

    def __str__(self) -> str:
        return self.fingerprint or self.why

    def as_json(self) -> dict[str, str | None]:
        """For machines."""
        return {"fingerprint": self.fingerprint, "why": self.why or None}


def make(file: Path, *, replace: bool) -> None:
    """Makes a key in a new file, for this user alone; with `replace` it takes the place of what is
    there, at once, else that is an error."""
    places.check_replaceable(file)
    try:
        if replace:
            _write_beside(file)
        else:
            _write(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError as error:
        raise BeowireError(
            f"{file} is there already, and a key cannot be had back.",
            "Name another file; --force replaces it.",
        ) from error
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be written: {error.strerror or error}.", "Name another place."
        ) from error


def _write_beside(file: Path) -> None:
    descriptor, part = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        _write(descriptor)
        Path(part).replace(file)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(part).unlink()
        raise


def _write(descriptor: int) -> None:
    with open(descriptor, "w") as stream:
        os.fchmod(descriptor, 0o600)
        stream.write(f"{_REMARK}{secrets.token_hex(_BYTES)}\n")
        stream.flush()
        os.fsync(descriptor)


def look(file: Path) -> Told:
    """What is found of a file here."""
    done = subprocess.run(["sh", "-c", _script(file)], capture_output=True, check=False)
    return _told(done.stdout)


def look_everywhere(cluster: Cluster, file: Path) -> dict[str, Told]:
    """The same on all hosts at once; nodes of a lab see the files of this one."""
    if cluster.lab is not None:
        return dict.fromkeys(cluster.hosts, look(file))
    answers = remote.execute_everywhere(cluster, _script(file))
    return {host: _told(said) for host, said in answers.items()}


def _script(file: Path) -> str:
    text = places.package_file("run/key.sh").read_text()
    return f"file={shlex.quote(str(file))}\n{text}"


def _told(said: bytes) -> Told:
    lines = said.decode(errors="replace").strip().splitlines() or ["it cannot be looked at"]
    found = re.fullmatch(r"key ([0-9a-f]{8})", lines[-1])
    return Told(found[1]) if found else Told(None, lines[-1])


def agreed(file: Path, told: Mapping[str, Told]) -> str:
    """The fingerprint of all; else an error."""
    for host, each in told.items():
        if each.fingerprint is None:
            raise BeowireError(
                f"{file} is no key on {host}: {each.why}.",
                f"Copy it there: scp -p {shlex.quote(str(file))} {host}:{shlex.quote(str(file))}",
            )
    prints = {str(each) for each in told.values()}
    if len(prints) > 1:
        each_host = ", ".join(f"{each} on {host}" for host, each in told.items())
        raise BeowireError(
            f"{file} is not the same key everywhere: {each_host}.",
            "Copy one of them to all hosts: scp -p",
        )
    return prints.pop()


def full(file: Path) -> Path:
    """Its name from the root on, as ranks need it, wherever they start."""
    return file.absolute()
