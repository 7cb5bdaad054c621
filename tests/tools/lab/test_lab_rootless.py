# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Users without privilege get labs of namespaces where the kernel allows user namespaces."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import rootless
from beowire_cli import Answer

NOBODY = 65534


@dataclass(frozen=True)
class User:
    """Somebody without privilege, and how to run a command as they do."""

    prefix: list[str]
    state: Path
    environment: dict[str, str]

    def beowire(self, *arguments: str) -> Answer:
        done = subprocess.run(
            [*self.prefix, "-P", "-m", "beowire", *arguments],
            cwd="/",
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def holder(self) -> int:
        with contextlib.suppress(OSError):
            pid, _ = (self.state / "holder").read_text().split()
            return int(pid) if Path(f"/proc/{pid}/ns/mnt").exists() and _lives(int(pid)) else 0
        return 0


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    return False


@pytest.fixture
def user() -> Iterator[User]:
    as_user = [] if os.geteuid() else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                                       "--clear-groups", "--inh-caps=-all"]  # fmt: skip
    state = Path(tempfile.mkdtemp(prefix="beowire-test-"))
    if as_user:
        os.chown(state, NOBODY, NOBODY)
    environment = {key: value for key, value in os.environ.items() if key != "BEOWIRE_LAB_MODE"}
    environment |= {
        "BEOWIRE_STATE": str(state),
        "HOME": str(state),
        "PYTHONPATH": os.pathsep.join([str(places.root() / "tools"), *sys.path[1:]]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        unshare = [*as_user, "unshare", "--user", "--map-root-user", "--mount", "true"]
        if shutil.which("unshare") is None or subprocess.run(unshare, check=False).returncode:
            pytest.skip("the kernel allows no user namespaces here")
        for python in (sys.executable, "/usr/bin/python3"):
            probe = [*as_user, "sh", "-c", f"{python} -P -c 'import beowire.cli, typer'"]
            done = subprocess.run(probe, env=environment, capture_output=True, check=False)
            if done.returncode == 0:
                break
        else:
            pytest.skip("no Python that users without privilege may run has what is needed")
        one = User([*as_user, python], state, environment)
        try:
            yield one
        finally:
            for name in ("one", "two"):
                one.beowire("lab", "down", name)
    finally:
        shutil.rmtree(state, ignore_errors=True)


def test_nodes_are_namespaces_and_nothing_is_left(user: User) -> None:
    made = user.beowire("lab", "up", "one", "--nodes", "2")
    assert (made.status, made.errors) == (0, "")
    holder = user.holder()
    assert holder
    script = "hostname; cat /sys/class/net/eth0/mtu; getent hosts node2"
    told = user.beowire("lab", "exec", "one", "node1", "--", "sh", "-c", script)
    assert told.output.split()[:2] == ["node1", "9000"], told.errors
    assert told.output.split()[-1] == "node2"
    assert user.beowire("lab", "up", "two", "--nodes", "1").status == 0
    assert user.holder() == holder
    for name in ("one", "two"):
        assert user.holder() == holder
        assert user.beowire("lab", "down", name).status == 0
    while _lives(holder):  # killed, and reaped by whoever is its parent now
        time.sleep(0.01)
    assert list((user.state / "labs").iterdir()) == []


def test_a_lab_that_cannot_be_made_leaves_no_holder(user: User) -> None:
    file = user.state / "limited.toml"
    file.write_text(
        '[[nodes]]\nname = "node"\ncount = 2\ncpus = 0.5\n'
        '[[links]]\nname = "cable"\na = "node1"\nb = "node2"\n'
    )
    answer = user.beowire("lab", "up", "one", "--topology", str(file))
    assert answer.status == 1
    assert "rocessor time" in answer.errors
    while user.holder():  # killed a moment ago
        time.sleep(0.01)


def test_commands_that_are_not_about_labs_stay_outside() -> None:
    inside = (["lab", "status"], ["run", "--lab", "x", "--", "a"], ["bench", "p", "--lab=x"])
    outside = (["version"], ["run", "--hosts", "a", "--", "lab", "--lab"], [], ["--help"])
    assert all(map(rootless.concerns_labs, inside))
    assert not any(map(rootless.concerns_labs, outside))


def test_a_holder_that_died_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path))
    assert rootless.holder() == 0
    (tmp_path / "holder").write_text(f"{os.getpid()} 1")  # a number used again
    assert rootless.holder() == 0
    assert not (tmp_path / "holder").exists()


def test_why_the_kernel_forbids_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(rootless, "_PREPARE", "echo mount: denied >&2; exit 1")
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path))
    with pytest.raises(BeowireError, match="mount: denied"):
        rootless._start()
    assert not (tmp_path / "holder").exists()
    monkeypatch.setattr(rootless, "_SYSTEM", tmp_path)
    assert rootless.forbidden() == "Run as root."
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "apparmor_restrict_unprivileged_userns").write_text("1\n")
    assert "kernel.apparmor_restrict_unprivileged_userns is 1" in rootless.forbidden()
