# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Kernels that look for defects in what runs on them, built from the distribution's kernel source.

One finds accesses outside of objects, sleeps and lock orders that may deadlock, and leaks; the
other one data races. Their configurations are tools/guest/*.config on top of the smallest one. Each
is built once, in the user's cache.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm.kernels import Kernel, home, one_at_a_time
from beowire.vm.packages import STOCK

NAME = "debug"
"""By what --kernel calls the one that finds most."""
RACES = "kcsan"
"""The one that finds data races."""


@dataclass(frozen=True)
class _Kind:
    """What tells such a kernel from others: fragments of its configuration, the later ones prevail,
    and variables for make."""

    fragments: tuple[str, ...]
    variables: tuple[str, ...] = ()


# Of the kernel itself only that is watched for races which handles sockets and their buffers; of
# locks and the like only that they order accesses has to be known.
_WATCHED = ("socket", "sock", "datagram", "skbuff")
_ORDERING = (
    *("spinlock", "spinlock_debug", "qspinlock", "mutex", "rwsem", "percpu-rwsem", "semaphore"),
    *("tree", "srcutree", "softirq", "timer", "hrtimer", "workqueue", "refcount"),
)
_KINDS = {
    NAME: _Kind(("tools/guest/debug.config",)),
    RACES: _Kind(
        ("tools/guest/debug.config", "tools/guest/kcsan.config"),
        (
            "KCSAN_SANITIZE=n",
            *(f"KCSAN_SANITIZE_{each}.o=y" for each in _WATCHED),
            *(f"KCSAN_INSTRUMENT_BARRIERS_{each}.o=y" for each in _ORDERING),
        ),
    ),
}
NAMES = tuple(_KINDS)

# A command that building a kernel needs, or one of its files, and the package that has it.
_NEEDED = (
    ("gcc", "gcc"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
)


def find(name: str = NAME) -> Kernel:
    """The kernel, built first if it is not there or its configuration was changed."""
    kind = _KINDS[name]
    fragments = [places.source(each) for each in kind.fragments]
    package = _source_package()
    tree = home() / f"{name}-{package.removeprefix('linux-source-')}"
    tree.mkdir(exist_ok=True)
    with one_at_a_time(tree):
        ready = tree / "ready"
        wanted = "".join([*(each.read_text() for each in fragments), *kind.variables])
        if not ready.exists() or ready.read_text() != wanted:
            _make(_source(package), fragments, kind.variables, tree)
            ready.write_text(wanted)
    build = tree / "build"
    release = (build / "include" / "config" / "kernel.release").read_text().strip()
    image = build / "arch" / "x86" / "boot" / "bzImage"
    return Kernel(release, image, tree / "lib" / "modules" / release, tree, "", build)


def _source_package() -> str:
    """The package with the source of the distribution's kernel; one that was fetched will do."""
    if STOCK.has("linux-source"):
        return STOCK.needs("linux-source")[0]
    for source in home().glob(f"{NAME}-*/source"):
        return f"linux-source-{source.parent.name.removeprefix(f'{NAME}-')}"
    raise BeowireError(
        "The package archive has no linux-source.", "Refresh the package lists: apt-get update."
    )


def _source(package: str) -> Path:
    """The kernel's source, which all such kernels share; it is fetched if need be."""
    tree = home() / f"{NAME}-{package.removeprefix('linux-source-')}"
    tree.mkdir(exist_ok=True)
    source = tree / "source"
    unpacking = tree / "unpacking"
    unpacking.mkdir(exist_ok=True)
    with one_at_a_time(unpacking):
        if not source.exists():
            note(f"fetching {package} (it is unpacked, not installed)")
            _unpack(package, tree, source)
    return source


def _make(source: Path, fragments: list[Path], variables: tuple[str, ...], tree: Path) -> None:
    for command, owner in _NEEDED:
        places.program(command, owner)
    if not Path("/usr/include/libelf.h").exists():
        raise BeowireError("libelf.h is not installed.", "Install it: apt-get install libelf-dev")
    note("building a kernel that looks for defects: once, 10 to 60 minutes, 2 GB in the cache")
    log = tree / "log"
    build = tree / "build"
    build.mkdir(exist_ok=True)
    make = ["make", "-s", "-C", str(source), f"O={build}", f"-j{os.cpu_count()}", *variables]
    merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", str(build), str(build / ".config")]
    with log.open("w") as output:
        for step in (
            [*make, "tinyconfig"],
            [*merge, *map(str, fragments)],
            [*make, "olddefconfig"],
            [*make, "bzImage", "modules"],
            [*make, f"INSTALL_MOD_PATH={tree}", "modules_install"],
        ):
            _run(step, source, output.fileno(), log)
            if "olddefconfig" in step:
                _check(fragments, build / ".config")


def _unpack(package: str, tree: Path, source: Path) -> None:
    packed = tree / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    STOCK.unpack([package], packed)
    archive = next(packed.rglob("linux-source-*.tar.*"))
    subprocess.run(["tar", "-xf", archive, "-C", packed], check=True)
    top = next(file.parent for file in packed.glob("*/Kbuild"))
    top.rename(source)
    shutil.rmtree(packed)


def _run(step: list[str], source: Path, output: int, log: Path) -> None:
    done = subprocess.run(
        step, cwd=source, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
    )
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise BeowireError(f"The kernel cannot be built:\n{tail}", f"All is told in {log}.")


def _check(fragments: list[Path], config: Path) -> None:
    """Kconfig leaves out silently what it does not know and what lacks something."""
    wanted: dict[str, str] = {}
    for fragment in fragments:
        for line in fragment.read_text().splitlines():
            if named := re.match(r"(?:# )?(CONFIG_\w+)(?: is not set$|=)", line):
                wanted[named[1]] = line
    found = config.read_text().splitlines()
    lost = []
    for option, line in wanted.items():
        off = line.startswith("#")
        if off and any(each.startswith(f"{option}=") for each in found):
            lost.append(line)
        if not off and line not in found:
            lost.append(line)
    if lost:
        raise BeowireError(
            f"This kernel cannot have: {', '.join(lost)}", f"Leave them out of {fragments[-1]}."
        )
