# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Labs without root: a process that holds a user namespace and a mount namespace of its own.

In there the user is root over the network namespaces made there, though over nothing else: /run
is a file system of its own, and changes to /etc stay inside. Commands about labs enter it by
nsenter and then work as for root. It lives until the last of its labs is removed. Not everything
is allowed inside: eBPF programs are not, so that emulators do their work, and control groups are
not either.
"""

import contextlib
import fcntl
import functools
import os
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

_LOCK = "_BEOWIRE_HOLDER_LOCK"
"""That which tells it the descriptor of the holder's lock, whose file may be hidden inside. Who
starts or ends the holder has it alone; who makes a lab shares it until the lab is there."""

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
    """When the process started, in clock ticks since the machine did; empty when it has ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if status[0] in "ZX" else status[19]


def holder() -> int:
    """The process that holds this user's labs; 0: there is none."""
    try:
        pid, started = _file().read_text().split()
    except (OSError, ValueError):
        return 0
    return int(pid) if _started(int(pid)) == started else 0


def _open_lock() -> int:
    """The lock's descriptor."""
    path = places.make_state_dir() / "holder.lock"
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise places.state_unwritable(error) from error


@functools.cache
def _inside_lock() -> int | None:
    """The descriptor that this command was given, inside. The programs that it starts have none."""
    given = os.environ.pop(_LOCK, None)
    if given is None:
        return None
    os.set_inheritable(int(given), False)
    return int(given)


def concerns_labs(arguments: list[str]) -> bool:
    """Whether a command line is about labs: others must stay outside, with the user's network."""
    words = transcript.without(arguments)
    words = words[: words.index("--")] if "--" in words else words
    return words[:1] == ["lab"] or any(word.partition("=")[0] == "--lab" for word in words)


def enter(arguments: list[str]) -> None:
    """Where this user has a holder and the command line is about labs, becomes it in there."""
    _inside_lock()
    if os.geteuid() != 0 and concerns_labs(arguments) and (pid := holder()):
        _become(pid, _open_lock(), arguments)


def begin(arguments: list[str]) -> None:
    """Before a command that makes a lab: where only root may, and a user namespace is allowed,
    becomes the same command in a holder's, which is started. Else it returns, and the lab's nodes
    will be loopback addresses. From here to made() nobody ends the holder."""
    if (lock := _inside_lock()) is not None:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if not _started(int(os.environ[INSIDE])):
            raise BeowireError("The last lab was removed meanwhile.", "Run it again.")
    if os.geteuid() == 0 or os.environ.get("BEOWIRE_LAB_MODE") or not namespaces.refusal():
        return
    try:
        lock = _open_lock()
        pid = _share(lock)
    except BeowireError as error:
        note(str(error))
        return
    _become(pid, lock, arguments)


def _share(lock: int) -> int:
    """The holder, which is started if there is none, and its lock shared."""
    while True:
        fcntl.flock(lock, fcntl.LOCK_EX)
        pid = holder() or _start()
        fcntl.flock(lock, fcntl.LOCK_SH)  # somebody may have it in between
        if holder() == pid:
            return pid


def made() -> None:
    """The lab that begin() was called for is written down."""
    if (lock := _inside_lock()) is not None:
        fcntl.flock(lock, fcntl.LOCK_UN)


def _become(pid: int, lock: int, arguments: list[str]) -> NoReturn:
    nsenter = places.program("nsenter", "util-linux")
    os.set_inheritable(lock, True)
    os.environ[_LOCK] = str(lock)
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
    if not pid or lab.names() or (lock := _inside_lock()) is None:
        return
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not lab.names():
        namespaces.kill(lambda: [pid] if _started(pid) else [])
