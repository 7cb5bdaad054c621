# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A repository for apt: a flat directory of packages, their index, and a signature over that."""

import contextlib
import gzip
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from beowire import places, private_dir
from beowire.errors import BeowireError
from beowire.package import deb
from beowire.progress import Progress

STEPS = 3
KEY = "beowire.gpg"
"""The public key, beside the packages."""
_KEYS = "keys"
"""Keys that are made for repositories, below the directory of what the user keeps."""
_OWNER = "Packages of Beowire"


@dataclass(frozen=True)
class Made:
    """A repository, and what a machine needs to use it."""

    directory: Path
    fingerprint: str
    lines: list[str]


def make(directory: Path, packages: Path, key: str | None, progress: Progress) -> Made:
    """Makes it anew of all packages that lie there."""
    files = deb.packages_in(packages)
    if not files:
        raise BeowireError(
            f"There are no packages in {packages}.", "Build them: ./beowire package deb"
        )
    ftparchive = places.program("apt-ftparchive", "apt-utils")
    gpg = places.program("gpg", "gpg")
    places.make_output_dir(directory)
    progress.begin("the key")
    with contextlib.ExitStack() as held:
        home = None if key else held.enter_context(_own_home())
        fingerprint = _fingerprint(gpg, key, home)
        _index(directory, files, ftparchive, progress)
        progress.begin("the signature")
        sign = [*_gpg(gpg, home), "--local-user", fingerprint, "--digest-algo", "SHA512"]
        _output([*sign, "--clearsign", "--output", "InRelease", "Release"], directory)
        exported = _output([*_gpg(gpg, home), "--export", fingerprint], directory)
    (directory / KEY).write_bytes(exported)
    return Made(directory, fingerprint, _lines(directory.resolve()))


def _index(directory: Path, files: list[Path], ftparchive: str, progress: Progress) -> None:
    """The packages, what apt reads of them, and what is to be signed."""
    progress.begin("the packages and their index")
    _fill(directory, files)
    # Names are relative to the directory, wherever it is copied to.
    names = {f"Filename: ./{each.name}".encode() for each in files}
    every = _output([ftparchive, "packages", "."], directory).split(b"\n\n")
    # What somebody else put there is not vouched for.
    index = b"\n\n".join(each for each in every if names & set(each.splitlines())) + b"\n"
    (directory / "Packages").write_bytes(index)
    (directory / "Packages.gz").write_bytes(gzip.compress(index, mtime=0))
    (directory / "Release").unlink(missing_ok=True)
    (directory / "InRelease").unlink(missing_ok=True)
    said = ("Origin=Beowire", "Label=Beowire", "Suite=stable")
    options = [f"-oAPT::FTPArchive::Release::{each}" for each in said]
    (directory / "Release").write_bytes(_output([ftparchive, *options, "release", "."], directory))


def _lines(directory: Path) -> list[str]:
    ring = "/usr/share/keyrings/beowire.gpg"
    source = f"deb [signed-by={ring}] file:{quote(str(directory))} ./"
    return [
        f"install -m 644 {shlex.quote(str(directory / KEY))} {ring}",
        f"echo {shlex.quote(source)} >/etc/apt/sources.list.d/beowire.list",
    ]


def _fill(directory: Path, files: list[Path]) -> None:
    """The packages, readable for apt's own user, and none that were there before."""
    new = {each.name for each in files}
    for old in deb.packages_in(directory):
        if old.name not in new:
            old.unlink()
    for each in files:
        if each.parent.resolve() != directory.resolve():
            shutil.copyfile(each, directory / each.name)


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
            f"gpg has no secret key {key}.", "Name one that gpg --list-secret-keys tells of."
        )
    make = ["--passphrase", "", "--quick-generate-key", _OWNER, "ed25519", "sign", "never"]
    _output([*_gpg(gpg, home), *make], Path("/"))
    if found := _first(words):
        return found
    raise BeowireError(f"gpg made no key in {home}.", "Name a key of yours by --key.")


def _first(words: list[str]) -> str | None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    match = re.search(r"^fpr:+([0-9A-F]{40}):", done.stdout, re.MULTILINE)
    return match[1] if match else None


def _output(words: list[str], directory: Path) -> bytes:
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    done = subprocess.run(words, cwd=directory, capture_output=True, check=False, env=environment)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"status {done.returncode}"
        raise BeowireError(f"{Path(words[0]).name} failed: {why}")
    return done.stdout
