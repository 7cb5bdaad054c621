# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A machine to install packages on: the files of a root directory; what is written goes elsewhere.

Its own root is an overlay over that directory, in namespaces of mounts, network and processes of
their own. Over this machine's root the distribution's packages that ours need are there without
being fetched; this checkout is not: an empty directory stands in its place.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from beowire import places

_SETUP = """
set -e
mount -t tmpfs -o mode=755 beowire "$1"
mkdir "$1/root" "$1/written"
[ -z "$5" ] || mount --bind "$5" "$1/written"
mkdir -p "$1/written/upper" "$1/written/work"
over="upperdir=$1/written/upper,workdir=$1/written/work"
mount -t overlay -o "lowerdir=$4,$over" overlay "$1/root"
cd "$1/root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
for each in dev/shm run tmp; do mount -t tmpfs -o mode=1777 beowire "$each"; done
mkdir run/lock tmp/shared
mount --bind "$2" tmp/shared
[ "$4" != / ] || mount -t tmpfs -o mode=755 beowire "./$3"
[ -z "$6" ] || mount --bind "$6" var/cache/apt/archives
printf '#!/bin/sh\\nexit 101\\n' >usr/sbin/policy-rc.d
chmod 755 usr/sbin/policy-rc.d
ip link set lo up
echo ready
read -r line
"""
_WRITTEN = r"""
cd "$1" && find . ! -type d -printf '%P\n' | while read -r name; do
	if [ -L "$name" ]; then
		[ "$(readlink "$name")" = "$(readlink "$2/$name")" ] && continue
	elif [ -f "$name" ]; then
		cmp -s "$name" "$2/$name" && continue
	fi
	echo "$name"
done
"""
ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
    "BEOWIRE_CACHE": "/tmp/cache",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}


class Machine:
    """Executes commands as root on it."""

    def __init__(self, pid: int, root: Path, base: Path) -> None:
        self._pid = pid
        self._root = root
        self._base = base

    def entered(self, *, fetches: bool = False) -> list[str]:
        """What executes a command there."""
        words = ["nsenter", f"--target={self._pid}", "--mount", "--pid"]
        words += [] if fetches else ["--net"]
        return [*words, "chroot", str(self._root)]

    def run(
        self, command: str, *, fetches: bool = False, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """What a shell there does with this command line; one that fetches packages has the network
        of this machine."""
        return subprocess.run(
            [*self.entered(fetches=fetches), "/bin/sh", "-c", f"cd /root && {command}"],
            env=ENVIRONMENT | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def output(self, command: str, *, fetches: bool = False, **variables: str) -> str:
        """What it prints; it must succeed."""
        done = self.run(command, fetches=fetches, **variables)
        assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def written(self) -> list[str]:
        """All files and links that are not as in the directory: made, changed or removed."""
        words = ["nsenter", f"--target={self._pid}", "--mount", "sh", "-c", _WRITTEN, "sh"]
        words += [str(self._root.parent / "written" / "upper"), str(self._base)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return sorted(done.stdout.splitlines())

    def directories(self) -> list[str]:
        """All directories of packages' names."""
        found = self.output("find /etc /usr /var/lib /var/cache -xdev -type d -name '*beowire*'")
        return sorted(found.splitlines())


@contextlib.contextmanager
def started(
    directory: Path,
    base: Path = Path("/"),
    written: Path | None = None,
    archives: Path | None = None,
) -> Iterator[Machine]:
    """A machine on which /tmp/shared is the directory `shared` of this one. What it writes is kept
    in the directory `written`, or in memory; `archives` has the packages that apt fetched."""
    place = directory / "machine"
    shared = directory / "shared"
    for each in (place, shared):
        each.mkdir()
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", _SETUP]
    words += ["sh", str(place), str(shared), str(places.root()), str(base)]
    words += [str(each or "") for each in (written, archives)]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            said = process.stdout.readline()
            assert said == "ready\n", process.stderr.read()
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
            yield Machine(int(children.split()[0]), place / "root", base)
        finally:
            process.stdin.close()
            process.wait()


def share(directory: Path, file: Path) -> None:
    """Puts a file of this machine there."""
    (shutil.copytree if file.is_dir() else shutil.copy)(file, directory / "shared" / file.name)
