# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""rpmbuild builds the packages for Enterprise Linux and openSUSE in a copy of the sources.

On another distribution it builds them as well, for a look at them: then nothing asks whether what a
build needs is there as packages of rpm, and the libraries are those of that distribution.
"""

import shutil
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.package import builder, deb, stage, vendored
from beowire.package.deb import Built
from beowire.progress import Progress

STEPS = 2
_KINDS = ("rhel", "fedora", "suse", "opensuse")
"""Distributions that rpm manages, as ID and ID_LIKE of os-release(5) name them."""


def native(os_release: Path = Path("/etc/os-release")) -> bool:
    """Whether this distribution is made of such packages."""
    try:
        lines = [line.partition("=") for line in os_release.read_text().splitlines()]
    except OSError:
        return False
    told = {key: value.strip("\"'") for key, _, value in lines}
    words = f"{told.get('ID', '')} {told.get('ID_LIKE', '')}".split()
    return any(word == kind or word.startswith(f"{kind}-") for word in words for kind in _KINDS)


def build(to: Path, revision: str, progress: Progress) -> Built:
    """Builds all packages and puts them there, in the place of older ones."""
    work = deb.directory() / "work-rpm"
    program = places.program("rpmbuild", "rpm")
    places.make_output_dir(to)
    places.make_output_dir(work)
    with stage.alone(work):
        progress.begin("the sources are laid out")
        version = stage.lay_out_rpm(work / "source", revision)
        progress.begin(f"rpmbuild builds version {version} (the first time some minutes)")
        made = work / "made"
        shutil.rmtree(made, ignore_errors=True)
        _run(program, work, revision)
        for old in packages_in(to):
            old.unlink()
        files = packages_in(made)
        return Built(version, [Path(shutil.move(each, to / each.name)) for each in files])


def packages_in(place: Path) -> list[Path]:
    """The packages of Beowire there; others that lie beside them are somebody's own."""
    return sorted(each for each in place.glob("*.rpm") if each.name.startswith(deb.OWN))


def definitions(work: Path, revision: str) -> dict[str, str]:
    """What the spec file is told: macros and their values."""
    told = {
        "_topdir": f"{work}/rpmbuild",
        "_rpmdir": f"{work}/made",
        "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        "_dbpath": f"{work}/database",
        "beowire_python": vendored.python_version(),
        "beowire_revision": revision,
    }
    if native():
        del told["_dbpath"]
    return told


def _run(program: str, work: Path, revision: str) -> None:
    macros = definitions(work, revision).items()
    words = [program, "-bb", "--build-in-place"]
    words += [] if native() else ["--nodeps"]
    words += [word for name, value in macros for word in ("--define", f"{name} {value}")]
    log = work / "build.log"
    if not builder.execute([*words, "rpm/beowire.spec"], work / "source", log):
        raise failed(log)


def failed(log: Path) -> BeowireError:
    """Why a build failed, by what it said."""
    lines = log.read_text(errors="replace").splitlines()
    needed = [line.strip().split(" is needed by ")[0] for line in lines if " is needed by " in line]
    if needed:
        fix = "Install them: dnf builddep packaging/rpm/beowire.spec   (or zypper install)"
        return builder.lacking(", ".join(needed), fix)
    return builder.failed(log)
