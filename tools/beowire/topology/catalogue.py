# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The topologies that come with Beowire: TOML files of the package, by their names."""

from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.topology import reader
from beowire.topology.topology import Topology


def directory() -> Path:
    return places.package_file("topology/ready")


def names() -> list[str]:
    return sorted(path.stem for path in directory().glob("*.toml"))


def find(word: str) -> Topology:
    """The topology that a word stands for: a ready one by its name, else a file."""
    if word in names():
        return reader.read(directory() / f"{word}.toml")
    path = Path(word)
    if not path.exists() and "/" not in word and path.suffix != ".toml":
        raise BeowireError(
            f"There is no topology {word}.",
            f"Name a file, or one of the ready ones: {', '.join(names())}.",
        )
    return reader.read(path)
