# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What others could have written is neither executed nor believed."""

import os
import shlex
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from beowire import places, private_dir
from beowire.errors import BeowireError
from beowire.lab import lab, rootless
from beowire.run import cluster

NOBODY = 65534

USES: list[Callable[[], object]] = [
    lab.names,
    lambda: lab.load("x"),
    lambda: lab.exists("x"),
    lambda: cluster.of_lab("x"),
    rootless.holder,
    lambda: lab.locked().__enter__(),
]


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The name of the directory of run-time state, with a lab that somebody else put there."""
    directory = tmp_path / "state"
    (directory / "labs" / "x").mkdir(parents=True)
    (directory / "labs" / "x" / "lab.json").write_text("{}")
    (directory / "holder").write_text("1 1")
    directory.chmod(0o700)
    monkeypatch.setenv("BEOWIRE_STATE", str(directory))
    return directory


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
def test_a_directory_that_others_write_to(
    use: Callable[[], object], mode: int, state: Path
) -> None:
    state.chmod(mode)
    with pytest.raises(BeowireError, match=f"by others \\(mode {mode:o}\\)"):
        use()


@pytest.mark.parametrize("use", USES)
def test_a_link(use: Callable[[], object], state: Path) -> None:
    state.rename(state.with_name("elsewhere"))
    state.symlink_to(state.with_name("elsewhere"))
    with pytest.raises(BeowireError, match="is a link"):
        use()


@pytest.mark.parametrize("use", USES)
def test_a_directory_of_another_user(
    use: Callable[[], object], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = state.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    with pytest.raises(BeowireError, match=f"another user \\(number {owner}\\)"):
        use()


def test_one_of_our_own(state: Path) -> None:
    assert lab.names() == ["x"]
    state.chmod(0o755)  # others may look
    assert lab.names() == ["x"]


def test_it_is_made_for_us_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        private_dir.make(tmp_path / "a" / "b")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
    private_dir.make(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        private_dir.make(tmp_path / "file")


def test_where_it_lies_without_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """In /tmp, where everybody may have been first."""
    for variable in ("BEOWIRE_STATE", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.setattr(os, "getuid", lambda: NOBODY)
    checked: list[Path] = []
    monkeypatch.setattr(private_dir, "check", checked.append)
    assert places.state_dir() == Path(f"/tmp/beowire-{NOBODY}")
    assert checked == [Path(f"/tmp/beowire-{NOBODY}")]


@pytest.mark.parametrize("there", ["nothing", "ours", "group's", "everybody's", "link", "file"])
def test_the_same_on_other_hosts(there: str, tmp_path: Path) -> None:
    modes = {"ours": 0o755, "group's": 0o770, "everybody's": 0o1707}
    place = tmp_path / "a b"
    if there in modes:
        place.mkdir()
        place.chmod(modes[there])
    elif there == "link":
        place.symlink_to(tmp_path)
    elif there == "file":
        place.touch()
    make = private_dir.make_script(shlex.quote(str(place)))
    script = f"umask 0; {make} && echo made"
    done = subprocess.run(["sh", "-c", script], capture_output=True, check=False, text=True)
    assert done.stdout == ("made\n" if there in ("nothing", "ours") else "")
    if there == "nothing":
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
