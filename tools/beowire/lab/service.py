# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes of beowired, one on each node of a lab: users without CAP_NET_RAW get raw frames there.

Each lives in its node's namespace and so dies with the lab. Its socket lies where every user can
reach it; programs find it by BEOWIRE_SERVICE. Its policy and what it says are in the lab's
directory.
"""

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

from beowire import places, signals
from beowire.errors import BeowireError
from beowire.lab import ebpf, emulator
from beowire.lab.lab import Lab

_READY_LIMIT_S = 20.0
_DEVICES_MAX = 8
_PLACE = Path("/run/beowire-lab")


def socket_path(lab: Lab, node: str) -> Path:
    """Where the service of a node listens."""
    return _directory(lab) / node / "beowired.sock"


def log_path(lab: Lab, node: str) -> Path:
    return lab.directory / f"{node}.beowired"


def _directory(lab: Lab) -> Path:
    return _PLACE / lab.name


def check_possible() -> None:
    """Fails where the kernel would not take the service's programs."""
    if not ebpf.permitted():
        raise BeowireError(
            "The service needs eBPF programs, which the kernel does not take from this process.",
            "Make the lab as root, on a host, or without --service.",
        )


def start(lab: Lab) -> None:
    """Starts a service on each node, and notes their processes in the lab."""
    for node in lab.node_names():
        signals.check_interrupted()
        lab.services[node] = _start(lab, node)


@signals.uninterrupted()
def _start(lab: Lab, node: str) -> int:
    path = socket_path(lab, node)
    for directory in (_PLACE, path.parent.parent, path.parent):
        directory.mkdir(mode=0o755, exist_ok=True)
        directory.chmod(0o755)
    policy = lab.directory / f"{node}.beowired.conf"
    interfaces = ", ".join(list(lab.addresses[node])[:_DEVICES_MAX])
    policy.write_text(f"users = *\ninterfaces = {interfaces}\nendpoints = 1024\nring-memory = 4G\n")
    command = [
        places.program("nsenter", "util-linux"),
        f"--net={lab.namespace_path(node)}",
        str(places.product("service/beowired")),
        f"--policy={policy}",
        f"--socket={path}",
    ]
    log = log_path(lab, node)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), flags, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE],
    )
    try:
        _await_ready(pid, node, log)
    except BaseException:
        emulator.kill(pid)
        raise
    return pid


def _await_ready(pid: int, node: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_LIMIT_S
    while True:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        text = log.read_text(errors="replace") if log.exists() else ""
        if "ready at" in text:
            return
        if ended or time.monotonic() > deadline:
            why = " ".join(text.split()) or "it said nothing"
            raise BeowireError(
                f"The service of {node} did not start: {why}",
                "The kernel needs veth, sch_ingress and cls_bpf (modprobe NAME).",
            )
        signals.check_interrupted()
        time.sleep(0.01)


def remove(lab: Lab) -> None:
    """Takes away what services that have been killed leave."""
    for pid in lab.services.values():
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
    shutil.rmtree(_directory(lab), ignore_errors=True)
    with contextlib.suppress(OSError):
        _PLACE.rmdir()
