# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The project's kernel modules, built for a guest's kernel.

They are built against the headers of exactly that kernel, which come from the package archive as
the kernel does; hosts/kernel/Makefile knows how, and does nothing when nothing has changed.
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
from beowire.vm.kernels import Kernel, archive_of, one_at_a_time
from beowire.vm.packages import Archive

_PARTS = re.compile(r"linux-(?:.+-)?(?:headers|kbuild)-")
# The compiler may be a later build than the kernel's own: the same ABI, and said to be harmless.
_WARNING = re.compile(r"^.*\bwarning: (?!the compiler differs).*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Modules:
    """Built modules, in the order of loading, and the stock modules that they need first."""

    files: list[Path]
    stock: list[str]


def build(kernel: Kernel, counting: bool = False) -> Modules:
    """The modules for this kernel, up to date. A warning of the compiler is an error. They count
    which of their lines run if `counting`."""
    source = places.source("hosts/kernel")
    if not (source / "Kbuild").exists():
        raise BeowireError(f"There are no kernel modules in {source}.", "Use a whole checkout.")
    make = places.program("make", "make")
    stage = places.build_dir() / "kernel" / f"{kernel.release}{'-counting' if counting else ''}"
    stage.parent.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(stage.parent):
        command = [make, "-s", "-C", str(source), f"KDIR={headers(kernel)}", f"STAGE={stage}"]
        options = ["GCOV_PROFILE=y"] if counting else []
        done = subprocess.run(
            [*command, f"-j{os.cpu_count()}", "KCFLAGS=-Werror", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode or _WARNING.search(done.stdout):
            if not done.returncode:  # what was built with a warning would not be built again
                shutil.rmtree(stage)
            raise BeowireError(
                f"The kernel modules cannot be built for {kernel.release}:\n{done.stdout}",
                "Fix what is told above.",
            )
        listed = (stage / "modules.order").read_text().split()
    files = [stage / Path(each).with_suffix(".ko").name for each in listed]
    return Modules(files, _needs(files))


def _needs(files: list[Path]) -> list[str]:
    """Modules of the kernel's own that these need."""
    modinfo = places.program("modinfo", "kmod")
    own = {file.stem.replace("-", "_") for file in files}
    needed: list[str] = []
    for file in files:
        text = subprocess.run(
            [modinfo, "-F", "depends", str(file)], capture_output=True, text=True, check=True
        ).stdout
        needed += [name for name in text.replace(",", " ").split() if name not in own]
    return needed


def headers(kernel: Kernel) -> Path:
    """What modules for this kernel are built against; fetched if need be."""
    if kernel.build is not None:
        return kernel.build
    tree = kernel.tree / "headers"
    package = kernel.package.replace("-image-", "-headers-", 1)
    with one_at_a_time(kernel.tree):
        if not (tree / "ready").exists():
            note(f"fetching {package} (it is unpacked, not installed)")
            archive = archive_of(package)
            archive.unpack(_parts(archive, package), tree)
            _move(tree)
            (tree / "ready").touch()
    place = tree / "usr" / "src" / f"linux-headers-{kernel.release}"
    _check_compiler(place)
    return place


def _parts(archive: Archive, package: str) -> list[str]:
    """The package and those that hold the rest of its files."""
    parts = [package]
    for each in parts:  # grows underway
        parts += [need for need in archive.needs(each) if _PARTS.match(need) and need not in parts]
    return parts


def _move(tree: Path) -> None:
    """What names a file by the place where it would be installed names it in `tree`."""
    for directory in (tree / "usr" / "src").iterdir():
        makefile = directory / "Makefile"
        if makefile.exists() and not makefile.is_symlink():
            text = makefile.read_text()
            makefile.write_text(re.sub(r"(?<![\w/.])/usr/(src|lib)/", rf"{tree}/usr/\1/", text))
        for entry in directory.iterdir():
            if entry.is_symlink() and (target := entry.readlink()).is_absolute():
                entry.unlink()
                entry.symlink_to(tree / target.relative_to("/"))


def _check_compiler(place: Path) -> None:
    """The compiler that the headers name is here: Debian's name one by its version."""
    variables = place / ".kernelvariables"
    text = variables.read_text() if variables.exists() else ""
    if named := re.search(r"^CC\s*=.*?(gcc-\d+)", text, re.MULTILINE):
        places.program(named[1], named[1])
