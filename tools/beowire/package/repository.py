# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A repository for apt: a flat directory of packages, their index, and a signature over that."""

import contextlib
import fcntl
import gzip
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from beowire import places, private_dir
from beowire.errors import BeowireError
from beowire.package import deb
from beowire.progress import Progress

STEPS = 3
KEY = "beowire.gpg"
"""The public key, beside the packages."""
_SIGNED = "InRelease"
_KEYS = "keys"
"""Keys that are made for repositories, below the directory of what the user keeps."""
_OWNER = "Packages of Beowire"
_UNSIGNED = ".beowire-"
"""What a directory in a repository is called whose contents are not published yet."""
_AGENT_ENDS_S = 30.0


@dataclass(frozen=True)
class Made:
    """A repository, and what a machine needs to use it."""

    directory: Path
    fingerprint: str
    lines: list[str]

    def as_json(self) -> dict[str, Any]:
        told = {"directory": str(self.directory), "key": self.fingerprint}
        return {**told, "lines": self.lines}


def make(directory: Path, packages: Path, key: str | None, progress: Progress) -> Made:
    """Makes it anew of all packages that lie there."""
    files = deb.packages_in(packages)
    if not files:
        raise BeowireError(
            f"There are no packages in {packages}.", "Build them: ./beowire package deb"
        )
    ftparchive = places.program("apt-ftparchive", "apt-utils")
    gpg = places.program("gpg", "gpg")
    _make_open(directory)
    progress.begin("the key")
    with contextlib.ExitStack() as held:
        home = None if key else held.enter_context(_own_home())
        fingerprint = _fingerprint(gpg, key, home)
        held.enter_context(_told(directory))
        held.enter_context(_alone(directory))
        unsigned = tempfile.TemporaryDirectory(prefix=_UNSIGNED, dir=directory)
        new = Path(held.enter_context(unsigned))
        progress.begin("the packages and their index")
        for each in files:
            shutil.copyfile(each, new / each.name)
        _index(new, ftparchive)
        progress.begin("the signature")
        sign = [*_gpg(gpg, home), "--local-user", fingerprint, "--digest-algo", "SHA512"]
        _output([*sign, "--clearsign", "--output", _SIGNED, "Release"], new)
        (new / KEY).write_bytes(_output([*_gpg(gpg, home), "--export", fingerprint], new))
        _publish(new, directory, [each.name for each in files])
    return Made(directory, fingerprint, _lines(directory.resolve()))


@contextlib.contextmanager
def _told(directory: Path) -> Iterator[None]:
    """Around what reads packages and writes a repository: why it cannot."""
    try:
        yield
    except OSError as error:
        raise BeowireError(
            f"The repository {directory} is not finished: {error}.",
            "Fix that, and make it again: until then apt may refuse it.",
        ) from error


@contextlib.contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One command at a time makes it, and takes away what one that was killed has left."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BeowireError(
                f"Another command is making the repository {directory}.", "Wait until it has ended."
            ) from error
        for left in directory.glob(f"{_UNSIGNED}*"):
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
        yield
    finally:
        os.close(descriptor)


def _make_open(directory: Path) -> None:
    """Makes the directory, unless it is there, for all to read: apt has a user of its own. What was
    there keeps its mode."""
    made = [each for each in (directory, *directory.parents) if not each.exists()]
    places.make_output_dir(directory)
    for each in made:
        each.chmod(0o755)


def _index(new: Path, ftparchive: str) -> None:
    """What apt reads of the packages there, and what is to be signed. The names in it are relative
    to the directory, wherever that is copied to."""
    index = _output([ftparchive, "packages", "."], new)
    (new / "Packages").write_bytes(index)
    (new / "Packages.gz").write_bytes(gzip.compress(index, mtime=0))
    said = ("Origin=Beowire", "Label=Beowire", "Suite=stable")
    options = [f"-oAPT::FTPArchive::Release::{each}" for each in said]
    (new / "Release").write_bytes(_output([ftparchive, *options, "release", "."], new))


def _publish(new: Path, directory: Path, packages: list[str]) -> None:
    """Puts all into its place, for all to read: the signature last but for the older packages,
    which go when nothing names them any more."""
    names = (*packages, "Packages", "Packages.gz", "Release", KEY, _SIGNED)
    for name in names:
        places.check_replaceable(directory / name)
    for name in names:
        (new / name).chmod(0o644)
        with places.replacing(directory / name) as part:
            (new / name).replace(part)
    for old in deb.packages_in(directory):
        if old.name not in packages:
            old.unlink()


def _lines(directory: Path) -> list[str]:
    ring = "/usr/share/keyrings/beowire.gpg"
    source = f"deb [signed-by={ring}] file:{quote(str(directory))} ./"
    return [
        f"install -m 644 {shlex.quote(str(directory / KEY))} {ring}",
        f"echo {shlex.quote(source)} >/etc/apt/sources.list.d/beowire.list",
    ]


@contextlib.contextmanager
def _own_home() -> Iterator[Path]:
    """A directory of gpg's own, with keys made for repositories; nobody else reads it. By a short
    name, since gpg makes a socket there, whose name may have 107 bytes. gpg's agent ends after."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    home = (Path(base) / "beowire" / _KEYS).absolute()
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        private_dir.make(home)
    except OSError as error:
        raise BeowireError(
            f"The key of the repository cannot be kept in {home}: {error.strerror}.",
            "Name a key of gpg's by --key, or another place in XDG_DATA_HOME.",
        ) from error
    with tempfile.TemporaryDirectory(prefix="bw-", dir="/tmp") as directory:
        short = Path(directory) / "k"
        short.symlink_to(home)
        try:
            yield short
        finally:
            words = ["gpgconf", "--homedir", str(short), "--kill", "gpg-agent"]
            with contextlib.suppress(FileNotFoundError):
                subprocess.run(words, capture_output=True, check=False)
                _await_no_socket(home)


def _await_no_socket(home: Path) -> None:
    """The agent ends some time after it was told to, and takes its sockets away by the short name,
    which has to be there until then."""
    until = time.monotonic() + _AGENT_ENDS_S
    while time.monotonic() < until and any(each.is_socket() for each in home.iterdir()):
        time.sleep(0.01)


def _gpg(gpg: str, home: Path | None) -> list[str]:
    where = [f"--homedir={home}"] if home else []
    return [gpg, *where, "--batch", "--yes", "--no-tty", "--quiet"]


def _fingerprint(gpg: str, key: str | None, home: Path | None) -> str:
    """That of the user's key, or of the one in `home`, which is made if there is none."""
    words = [*_gpg(gpg, home), "--with-colons", "--list-secret-keys"]
    if found := _first(words + (["--", key] if key else [])):
        return found
    if key:
        raise BeowireError(
            f"gpg has no secret key {key} that can sign now.",
            "Name one that gpg --list-secret-keys tells of, neither expired nor revoked.",
        )
    make = ["--passphrase", "", "--quick-generate-key", _OWNER, "ed25519", "sign", "never"]
    _output([*_gpg(gpg, home), *make], Path("/"))
    if found := _first(words):
        return found
    raise BeowireError(f"gpg made no key in {home}.", "Name a key of yours by --key.")


def _first(words: list[str]) -> str | None:
    """The first key that can sign now, of those that gpg lists: a line `sec` of each with what it
    can do, then its fingerprint. A key that has expired or is revoked has no S, one that is
    disabled has a D (doc/DETAILS of GnuPG)."""
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    usable = False
    for fields in (line.split(":") for line in done.stdout.splitlines()):
        if fields[0] == "sec":
            usable = "S" in fields[11] and "D" not in fields[11]
        elif fields[0] == "fpr" and usable:
            return fields[9]
    return None


def _output(words: list[str], directory: Path) -> bytes:
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, cwd=directory, capture_output=True, check=False, env=environment)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"status {done.returncode}"
        raise BeowireError(f"{Path(words[0]).name} failed: {why}")
    return done.stdout
