# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A build of packages that cannot be: what is said, and that nothing was begun."""

import fcntl
from pathlib import Path

import pytest
from beowire import installed
from beowire.errors import BeowireError
from beowire.package import deb
from beowire.progress import Progress


@pytest.fixture
def own_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No build begins in earnest."""
    monkeypatch.setenv("BEOWIRE_BUILD", str(tmp_path))
    monkeypatch.setattr(deb, "_run", lambda *_: pytest.fail("Debian's tools were started"))
    return tmp_path / "packages" / "work"


def build(to: Path) -> deb.Built:
    return deb.build(to, "1", Progress(deb.STEPS))


def test_one_at_a_time(own_build: Path, tmp_path: Path) -> None:
    own_build.mkdir(parents=True)
    with (own_build / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BeowireError, match="under way"):
            build(tmp_path / "out")
    assert not (own_build / "source").exists()


@pytest.mark.usefixtures("own_build")
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(BeowireError, match="cannot be written"):
        build(file)


@pytest.mark.usefixtures("own_build")
def test_an_installation_builds_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "directories", dict)
    with pytest.raises(BeowireError, match="packaging is not part of an installation"):
        build(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_why_a_build_failed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("dpkg-checkbuilddeps: error: Unmet build dependencies: a-dev b (>= 1.0)\n")
    failed = deb._failed(log)
    assert "others that are not here: a-dev b (>= 1.0)" in failed.what
    assert failed.fix.endswith("apt-get install a-dev b")
    log.write_text("one\ntwo\n")
    failed = deb._failed(log)
    assert str(log) in failed.what
    assert "two" in failed.fix


def test_only_ours_are_replaced(tmp_path: Path) -> None:
    for name in ("beowire_1_amd64.deb", "libbeowire1_1_amd64.deb", "mine_1_all.deb", "beowire.txt"):
        (tmp_path / name).touch()
    names = [each.name for each in deb.packages_in(tmp_path)]
    assert names == ["beowire_1_amd64.deb", "libbeowire1_1_amd64.deb"]
