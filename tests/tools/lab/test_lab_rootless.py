# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Users without privilege get labs of namespaces where the kernel allows user namespaces."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places, private_dir
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


@pytest.fixture
def waiter() -> Iterator[subprocess.Popen[bytes]]:
    """A process in the place of a holder."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def _is_free(state: Path, how: int) -> bool:
    """Whether somebody else could have the holder's lock."""
    with (state / "holder.lock").open() as file:
        try:
            fcntl.flock(file, how | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_one_holder_is_started_and_stays_until_the_lab_is_there(
    waiter: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nobody else starts one meanwhile, nor ends it until then."""
    monkeypatch.setenv("BEOWIRE_STATE", str(tmp_path))
    monkeypatch.delenv("BEOWIRE_LAB_MODE", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    monkeypatch.setattr(private_dir, "check", lambda _: None)
    monkeypatch.setattr(rootless.namespaces, "refusal", lambda: "not allowed")
    started: list[bool] = []
    become: list[tuple[int, int]] = []

    def start() -> int:
        started.append(_is_free(tmp_path, fcntl.LOCK_SH))
        (tmp_path / "holder").write_text(f"{waiter.pid} {rootless._started(waiter.pid)}")
        return waiter.pid

    monkeypatch.setattr(rootless, "_start", start)
    monkeypatch.setattr(rootless, "_become", lambda pid, lock, _: become.append((pid, lock)))
    for _ in range(2):
        rootless.begin([])
        pid, lock = become.pop()
        assert pid == waiter.pid
        assert _is_free(tmp_path, fcntl.LOCK_SH)
        assert not _is_free(tmp_path, fcntl.LOCK_EX)
        with monkeypatch.context() as inside:
            inside.setattr(rootless, "_inside_lock", lambda lock=lock: lock)
            rootless.made()
        assert _is_free(tmp_path, fcntl.LOCK_EX)
        os.close(lock)
    assert started == [False]


@pytest.mark.parametrize("labs", [[], ["one"]], ids=["unused", "used"])
def test_a_holder_is_ended_only_if_nobody_made_a_lab_meanwhile(
    labs: list[str],
    waiter: "subprocess.Popen[bytes]",
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    lock = os.open(tmp_path / "holder.lock", os.O_RDWR | os.O_CREAT)
    seen: list[bool] = []

    def names() -> list[str]:
        seen.append(_is_free(tmp_path, fcntl.LOCK_SH))
        return labs if len(seen) > 1 else []

    monkeypatch.setenv(rootless.INSIDE, str(waiter.pid))
    monkeypatch.setattr(rootless, "_inside_lock", lambda: lock)
    monkeypatch.setattr(rootless.lab, "names", names)
    rootless.end_if_unused()
    os.close(lock)
    assert seen == [True, False]
    assert (waiter.poll() is None) == bool(labs)


def test_labs_that_are_made_at_once_have_one_holder(user: User) -> None:
    """And a lab that is removed meanwhile does not end it."""
    assert user.beowire("lab", "up", "one", "--nodes", "1").status == 0
    first = user.holder()
    with ThreadPoolExecutor(3) as pool:
        removed = pool.submit(user.beowire, "lab", "down", "one")
        made = pool.submit(user.beowire, "lab", "up", "two", "--nodes", "1")
        answers = [removed.result(), made.result()]
    if "removed meanwhile" in answers[1].errors:
        answers[1] = user.beowire("lab", "up", "two", "--nodes", "1")
    assert [each.status for each in answers] == [0, 0], answers
    assert user.holder()
    told = user.beowire("lab", "exec", "two", "node1", "--", "hostname")
    assert told.output == "node1\n", told.errors
    assert user.holder() == first or not _lives(first)


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
