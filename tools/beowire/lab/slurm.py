# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slurm in a lab: munged and slurmd on each node, slurmctld on the first one.

They live in the namespaces of their nodes and so die with the lab. What they keep is in a file
system in memory at a place that every user can reach. There `local` is, for what runs on a node,
the node's own directory: each process that enters the node sees that.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path

from beowire import namespaces, places, signals
from beowire.errors import BeowireError
from beowire.lab import daemon, slurm_conf
from beowire.lab.lab import Lab

_KEY_BYTES = 128
_USERS_MIN = 65536
_LIMIT_S = 120.0
_ASKED_S = 60.0
_PAUSE_S = 0.01
_SIZE = "1g"
_PROGRAMS = {
    "munged": "munge",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "srun": "slurm-client",
    "sinfo": "slurm-client",
}
"""What is executed, and the package of Debian that has it."""
_SYSTEM = "/usr/sbin:/sbin:/usr/bin:/bin"
_LISTENS = "0A"


def directory(lab: Lab) -> Path:
    """Where its settings and all that it keeps are."""
    return lab.public_directory / "slurm"


def conf_path(lab: Lab) -> Path:
    return directory(lab) / "slurm.conf"


def view_command(lab: Lab, node: str) -> str:
    """The line of shell that shows a process on the node what is the node's own."""
    own, local = (shlex.quote(str(directory(lab) / name)) for name in (node, "local"))
    return f"mount --bind {own} {local} || exit 1"


def check_possible() -> None:
    """Fails where packages are missing, or this process cannot become other users."""
    if lacking := missing():
        raise BeowireError(
            f"Slurm is not installed: there is no {', '.join(lacking)}.",
            f"Install it: apt-get install {' '.join(sorted(set(lacking.values())))}",
        )
    if os.geteuid() != 0 or _users() < _USERS_MIN:
        raise BeowireError(
            "Slurm needs root: slurmd starts the steps of jobs as the users whose jobs they are.",
            "Run the command as root, or leave --slurm out.",
        )


def missing() -> dict[str, str]:
    """The programs that are not here, with the packages that have them."""
    path = f"{os.environ.get('PATH', '')}:{_SYSTEM}"
    return {name: each for name, each in _PROGRAMS.items() if shutil.which(name, path=path) is None}


def _users() -> int:
    """How many users this process can become: in a user namespace few."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    return sum(int(line.split()[2]) for line in lines)


def prepare(lab: Lab) -> None:
    """Makes the directory; the scripts that enter nodes need it."""
    lab.slurm = {node: {} for node in lab.node_names()}
    lab.save()
    top = directory(lab)
    lab.make_public(top)
    options = f"mode=0755,nosuid,nodev,size={_SIZE}"
    mount = [places.program("mount", "mount"), "-t", "tmpfs", "-o", options, "none", str(top)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BeowireError(
            f"Slurm's directory cannot be made: {done.stderr.strip()}",
            "Run as root, on a host, or leave --slurm out.",
        )
    (top / "local").mkdir()
    (top / "state").mkdir(mode=0o700)
    for node in lab.node_names():
        for name, mode in (("", 0o755), ("spool", 0o755), ("tmp", 0o1777)):
            (top / node / name).mkdir()
            (top / node / name).chmod(mode)
    key = top / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(_KEY_BYTES))
    cgroups = top / "cgroup.conf"
    conf_path(lab).write_text(slurm_conf.slurm_conf(lab, top))
    cgroups.write_text(slurm_conf.cgroup_conf(top))
    for each in (conf_path(lab), cgroups):
        each.chmod(0o644)


def start(lab: Lab) -> None:
    """Starts all of it, and returns once each node takes jobs. The processes are noted."""
    top = directory(lab)
    first = slurm_conf.controller(lab)
    munged = [f"--key-file={top}/munge.key", f"--socket={top}/local/munge.sock"]
    munged += [f"--{kind}-file={top}/local/munged.{kind}" for kind in ("pid", "seed", "log")]
    _start(lab, lab.node_names(), "munged", ["-F", *munged], "Created socket")
    controller = slurm_conf.CONTROLLER_PORT
    _start(lab, [first], "slurmctld", ["-D"], "Running as primary controller", controller)
    started = "slurmd started on"
    _start(lab, lab.node_names(), "slurmd", ["-D"], started, slurm_conf.NODE_PORT)
    _await_nodes(lab, first)


def log_path(lab: Lab, node: str, program: str) -> Path:
    return lab.directory / f"{node}.{program}"


def _start(
    lab: Lab, nodes: list[str], program: str, options: list[str], says: str, port: int = 0
) -> None:
    """Starts a program on nodes, on all before the first one is waited for."""
    words = [places.program(program, _PROGRAMS[program]), *options]
    for node in nodes:
        signals.check_interrupted()
        if port and port in listening(lab, node):
            raise BeowireError(
                f"Port {port} of {node} is taken: {program} cannot listen there.",
                f"Look who has it: ip netns exec {lab.namespace(node)} ss -ltnp. Nothing of the "
                "lab was left behind.",
            )
        enter = ["/bin/sh", str(lab.enter_path(node))]
        lab.slurm[node][program] = daemon.spawn([*enter, *words], log_path(lab, node, program))
    for node in nodes:
        daemon.await_ready(
            lab.slurm[node][program],
            log_path(lab, node, program),
            _LIMIT_S,
            lambda text: says in text,
            (f"{program} of {node}", f"Its settings were those of {conf_path(lab)}."),
        )


def listening(lab: Lab, node: str) -> set[int]:
    """The TCP ports of a node at which somebody listens."""

    def here() -> set[int]:
        found = set()
        for name in ("tcp", "tcp6"):
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/thread-self/net/{name}").read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == _LISTENS:
                        found.add(int(fields[1].rpartition(":")[2], 16))
        return found

    return namespaces.within(lab.namespace_path(node), here)


def _await_nodes(lab: Lab, first: str) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while set((states := node_states(lab)).values()) != {"idle"}:
        if time.monotonic() > deadline:
            told = ", ".join(f"{node} is {state}" for node, state in states.items())
            raise BeowireError(
                f"Slurm's nodes are not ready: {told or 'slurmctld does not answer'}.",
                f"slurmctld on {first} had {_LIMIT_S:g} s. Is the machine very busy?",
            )
        signals.check_interrupted()
        time.sleep(_PAUSE_S)


def node_states(lab: Lab) -> dict[str, str]:
    """What slurmctld says of each node (idle, mixed, allocated, down ...); empty if it does not
    answer."""
    command = [str(lab.enter_path(slurm_conf.controller(lab))), "sinfo", "-h", "-N", "-o", "%N %T"]
    try:
        done = subprocess.run(
            ["/bin/sh", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_ASKED_S,
        )
    except subprocess.TimeoutExpired:
        return {}
    return dict(words for line in done.stdout.splitlines() if len(words := line.split()) == 2)


def dead(lab: Lab) -> list[str]:
    """The processes of it that do not run any more, as PROGRAM of NODE."""
    return [
        f"{program} of {node}"
        for node, processes in lab.slurm.items()
        for program, pid in processes.items()
        if namespaces.network_of(pid) != namespaces.inode(lab.namespace_path(node))
    ]


def told(lab: Lab) -> dict[str, object] | None:
    """What `lab status` says of it; None: the lab has none."""
    if not lab.slurm:
        return None
    ended = dead(lab)
    controller = slurm_conf.controller(lab)
    answers = lab.ready and f"slurmctld of {controller}" not in ended
    return {
        "conf": str(conf_path(lab)),
        "controller": controller,
        "processes": lab.slurm,
        "dead": ended,
        "nodes": node_states(lab) if answers else {},
    }


def remove(lab: Lab) -> None:
    """Takes away what is left of it once its processes have been killed."""
    for processes in lab.slurm.values():
        for pid in processes.values():
            daemon.reap(pid)
    top = directory(lab)
    if top.is_mount():
        subprocess.run([places.program("umount", "mount"), "--lazy", str(top)], check=False)
