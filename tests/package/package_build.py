# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages and repositories as the command makes them, and packages of an earlier revision."""

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from beowire import __version__
from beowire_cli import beowire


@dataclass(frozen=True)
class Packages:
    """What was built, the same as an earlier revision, and a signed repository of each."""

    older: list[Path]
    newer: list[Path]
    older_repository: Path
    newer_repository: Path
    lines: list[str]
    """What a machine has to do to use the first repository."""


def build(directory: Path, revision: str, options: str = "") -> list[Path]:
    """By the command, with these options of Debian's for builds."""
    told = directory / "built.json"
    words = ["--output", str(directory), "--revision", revision, "--json", str(told)]
    done = beowire("package", "deb", *words, DEB_BUILD_OPTIONS=options)
    assert done.status == 0, done.errors
    return [Path(each) for each in json.loads(told.read_text())["files"]]


def earlier(files: list[Path], directory: Path, revisions: tuple[str, str]) -> list[Path]:
    """These packages once more, as if another revision had been built: two builds of the same
    sources differ in nothing else, and one takes a minute. `revisions` are that and theirs."""
    return [_earlier(file, directory, *revisions) for file in files]


def _earlier(file: Path, directory: Path, revision: str, built: str) -> Path:
    to = directory / file.name.replace(f"-{built}_", f"-{revision}_")
    with tempfile.TemporaryDirectory() as work:
        subprocess.run(["dpkg-deb", "--raw-extract", file, work], check=True)
        control = Path(work, "DEBIAN", "control")
        text = control.read_text()
        changed = text.replace(f"{__version__}-{built}", f"{__version__}-{revision}")
        assert changed != text
        control.write_text(changed)
        words = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", work, str(to)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return to


def repository(directory: Path, packages: Path) -> list[str]:
    told = packages / "repository.json"
    words = [str(directory), "--packages", str(packages), "--json", str(told)]
    keys = {"XDG_DATA_HOME": str(directory.parent / "keys")}
    done = beowire("package", "repository", *words, **keys)
    assert done.status == 0, done.errors
    lines: list[str] = json.loads(told.read_text())["lines"]
    return lines
