# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages that are built once for all tests of this folder, and a machine to install them on."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "service"))
sys.path.append(str(Path(__file__).resolve().parents[1] / "user"))
import beowire_cli
import package_machine
from package_build import Packages, build, earlier, repository

QUICK = "optimize=-lto noopt"
"""Without optimization, which takes most of the build's time: the checkout's own build has it, by
the same compiler. With long tests the packages are those that users get."""


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    base = tmp_path_factory.mktemp("packages")
    for name in ("older", "newer"):
        (base / name).mkdir()
    newer = build(base / "newer", "2", "" if os.environ.get("BEOWIRE_TEST_LONG") else QUICK)
    older = earlier(newer, base / "older", ("1", "2"))
    repositories = {name: base / f"repository-{name}" for name in ("older", "newer")}
    lines = {name: repository(place, base / name) for name, place in repositories.items()}
    return Packages(older, newer, repositories["older"], repositories["newer"], lines["older"])


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that is seen from the machine as well, below `shared`."""
    return tmp_path_factory.mktemp("room")


@pytest.fixture(scope="module")
def node(room: Path) -> Iterator[package_machine.Machine]:
    """The machine, without our packages."""
    if beowire_cli.NO_NAMESPACES:
        pytest.skip(f"namespaces: {beowire_cli.NO_NAMESPACES}")
    with package_machine.started(room) as started:
        yield started
