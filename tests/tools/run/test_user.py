# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Ranks of another user: what root does with directories that he writes to."""

import errno
import os
import pwd
import socket
import stat
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.run import job as running
from beowire.run import user
from beowire.run.cluster import Cluster

NAME = "nobody"
NOBODY = pwd.getpwnam(NAME)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of two users take root")


def as_user(*words: str) -> int:
    """Executes a command as the user: its status."""
    become = ["setpriv", f"--reuid={NOBODY.pw_uid}", f"--regid={NOBODY.pw_gid}", "--clear-groups"]
    return subprocess.run([*become, *words], check=False, stderr=subprocess.DEVNULL).returncode


def test_the_place_is_roots_own(tmp_path: Path) -> None:
    """He writes to what was given to him only, and cannot put something in its place."""
    with user.directory(NAME, tmp_path) as place:
        told = place.stat()
        assert (told.st_uid, stat.S_IMODE(told.st_mode)) == (0, 0o711)
        given = place / "stats"
        given.mkdir()
        user.give(NAME, given)
        assert as_user("touch", str(given / "his")) == 0
        assert as_user("ln", "-s", "/etc", str(place / "ompi.node.0")) != 0
        assert as_user("mv", str(given), str(place / "away")) != 0
        assert as_user("ls", str(place)) != 0
    assert not place.exists()


def test_nothing_but_his_own_files_is_taken(tmp_path: Path) -> None:
    """Root follows no link, waits for no writer, and reads no file of another's."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    given = tmp_path / "stats"
    given.mkdir()
    (given / "his.json").write_text("{}")
    os.chown(given / "his.json", NOBODY.pw_uid, NOBODY.pw_gid)
    (given / "roots.json").write_text("secret")
    (given / "link.json").symlink_to(secret)
    (given / "hard.json").hardlink_to(secret)
    his, other = tmp_path / "his", tmp_path / "other"
    for each in (his, other):
        each.write_text("elsewhere")
        os.chown(each, NOBODY.pw_uid, NOBODY.pw_gid)
    (given / "elsewhere.json").symlink_to(his)
    (given / "twice.json").hardlink_to(other)
    os.mkfifo(given / "pipe.json")
    os.chown(given / "pipe.json", NOBODY.pw_uid, NOBODY.pw_gid)
    (given / "directory.json").mkdir()
    assert user.look(NOBODY.pw_uid, given, ".json") == [b"{}"]
    assert user.look(NOBODY.pw_uid, given, ".told") == []
    assert user.look(NOBODY.pw_uid, tmp_path / "gone", ".json") == []
    taken = user.take(NAME, given, tmp_path)
    assert [(each.name, each.read_text()) for each in taken.iterdir()] == [("his.json", "{}")]
    assert taken.stat().st_uid == 0


def test_only_what_is_roots_is_opened(tmp_path: Path) -> None:
    """Ranks get room beside the launcher's files; what a rank has planted there stays as it is."""
    secret = tmp_path / "secret"
    secret.mkdir(mode=0o700)
    with user.directory(NAME, tmp_path) as place:
        called = place / "called"
        session = place / "ompi.node.0"
        job = session / "pid.1"
        job.mkdir(parents=True, mode=0o700)
        (job / "file").touch(mode=0o600)
        for each in (job / "socket", called):
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(each))
            each.chmod(0o700)
        (job / "twice").hardlink_to(called)
        words = user.become(NAME, place)
        subprocess.run([*words, "mkdir", "-m", "755", str(job / "rank")], check=True)
        subprocess.run([*words, "ln", "-s", str(secret), str(job / "link")], check=True)
        (job / "rank" / "inner").mkdir(mode=0o700)  # by a way that he can change
        subprocess.run([*words, "true"], check=True)
        assert stat.S_IMODE(job.stat().st_mode) == 0o1777
        assert stat.S_IMODE((job / "file").stat().st_mode) == 0o600
        assert stat.S_IMODE((job / "socket").stat().st_mode) == 0o766
        assert stat.S_IMODE(called.stat().st_mode) == 0o700
        assert stat.S_IMODE(place.stat().st_mode) == 0o711
        assert stat.S_IMODE((job / "rank").stat().st_mode) == 0o755
        assert stat.S_IMODE((job / "rank/inner").stat().st_mode) == 0o700
        assert stat.S_IMODE(secret.stat().st_mode) == 0o700
        # It cannot be moved away, for a link in its place.
        assert as_user("mv", str(job), str(session / "away")) != 0


def test_no_more_is_taken_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither of a file, nor of all."""
    monkeypatch.setattr(user, "_FILE_BYTES", 10)
    monkeypatch.setattr(user, "_BYTES", 25)
    given = tmp_path / "stats"
    given.mkdir()
    for name in "abcd":
        (given / name).write_text("x" * 100)
        os.chown(given / name, NOBODY.pw_uid, NOBODY.pw_gid)
    taken = user.take(NAME, given, tmp_path)
    assert [len((taken / name).read_text()) for name in "abcd"] == [10, 10, 5, 0]


def test_more_files_than_are_taken_are_not_even_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There may be millions."""
    monkeypatch.setattr(user, "_FILES", 3)
    given = tmp_path / "stats"
    given.mkdir()
    for number in range(20):
        (given / str(number)).touch()
        os.chown(given / str(number), NOBODY.pw_uid, NOBODY.pw_gid)
    listed: list[list[str]] = []
    order: Callable[[Iterable[str]], list[str]] = sorted

    def watched(names: Iterable[str]) -> list[str]:
        listed.append(order(names))
        return listed[-1]

    monkeypatch.setattr(user, "sorted", watched, raising=False)
    taken = user.take(NAME, given, tmp_path)
    assert [len(names) for names in listed] == [3]
    assert order(each.name for each in taken.iterdir()) == listed[0]


def test_what_is_taken_fits_into_the_room_of_a_job() -> None:
    assert user._BYTES < running._ROOM_BYTES


def test_a_disk_that_is_full_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = tmp_path / "stats"
    given.mkdir()
    (given / "his.json").write_text("{}")
    os.chown(given / "his.json", NOBODY.pw_uid, NOBODY.pw_gid)

    def full(_file: Path, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(BeowireError, match=r"cannot be copied to .*: No space left.*\n.*Free some"):
        user.take(NAME, given, tmp_path)
    with pytest.raises(BeowireError, match=r"cannot be copied to .*: File exists"):
        user.take(NAME, given, tmp_path)


def test_links_that_are_followed_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the kernel follows links in directories of everybody, the launcher does."""
    monkeypatch.setattr(user, "_SETTINGS", tmp_path)
    here = Cluster.__new__(Cluster)
    object.__setattr__(here, "lab", object())
    names = ("protected_symlinks", "protected_hardlinks")
    for values in (("0", "0"), ("0", "1"), ("1", "0"), ("1", "1")):
        for name, value in zip(names, values, strict=True):
            (tmp_path / name).write_text(f"{value}\n")
        user.check(NAME, here)
        told = "".join(capfd.readouterr().err.split())
        for name, value in zip(names, values, strict=True):
            assert (f"fs.{name}=1" in told) == (value == "0")
