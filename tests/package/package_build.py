# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages and repositories as the command makes them."""

import json
from dataclasses import dataclass
from pathlib import Path

from beowire_cli import beowire


@dataclass(frozen=True)
class Packages:
    """Two builds, of which the second is newer, and a signed repository of each."""

    older: list[Path]
    newer: list[Path]
    older_repository: Path
    newer_repository: Path
    lines: list[str]
    """What a machine has to do to use the first repository."""


def build(directory: Path, revision: str) -> list[Path]:
    told = directory / "built.json"
    words = ["--output", str(directory), "--revision", revision, "--json", str(told)]
    done = beowire("package", "deb", *words)
    assert done.status == 0, done.errors
    return [Path(each) for each in json.loads(told.read_text())["files"]]


def repository(directory: Path, packages: Path) -> list[str]:
    told = packages / "repository.json"
    words = [str(directory), "--packages", str(packages), "--json", str(told)]
    keys = {"XDG_DATA_HOME": str(directory.parent / "keys")}
    done = beowire("package", "repository", *words, **keys)
    assert done.status == 0, done.errors
    lines: list[str] = json.loads(told.read_text())["lines"]
    return lines
