# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processor time of nodes, limited by control groups so that nodes do not compete for it.

A node with `cpus = 0.25` is a control group whose processes together run for at most a quarter of
each period: cpu.max of version 2, cfs_quota_us of version 1 (Documentation/admin-guide/cgroup-v2
and scheduler/sched-bwc of the kernel). All groups of a lab lie in one of the lab's. In a lab whose
emulators run before programs (`realtime`) the nodes run before the rest of the machine, so that
their limit is also what they get.
"""

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from beowire.errors import BeowireError
from beowire.lab.lab import Lab

PERIOD_US = 20_000
"""Short beside what is measured, long beside the scheduler's tick."""

_WEIGHTS = {1: ("cpu.shares", 262144), 2: ("cpu.weight", 10000)}
"""By version, the file that holds a group's weight beside others and the largest that it takes."""

_MOUNTS = Path("/proc/self/mounts")
_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Controller:
    """The controller `cpu` of this machine."""

    version: int
    directory: Path


def find() -> Controller:
    """The controller, or an error that says why there is none."""
    seen = []
    for line in _MOUNTS.read_text().splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup" and "cpu" in options.split(","):
            return Controller(1, Path(place))
        if kind == "cgroup2":
            available = (Path(place) / "cgroup.controllers").read_text().split()
            if "cpu" in available:
                return Controller(2, Path(place))
            seen.append(f"{place} (version 2) offers {' '.join(available) or 'nothing'}")
    why = "; ".join(seen) or "no control groups are mounted"
    raise BeowireError(
        f"The topology limits its nodes' processor time, but there is no cpu controller: {why}.",
        "Mount one (mount -t cgroup2 none /sys/fs/cgroup), or leave cpus out of the topology.",
    )


def lab_directory(controller: Controller, lab: str) -> Path:
    return controller.directory / f"beowire-{lab}"


def make(lab: Lab) -> None:
    """The control groups of all nodes that have a limit; notes them in the lab's description."""
    limited = {node.name: node.cpus for node in lab.topology.nodes if node.cpus}
    if not limited:
        return
    controller = find()
    top = lab_directory(controller, lab.name)
    lab.quotas = {node: str(top / node) for node in limited}
    lab.save()
    try:
        if controller.version == 2:
            _delegate(controller.directory)
        top.mkdir()
        if controller.version == 2:
            _delegate(top)
        if lab.topology.realtime:
            name, largest = _WEIGHTS[controller.version]
            (top / name).write_text(str(largest))
        for node, cpus in limited.items():
            directory = top / node
            directory.mkdir()
            _limit(controller, directory, round(cpus * PERIOD_US))
    except OSError as error:
        raise BeowireError(
            f"Processor time cannot be limited: {error.filename or top}: {error.strerror}.",
            "Run as root where control groups can be made (a container needs them writable), or "
            "leave cpus out of the topology.",
        ) from error


def _delegate(directory: Path) -> None:
    """Lets the groups in here have the controller (version 2)."""
    control = directory / "cgroup.subtree_control"
    if "cpu" not in control.read_text().split():
        control.write_text("+cpu")


def _limit(controller: Controller, directory: Path, quota_us: int) -> None:
    if controller.version == 2:
        (directory / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
    else:
        (directory / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (directory / "cpu.cfs_quota_us").write_text(str(quota_us))


def join_command(directory: str) -> str:
    """The line of shell by which a process joins the group. On a node /sys is one of its own,
    without the groups; there a process that enters another node, as MPI's launchers do, reaches
    them by the root of the first process."""
    here, there = (shlex.quote(f"{root}{directory}/cgroup.procs") for root in ("", "/proc/1/root"))
    return f"{{ echo $$ >{here}; }} 2>/dev/null || echo $$ >{there} || exit 1"


def view_command(directory: str) -> str:
    """The line of shell that mounts the groups where programs on the node look for their limit: one
    that knows it does not spin it away. A kernel that refuses leaves them without that."""
    place = shlex.quote(str(_MOUNT))
    if (Path(directory) / "cpu.max").exists():
        return f"mount -t cgroup2 none {place} 2>/dev/null"
    controllers = Path(directory).parent.parent.name
    below = shlex.quote(str(_MOUNT / "cpu"))
    return (
        f"{{ mount -t tmpfs none {place} && mkdir {below} && "
        f"mount -t cgroup -o {shlex.quote(controllers)} none {below}; }} 2>/dev/null"
    )


def told(lab: Lab) -> dict[str, dict[str, object]]:
    """The limit that the kernel holds for each node that has one."""
    result: dict[str, dict[str, object]] = {}
    for node, place in lab.quotas.items():
        directory = Path(place)
        if (directory / "cpu.max").exists():
            quota, period = (directory / "cpu.max").read_text().split()
            version = 2
        else:
            quota = (directory / "cpu.cfs_quota_us").read_text().strip()
            period = (directory / "cpu.cfs_period_us").read_text().strip()
            version = 1
        result[node] = {
            "cpus": int(quota) / int(period),
            "period_us": int(period),
            "cgroup_version": version,
        }
    return result


def processes(lab: Lab) -> list[int]:
    """What runs in the lab's groups. A process joins its group before it enters its node."""
    found: list[int] = []
    for place in lab.quotas.values():
        with contextlib.suppress(FileNotFoundError):
            found += map(int, (Path(place) / "cgroup.procs").read_text().split())
    return [pid for pid in found if pid]  # 0 stands for one that this process namespace lacks


def remove(lab: Lab) -> None:
    """Removes the groups of a lab, in which nothing runs any more. Absence is no error."""
    parents = {Path(place).parent for place in lab.quotas.values()}
    for place in [*map(Path, lab.quotas.values()), *parents]:
        with contextlib.suppress(FileNotFoundError):
            place.rmdir()
