# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs without root: a process that holds a user namespace and a mount namespace of its own.

In there the user is root over the network namespaces made there, though over nothing else: /run
is a file system of its own, and changes to /etc stay inside. Commands about labs enter it by
nsenter and then work as for root. It lives until the last of its labs is removed. Not everything
is allowed inside: eBPF programs are not, so that emulators do their work, and control groups are
not either.
"""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

from beowire import namespaces, places, signals, transcript
from beowire.errors import BeowireError
from beowire.lab import lab
from beowire.terminal import note

INSIDE = "_BEOWIRE_HOLDER"
"""The variable that tells a command inside the number of the holder."""

_PREPARE = """
set -e
"$1" -P -c 'import beowire'
mount -t tmpfs none /run
mkdir -p /run/upper/netns /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/upper,workdir=/run/work none /etc
mkdir /run/netns
echo ready
exec >/dev/null 2>&1 </dev/null sleep infinity
"""

_SYSTEM = Path("/proc/sys")
_SWITCHES = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ("kernel/unprivileged_userns_clone", "0"),
    ("user/max_user_namespaces", "0"),
)
"""Settings in /proc/sys by which distributions forbid user namespaces, and the forbidding value."""


def _file() -> Path:
    return places.state_dir() / "holder"


def _started(pid: int) -> str:
    """When the process started, in clock ticks since the machine did; empty when it is gone."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return status.rpartition(")")[2].split()[19]


def holder() -> int:
    """The process that holds this user's labs; 0: there is none."""
    try:
        pid, started = _file().read_text().split()
    except (OSError, ValueError):
        return 0
    if _started(int(pid)) == started:
        return int(pid)
    with contextlib.suppress(OSError):
        _file().unlink()
    return 0


def concerns_labs(arguments: list[str]) -> bool:
    """Whether a command line is about labs: others must stay outside, with the user's network."""
    words = transcript.without(arguments)
    words = words[: words.index("--")] if "--" in words else words
    return words[:1] == ["lab"] or any(word.partition("=")[0] == "--lab" for word in words)


def enter(arguments: list[str]) -> None:
    """Where this user has a holder and the command line is about labs, becomes it in there."""
    if os.geteuid() != 0 and concerns_labs(arguments) and (pid := holder()):
        _become(pid, arguments)


def begin(arguments: list[str]) -> None:
    """Before a command that makes a lab: where only root may, and a user namespace is allowed,
    becomes the same command in a holder's, which is started. Else it returns, and the lab's nodes
    will be loopback addresses."""
    if os.geteuid() == 0 or os.environ.get("BEOWIRE_LAB_MODE") or not namespaces.refusal():
        return
    try:
        pid = holder() or _start()
    except BeowireError as error:
        note(str(error))
        return
    _become(pid, arguments)


def _become(pid: int, arguments: list[str]) -> NoReturn:
    nsenter = places.program("nsenter", "util-linux")
    inside = [nsenter, f"--target={pid}", "--user", "--mount", "--preserve-credentials"]
    again = [*places.module("beowire"), *arguments]
    os.environ[INSIDE] = str(pid)
    os.execv(nsenter, [*inside, f"--wd={Path.cwd()}", "--", *again])


@signals.uninterrupted()
def _start() -> int:
    """Starts a holder; its process id."""
    unshare = places.program("unshare", "util-linux")
    places.make_state_dir()
    command = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", _PREPARE, "holder"]
    command.append(sys.executable)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        _, said = process.communicate()
        why = " ".join(said.split()[-20:])
        raise BeowireError(f"No lab in a user namespace: {why}.", forbidden())
    try:
        _file().write_text(f"{process.pid} {_started(process.pid)}")
    except OSError as error:
        process.kill()
        process.wait()
        raise places.state_unwritable(error) from error
    return process.pid


def forbidden() -> str:
    """What to do about it that the kernel allows no user namespaces."""
    for name, value in _SWITCHES:
        with contextlib.suppress(OSError):
            if (_SYSTEM / name).read_text().strip() == value:
                setting = name.replace("/", ".")
                return f"{setting} is {value}, which forbids it: an administrator can change that."
    return "Run as root."


def end_if_unused() -> None:
    """Inside: ends the holder unless it has a lab."""
    pid = int(os.environ.get(INSIDE, "0"))
    if pid and not lab.names():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
