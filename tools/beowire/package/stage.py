# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The sources laid out as the distribution's tools want them: a copy, with debian/ or rpm/ at its
top.

The copy keeps what was compiled in it. What did not change keeps its time, so that the next build
compiles only what did.
"""

import contextlib
import fcntl
import filecmp
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from beowire import __version__, places
from beowire.errors import BeowireError
from beowire.package import vendored

_ROOMS = [
    "LICENSES",
    "adapters",
    "common",
    "docs",
    "emulator",
    "engine",
    "hosts",
    "programs",
    "service",
    "tools",
]
_FILES = ("README.md", "meson.build", "meson_options.txt")
_IGNORED = ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", "beowire.egg-info")
COMPILED = "_build"
"""Meson's directory in the copy; debian/rules and beowire.spec name it as well."""
_SHARED = ("beowired.conf", "examples/beowire.conf", "mpirun.beowire")
"""Files of packaging/debian that other packages have, too."""


@contextlib.contextmanager
def alone(work: Path) -> Iterator[None]:
    """One build at a time: they share the copy of the sources."""
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BeowireError(
                "Another build of the packages is under way.", "Wait until it has ended."
            ) from error
        yield


def lay_out(directory: Path, revision: str) -> str:
    """Makes or renews the copy for Debian's tools; the version of the packages."""
    _check(revision)
    _sources(directory, "debian")
    return _debian(directory, revision)


def lay_out_rpm(directory: Path, revision: str) -> str:
    """The same for rpmbuild."""
    _check(revision)
    _sources(directory, "rpm")
    rpm = directory / "rpm"
    if rpm.exists():
        shutil.rmtree(rpm)
    shutil.copytree(places.source("packaging/rpm"), rpm)
    for name in _SHARED:
        shutil.copy(places.source(f"packaging/debian/{name}"), rpm / Path(name).name)
    those = vendored.found(vendored.FOR_RPM)
    _copies(directory, those)
    (rpm / "vendored-licences.txt").write_text(vendored.stanzas(those, named=False))
    return f"{__version__}-{revision}"


def _check(revision: str) -> None:
    if not re.fullmatch(r"[0-9a-zA-Z.+~]+", revision):
        raise BeowireError(
            f"{revision!r} is no revision of a package.",
            "It has letters, digits and the characters . + ~ only.",
        )


def _sources(directory: Path, tools: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    expected = {COMPILED, tools, *_ROOMS, *_FILES}
    for each in directory.iterdir():
        if each.name not in expected:
            _remove(each)
    for room in _ROOMS:
        _mirror(places.source(room), directory / room, kept=("vendored",))
    for name in _FILES:
        _copy(places.source(name), directory / name)


def _copies(directory: Path, those: list[vendored.Vendored]) -> None:
    copies = directory / "tools" / "vendored"
    if copies.exists():
        shutil.rmtree(copies)
    vendored.copy(those, copies)


def _debian(directory: Path, revision: str) -> str:
    """debian/ anew: debhelper notes there which of its steps it has taken."""
    debian = directory / "debian"
    if debian.exists():
        shutil.rmtree(debian)
    shutil.copytree(places.source("packaging/debian"), debian)
    version = f"{__version__}-{revision}"
    changelog = debian / "changelog"
    first, _, rest = changelog.read_text().partition("\n")
    changelog.write_text(re.sub(r"\(.*?\)", f"({version})", first, count=1) + "\n" + rest)
    those = vendored.found()
    _copies(directory, those)
    bsd = places.source("LICENSES/BSD-2-Clause.txt").read_text().strip()
    text = (debian / "copyright").read_text()
    quoted = "\n".join(f" {line}" if line.strip() else " ." for line in bsd.splitlines())
    text = text.replace("@BSD@", quoted)
    (debian / "copyright").write_text(text)
    (debian / "beowire.copyright").write_text(f"{text}\n{vendored.stanzas(those)}")
    return version


def _mirror(source: Path, copy: Path, kept: tuple[str, ...] = ()) -> None:
    copy.mkdir(exist_ok=True)
    names = {each.name for each in source.iterdir() if each.name not in _IGNORED}
    for each in copy.iterdir():
        if each.name not in names and each.name not in kept:
            _remove(each)
    for name in names:
        if (source / name).is_dir():
            _mirror(source / name, copy / name)
        else:
            _copy(source / name, copy / name)


def _copy(source: Path, copy: Path) -> None:
    if not copy.is_file() or not filecmp.cmp(source, copy, shallow=False):
        shutil.copyfile(source, copy)
    shutil.copymode(source, copy)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
