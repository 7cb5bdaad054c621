# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A kernel that looks for defects in what runs on it, built from the distribution's kernel source.

It finds accesses outside of objects, sleeps and lock orders that may deadlock, and leaks; its
configuration is tools/guest/debug.config on top of the smallest one. Built once, in the user's
cache.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm.kernels import Kernel, home, one_at_a_time
from beowire.vm.packages import STOCK

NAME = "debug"
"""By what --kernel calls it."""

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


def find() -> Kernel:
    """The kernel, built first if it is not there or its configuration was changed."""
    fragment = places.source("tools/guest/debug.config")
    package = _source_package()
    tree = home() / f"{NAME}-{package.removeprefix('linux-source-')}"
    tree.mkdir(exist_ok=True)
    with one_at_a_time(tree):
        ready = tree / "ready"
        wanted = fragment.read_text()
        if not ready.exists() or ready.read_text() != wanted:
            _make(package, fragment, tree)
            ready.write_text(wanted)
    build = tree / "build"
    release = (build / "include" / "config" / "kernel.release").read_text().strip()
    image = build / "arch" / "x86" / "boot" / "bzImage"
    return Kernel(release, image, tree / "lib" / "modules" / release, tree, "", build)


def _source_package() -> str:
    """The package with the source of the distribution's kernel; one that was fetched will do."""
    if STOCK.has("linux-source"):
        return STOCK.needs("linux-source")[0]
    for ready in home().glob(f"{NAME}-*/ready"):
        return f"linux-source-{ready.parent.name.removeprefix(f'{NAME}-')}"
    raise BeowireError(
        "The package archive has no linux-source.", "Refresh the package lists: apt-get update."
    )


def _make(package: str, fragment: Path, tree: Path) -> None:
    for command, owner in _NEEDED:
        places.program(command, owner)
    if not Path("/usr/include/libelf.h").exists():
        raise BeowireError("libelf.h is not installed.", "Install it: apt-get install libelf-dev")
    source = tree / "source"
    if not source.exists():
        note(f"fetching {package} (it is unpacked, not installed)")
        _unpack(package, tree, source)
    note("building the kernel that looks for defects: once, 10 to 60 minutes, 2 GB in the cache")
    log = tree / "log"
    build = tree / "build"
    build.mkdir(exist_ok=True)
    make = ["make", "-s", "-C", str(source), f"O={build}", f"-j{os.cpu_count()}"]
    merge = ["scripts/kconfig/merge_config.sh", "-m", "-O", str(build), str(build / ".config")]
    with log.open("w") as output:
        for step in (
            [*make, "tinyconfig"],
            [*merge, str(fragment)],
            [*make, "olddefconfig"],
            [*make, "bzImage", "modules"],
            [*make, f"INSTALL_MOD_PATH={tree}", "modules_install"],
        ):
            _run(step, source, output.fileno(), log)
            if "olddefconfig" in step:
                _check(fragment, build / ".config")


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


def _check(fragment: Path, config: Path) -> None:
    """Kconfig leaves out silently what it does not know and what lacks something."""
    lines = set(config.read_text().splitlines())
    lost = []
    for line in fragment.read_text().splitlines():
        off = re.fullmatch(r"# (CONFIG_\w+) is not set", line)
        if off and any(each.startswith(f"{off[1]}=") for each in lines):
            lost.append(line)
        if line.startswith("CONFIG_") and line not in lines:
            lost.append(line)
    if lost:
        raise BeowireError(
            f"This kernel cannot have: {', '.join(lost)}", f"Leave them out of {fragment}."
        )
