# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The script `beowire` and the first steps of Python: what goes wrong before there is a command."""

import os
import pty
import shlex
import shutil
import signal
import subprocess
import time
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


def test_progress_of_a_step_that_ends_meanwhile(checkout: Path, tmp_path: Path) -> None:
    """What shows a step's output looks at it when it has just been removed."""
    tools = tmp_path / "bin"
    tools.mkdir()
    tail = shutil.which("tail")
    late = f'case $1 in -c) while [ -e "$3" ]; do sleep 0.02; done;; esac\nexec {tail} "$@"\n'
    for name, text in (("meson", 'touch "$2/build.ninja"\n'), ("ninja", ""), ("tail", late)):
        (tools / name).write_text(f"#!/bin/sh\n{text}")
        (tools / name).chmod(0o755)
    main, side = pty.openpty()
    with os.fdopen(main, "rb"), os.fdopen(side, "wb") as terminal:
        path = f"{tools}:{os.environ['PATH']}"
        done = subprocess.run(
            [checkout / "beowire", "info"],
            stdout=subprocess.PIPE,
            stderr=terminal,
            env={**os.environ, "PATH": path, "BEOWIRE_BUILD": str(checkout / "b")},
            check=False,
        )
    assert done.stdout.decode().endswith("start.py info\n")


def _both(checkout: Path, tools: Path, ninja: str) -> "subprocess.CompletedProcess[str]":
    """Sets up where neither environment nor build are there; what installs packages says that it
    has begun, and waits for the build to begin."""
    (checkout / ".venv" / "beowire.stamp").unlink()
    install = f"touch '{checkout}/installs'; until [ -e '{checkout}/builds' ]; do sleep 0.02; done"
    tools.mkdir()
    venv_python = f"""#!/bin/sh
case "$*" in *pip\\ install*) {install}; echo $$ >'{checkout}/pid'; $AFTER;; esac
echo python "$@"
"""
    (tools / "venv_python").write_text(venv_python)
    (tools / "python3").write_text(
        "#!/bin/sh\n"
        '[ "$2" != venv ] || { mkdir -p "$3/bin"; cp "${0%/*}/venv_python" "$3/bin/python"; }\n'
    )
    (tools / "meson").write_text('#!/bin/sh\ntouch "$2/build.ninja"\n')
    begun = f"touch '{checkout}/builds'; until [ -e '{checkout}/installs' ]; do sleep 0.02; done"
    (tools / "ninja").write_text(f"#!/bin/sh\n{begun}\n{ninja}\n")
    for each in tools.iterdir():
        each.chmod(0o755)
    path = f"{tools}:{os.environ['PATH']}"
    after = "exec sleep 1000" if "exit" in ninja else "true"
    return run(checkout, "info", PATH=path, AFTER=after)


def test_the_environment_is_set_up_while_everything_is_built(
    checkout: Path, tmp_path: Path
) -> None:
    done = _both(checkout, tmp_path / "bin", "")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("start.py info\n")
    assert (checkout / ".venv" / "beowire.stamp").read_text() == f"{checkout} "


def test_a_build_that_fails_leaves_nothing_behind(checkout: Path, tmp_path: Path) -> None:
    told = f"until [ -s '{checkout}/pid' ]; do sleep 0.02; done; echo broken; exit 1"
    done = _both(checkout, tmp_path / "bin", told)
    assert done.returncode == 1
    assert "broken" in done.stderr
    installer = int((checkout / "pid").read_text())
    patience = time.monotonic() + 60
    while Path(f"/proc/{installer}").exists():
        assert time.monotonic() < patience
        time.sleep(0.02)
    assert not (checkout / ".venv" / "beowire.stamp").exists()


def test_servers_of_tests_are_not_started(tmp_path: Path) -> None:
    """Debian starts a server that is installed, unless its policy says no."""
    sbin, tools, log = tmp_path / "sbin", tmp_path / "tools", tmp_path / "log"
    for directory in (sbin, tools):
        directory.mkdir()
    apt = tools / "apt-get"
    apt.write_text(f"#!/bin/sh\n/usr/sbin/policy-rc.d; echo $3 $? >>{log}\n")
    apt.chmod(0o755)
    functions = "sed -n '/^say()/,/^find_python()/p' beowire | sed '$d'"
    script = (
        f"source <({functions}); install_packages 'redis-server xz-utils'; ls /usr/sbin >>{log}"
    )
    inside = f"mount --bind {sbin} /usr/sbin && exec bash -euo pipefail -c {shlex.quote(script)}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside],
        cwd=places.root(),
        env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == ["update 127", "install 101"]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["lab", "up", "x", "--slurm"], True),
        (["lab", "up", "x"], False),
        (["lab", "exec", "x", "node1", "--", "lab", "up", "--slurm"], False),
    ],
)
def test_slurm_is_installed_for_a_lab_that_wants_it(
    checkout: Path, tmp_path: Path, words: list[str], wanted: bool
) -> None:
    """Its services are not started for this machine, which has none of its programs here."""
    sbin, tools, log = tmp_path / "sbin", tmp_path / "bin", tmp_path / "log"
    for directory in (sbin, tools):
        directory.mkdir()
    log.touch()
    apt = tools / "apt-get"
    apt.write_text(f'#!/bin/sh\n/usr/sbin/policy-rc.d; echo $? "$@" >>{log}\n')
    apt.chmod(0o755)
    command = shlex.join([str(checkout / "beowire"), *words])
    variables = {key: value for key, value in os.environ.items() if "BEOWIRE" not in key}
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"mount --bind {sbin} /usr/sbin && exec {command}"],
        env={**variables, "PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(f"start.py {' '.join(words)}\n")
    installed = [line for line in log.read_text().splitlines() if " install " in line]
    assert len(installed) == wanted
    for line in installed:
        assert line.startswith("101 ")
        assert {"munge", "slurmctld", "slurmd"} < set(line.split())


def test_programs_of_tests_are_built_for_tests_alone(checkout: Path, tmp_path: Path) -> None:
    """Whoever only wants to see it does not wait for them; they are built when they are wanted."""
    tools, log = tmp_path / "bin", tmp_path / "log"
    tools.mkdir()
    (tools / "meson").write_text(
        f'#!/bin/sh\nfor last; do :; done; echo $1 $last >>{log}; touch "$2/build.ninja"\n'
        '[ $last != -Dtests=true ] || mkdir "$2/tests"\n'
    )
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(
        '#!/bin/sh\necho "$@"\n'
        'for each; do [ "$at" != --prefix ] || mkdir "$each"; at=$each; done\n'
    )
    (tools / "ninja").write_text(f"#!/bin/sh\necho ninja >>{log}\n")
    for each in tools.iterdir():
        each.chmod(0o755)
    variables = {"PATH": f"{tools}:{os.environ['PATH']}", "BEOWIRE_BUILD": str(checkout / "b")}
    for words in (["info"], ["info"], ["test", "x"], ["test", "x"], ["info"]):
        done = run(checkout, *words, **variables)
        assert done.returncode == 0, done.stderr
    assert log.read_text().splitlines() == [
        "setup -Dtests=false",
        "ninja",
        "configure -Dtests=true",
        "ninja",
    ]


@pytest.mark.parametrize(
    ("command", "lacks"),
    [("demo", {"chromium", "qemu-system-x86", "postgresql", "libcmocka-dev"}), ("test", set())],
)
def test_a_demonstration_installs_what_it_shows(
    checkout: Path, tmp_path: Path, command: str, lacks: set[str]
) -> None:
    """Nothing that only tests need: browsers, emulators, servers."""
    log, empty = tmp_path / "log", tmp_path / "empty"
    empty.mkdir()
    script = (checkout / "beowire").read_text()
    script = script.replace("present() {", "present() {\n\treturn 1", 1)
    script = script.replace(
        "install_packages() {", f"install_packages() {{\n\techo $1 >{log}; exit"
    )
    (checkout / "beowire").write_text(script)
    run(checkout, command, BEOWIRE_BUILD=str(empty))
    wanted = set(log.read_text().split())
    everything = {"gcc", "openmpi-bin", "tshark", "hpcc"}
    assert everything <= wanted
    assert not lacks & wanted
    assert ({"chromium", "qemu-system-x86", "postgresql"} <= wanted) == (not lacks)
