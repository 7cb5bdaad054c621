# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine on which systemd is the first process: the files of a root directory, in namespaces and
a control group of its own. What it writes is kept in memory.

The kernel's settings are not its own: all of /proc/sys but that of its network can be read only.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from beowire import places
from package_machine import Machine

PATIENCE_S = 400.0
SYSTEMD = "lib/systemd/systemd"
_SETUP = """
set -e
echo $$ >"$6/cgroup.procs"
exec unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child sh -ec "$7" sh "$@"
"""
_ROOT = """
mount -t tmpfs -o mode=755 beowire "$1"
mkdir "$1/root" "$1/written"
[ -z "$9" ] || mount --bind "$9" "$1/written"
mkdir -p "$1/written/upper" "$1/written/work"
over="upperdir=$1/written/upper,workdir=$1/written/work"
mount -t overlay -o "lowerdir=$4,$over" overlay "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount --bind proc/sys/net proc/sys/net
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 beowire dev
for each in null zero full random urandom tty; do
	: >"dev/$each"
	mount --bind "/dev/$each" "dev/$each"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
for each in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do
	ln -s "/proc/self/${each#*:}" "dev/${each%:*}"
done
for each in dev/shm tmp; do mount -t tmpfs -o mode=1777 beowire "$each"; done
mount -t tmpfs -o mode=755 beowire run
mkdir tmp/shared
mount --bind "$2" tmp/shared
[ "$4" != / ] || mount -t tmpfs -o mode=755 beowire "./$3"
[ -z "$5" ] || mount --bind "$5" var/cache/apt/archives
[ "$4" != / ] || rm -rf etc/systemd/system/*.wants etc/rc?.d usr/sbin/policy-rc.d
ip link set lo up
hostname machine
pivot_root . mnt
exec env -i container=beowire PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
	sh -c 'umount -l /mnt && exec /lib/systemd/systemd --log-target=journal --unit="$0"' "$8"
"""


class Booted(Machine):
    """Executes commands as root on it, beside systemd."""

    def entered(self, *, fetches: bool = False) -> list[str]:
        words = ["nsenter", f"--target={self._pid}", "--mount", "--pid", "--ipc", "--uts"]
        words += ["--cgroup", "--root", "--wd"]
        return [*words] if fetches else [*words, "--net"]

    def until(self, command: str, wanted: str) -> str:
        """Executes it again and again until this is what it prints, but for the last newline."""
        deadline = time.monotonic() + PATIENCE_S
        while (said := self.run(command).stdout.strip()) != wanted:
            assert time.monotonic() < deadline, f"{command}: {said!r}, not {wanted!r}"
            time.sleep(0.1)
        return said

    def property(self, name: str, unit: str = "beowired") -> str:
        """What systemd tells of the unit."""
        return self.output(f"systemctl show --value --property={name} {unit}").strip()


def lacks(base: Path = Path("/")) -> str:
    """What is missing for a machine of this root."""
    if os.geteuid() != 0:
        return "a machine with systemd needs root"
    if not _groups():
        return "there is no control group of version 2: mount -t cgroup2 cgroup2 DIR"
    if not (base / SYSTEMD).exists():
        return f"systemd is missing in {base}: apt-get install systemd"
    return ""


def _groups() -> Path | None:
    """Where control groups of version 2 are mounted."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(place)
    return None


@contextlib.contextmanager
def _group() -> Iterator[Path]:
    """A control group that is gone afterwards, with all below it."""
    base = _groups()
    assert base is not None
    group = base / f"beowire-test-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group
    finally:
        for each in sorted(group.rglob("*/"), reverse=True):
            _remove(each)
        _remove(group)


def _remove(group: Path) -> None:
    """Removes it once its last process, which was killed, has ended."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            group.rmdir()
        except OSError:
            assert time.monotonic() < deadline, (group / "cgroup.procs").read_text()
            time.sleep(0.05)
        else:
            return


@contextlib.contextmanager
def booted(
    directory: Path,
    base: Path = Path("/"),
    written: Path | None = None,
    archives: Path | None = None,
    target: str = "basic.target",
) -> Iterator[Booted]:
    """A machine that has started as far as this target; /tmp/shared is the directory `shared` of
    this one. What it writes is kept in the directory `written`, or in memory; `archives` has the
    packages that apt fetched. Over this machine's root no unit is enabled."""
    place, shared = directory / "machine", directory / "shared"
    for each in (place, shared):
        each.mkdir(exist_ok=True)
    with _group() as group:
        words = ["sh", "-c", _SETUP, "sh", str(place), str(shared), str(places.root())]
        words += [str(base), str(archives or ""), str(group), _ROOT, target, str(written or "")]
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            try:
                machine = Booted(_first(process), place / "root", base)
                _await(machine, process)
                yield machine
            finally:
                process.kill()
    shutil.rmtree(place)


def _first(process: "subprocess.Popen[bytes]") -> int:
    """The process that is systemd: before, its root is still that of this machine."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + PATIENCE_S
    while process.poll() is None and time.monotonic() < deadline:
        for number in children.read_text().split():
            if Path(f"/proc/{number}/comm").read_text() == "systemd\n":
                return int(number)
        time.sleep(0.02)
    process.kill()
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


def _await(machine: Booted, process: "subprocess.Popen[bytes]") -> None:
    """Until it has started."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        said = machine.run("test -d /run/systemd/system && systemctl is-system-running").stdout
        if said.strip() in ("running", "degraded"):
            return
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
