# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The script `beowire` and the first steps of Python: what goes wrong before there is a command."""

import os
import pty
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from beowire import places

PRESSES_CTRL_C = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(0.5)\n"


@pytest.fixture
def interrupted_at_start(tmp_path: Path) -> dict[str, str]:
    """An environment in which Ctrl-C comes while Python looks for its modules."""
    (tmp_path / "sitecustomize.py").write_text(PRESSES_CTRL_C)
    return {**os.environ, "PYTHONPATH": str(tmp_path)}


def start(environment: dict[str, str], in_child: Callable[[], object]) -> tuple[int, str, str]:
    command = [places.root() / "beowire", "version"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, preexec_fn=in_child
    )
    return done.returncode, done.stdout, done.stderr


def test_ctrl_c_while_python_starts(interrupted_at_start: dict[str, str]) -> None:
    default = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    assert start(interrupted_at_start, default) == (-signal.SIGINT, "", "")


def test_what_ignores_ctrl_c_goes_on_to(interrupted_at_start: dict[str, str]) -> None:
    ignore = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    status, output, errors = start(interrupted_at_start, ignore)
    assert (status, errors) == (0, "")
    assert output.startswith("beowire ")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose Python environment is set up, and is no Python: it tells its arguments."""
    root = tmp_path / "a checkout"
    for directory in ("tools", ".venv/bin", "engine", "hosts", "emulator", "adapters", "examples"):
        (root / directory).mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "meson.build").touch()
    (root / "tools" / "pyproject.toml").touch()
    shutil.copy(places.root() / "beowire", root)
    stamp = root / ".venv" / "beowire.stamp"
    stamp.write_text(f"{root} ")
    os.utime(stamp, (2**31, 2**31))
    python = root / ".venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho python "$@"\n')
    python.chmod(0o755)
    return root


def run(checkout: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {key: value for key, value in os.environ.items() if "BEOWIRE" not in key}
    return subprocess.run(
        [checkout / "beowire", *words],
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_python_that_may_not_be_executed(checkout: Path) -> None:
    assert run(checkout, "version").stdout.endswith("start.py version\n")
    python = checkout / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/root/no/such/python3")
    done = run(checkout, "version")
    assert done.returncode == 1
    assert f"cannot execute {python}, which is /root/no/such/python3" in done.stderr
    assert "make a checkout of your own" in done.stderr


def test_a_build_directory_in_one_that_is_not_there(checkout: Path) -> None:
    place = checkout / "no" / "such"
    for command in ("info", "version"):
        done = run(checkout, command, BEOWIRE_BUILD=str(place))
        assert not place.parent.exists()
        if command == "info":
            assert done.returncode == 1
            assert f"there is no directory {place.parent} for the build directory" in done.stderr


@pytest.mark.parametrize("status", [0, 3])
def test_progress_of_a_build_on_a_terminal(checkout: Path, status: int, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "meson").write_text('#!/bin/sh\ntouch "$2/build.ninja"\n')
    wait = "while [ ! -e shown ]; do sleep 0.05; done"
    (tools / "ninja").write_text(
        f"#!/bin/sh\necho '[1/2] one'\n{wait}\necho '[2/2] two'\nexit {status}\n"
    )
    for each in tools.iterdir():
        each.chmod(0o755)
    main, side = pty.openpty()
    process = subprocess.Popen(
        [checkout / "beowire", "info"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=side,
        env={
            **os.environ,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "BEOWIRE_BUILD": str(checkout / "b"),
        },
    )
    os.close(side)
    said = b""
    try:
        while piece := os.read(main, 4096):
            said += piece
            if b"[1/2] one" in said:
                (tmp_path / "shown").touch()
    except OSError:  # nobody has the terminal open any more
        pass
    os.close(main)
    output, _ = process.communicate()
    assert b"[1/2] one" in said
    if status:
        assert process.returncode == 1
        assert said.count(b"[2/2] two") >= 1
        assert b"the build failed; its last lines stand above" in said
    else:
        assert output.decode().endswith("start.py info\n")
