# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The copy of the sources that packages are built in."""

import os
import re
from pathlib import Path

import pytest
from beowire import __version__, places
from beowire.errors import BeowireError
from beowire.package import stage, vendored


@pytest.fixture
def laid_out(tmp_path: Path) -> Path:
    stage.lay_out(tmp_path / "source", "1")
    return tmp_path / "source"


def test_it_has_what_a_build_needs(laid_out: Path) -> None:
    for name in ("meson.build", "engine/wire.h", "hosts/kernel/Kbuild", "debian/control"):
        assert (laid_out / name).is_file(), name
    for name in ("tests", "examples", "build", ".venv", ".git"):
        assert not (laid_out / name).exists(), name
    assert not list(laid_out.rglob("__pycache__"))
    assert os.access(laid_out / "debian" / "rules", os.X_OK)


def test_what_did_not_change_keeps_its_time(laid_out: Path) -> None:
    kept, changed = laid_out / "engine" / "wire.h", laid_out / "engine" / "peer.c"
    changed.write_text("something else")
    added = laid_out / "engine" / "added.c"
    added.touch()
    compiled = laid_out / stage.COMPILED
    compiled.mkdir()
    for each in (kept, changed):
        os.utime(each, (1, 1))
    stage.lay_out(laid_out, "2")
    assert kept.stat().st_mtime == 1
    assert changed.stat().st_mtime != 1
    assert changed.read_bytes() == places.source("engine/peer.c").read_bytes()
    assert not added.exists()
    assert compiled.is_dir()


def test_the_revision_follows_the_version(tmp_path: Path) -> None:
    assert stage.lay_out(tmp_path, "7~rc1") == f"{__version__}-7~rc1"
    first = (tmp_path / "debian" / "changelog").read_text().splitlines()[0]
    assert first.startswith(f"beowire ({__version__}-7~rc1) ")


@pytest.mark.parametrize("revision", ["", "1 2", "1/2", "../1", "a;b", "1-2", "1\n"])
def test_a_revision_that_is_none_is_refused(revision: str, tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="no revision"):
        stage.lay_out(tmp_path / "source", revision)
    assert not (tmp_path / "source").exists()


def test_the_changelog_is_of_this_version() -> None:
    text = places.source("packaging/debian/changelog").read_text()
    newest = re.match(r"beowire \((.+)-\d+\)", text)
    assert newest is not None
    assert newest[1] == __version__


def test_copies_of_others_come_with_their_licences(laid_out: Path) -> None:
    text = (laid_out / "debian" / "beowire.copyright").read_text()
    for name in vendored.NAMES:
        assert (laid_out / "tools" / "vendored" / name / "__init__.py").is_file()
        stanza = text.partition(f"Files: usr/lib/beowire/vendored/{name}/*\n")[2]
        licence = stanza.partition("License: ")[2].partition("\n\n")[0]
        assert len(licence.splitlines()) > 2, name
    others = (laid_out / "debian" / "copyright").read_text()
    assert "vendored" not in others
    assert "@" not in others


def test_another_python_than_the_distributions_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    monkeypatch.setattr(vendored, "_PYTHON", other)
    with pytest.raises(BeowireError, match=r"the distribution 3\.99"):
        vendored.found()
