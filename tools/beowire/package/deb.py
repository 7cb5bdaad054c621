# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's tools build the packages in a copy of the sources."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError
from beowire.package import builder, stage
from beowire.progress import Progress

STEPS = 2
OWN = ("beowire", "libbeowire", "libfabric-beowire", "openmpi-beowire")
"""How the names of our packages begin."""


@dataclass(frozen=True)
class Built:
    """What a build made."""

    version: str
    files: list[Path]

    def as_json(self) -> dict[str, Any]:
        return {"version": self.version, "files": [str(each) for each in self.files]}


def directory() -> Path:
    """Where packages are put, unless somebody names another place."""
    places.source("packaging")
    return places.build_dir() / "packages"


def packages_in(place: Path) -> list[Path]:
    """The packages of Beowire there; others that lie beside them are somebody's own."""
    return sorted(each for each in place.glob("*.deb") if each.name.startswith(OWN))


def build(to: Path, revision: str, progress: Progress) -> Built:
    """Builds all packages and puts them there, in the place of older ones."""
    work = directory() / "work"
    program = places.program("dpkg-buildpackage", "dpkg-dev")
    places.program("dh", "debhelper")
    places.make_output_dir(to)
    places.make_output_dir(work)
    with stage.alone(work):
        return _build(program, work, to, revision, progress)


def _build(program: str, work: Path, to: Path, revision: str, progress: Progress) -> Built:
    progress.begin("the sources are laid out")
    version = stage.lay_out(work / "source", revision)
    for old in work.glob("*.deb"):
        old.unlink()
    progress.begin(f"Debian's tools build version {version} (the first time some minutes)")
    _run(program, work / "source", work / "build.log")
    for old in packages_in(to):
        old.unlink()
    made = sorted(work.glob("*.deb"))
    return Built(version, [Path(shutil.move(each, to / each.name)) for each in made])


def _run(program: str, source: Path, log: Path) -> None:
    options = f"nocheck noautodbgsym parallel={len(os.sched_getaffinity(0))}"
    words = [program, "--build=binary", "--no-pre-clean", "--no-sign"]
    given = f"{options} {os.environ.get('DEB_BUILD_OPTIONS', '')}".strip()
    if not builder.execute(words, source, log, DEB_BUILD_OPTIONS=given):
        raise _failed(log)


def _failed(log: Path) -> BeowireError:
    text = log.read_text(errors="replace")
    if missing := re.search(r"Unmet build dependencies: (.*)", text):
        fix = "Install them: apt-get install " + re.sub(r" \(.*?\)", "", missing[1])
        return builder.lacking(missing[1], fix)
    return builder.failed(log)
