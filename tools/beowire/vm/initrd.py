# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The initial file system of a guest: its first process and what that reads.

A bare guest has nothing else, so there all that the command needs is in it as well.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path, PurePosixPath

from beowire import places
from beowire.errors import BeowireError
from beowire.vm import coverage, kernels, module
from beowire.vm.guest import BROKEN, Guest, Seat

# The kinds of network interface and their drivers.
_NICS = {"virtio-net-pci": "virtio_net", "e1000e": "e1000e", "vmxnet3": "vmxnet3"}
_FOR_FILES = ["9pnet_virtio", "9p"]


def contents(guest: Guest, kernel: kernels.Kernel, init: Path) -> bytes:
    """The archive for this guest; `init` is guest-init."""
    archive = Archive()
    archive.add("init", init.read_bytes(), 0o755)
    counting = guest.coverage is not None
    own = module.build(kernel, counting) if guest.modules else module.Modules([], [])
    _add_modules(archive, guest, kernel, own)
    archive.add("release", f"{kernel.release} {kernel.modules}\n".encode())
    shares = [f"share{number} {path}\n" for number, path in enumerate(guest.written())]
    archive.add("shares", "".join(shares).encode())
    archive.add("job", _job(guest, own).encode())
    if limit_s := guest.own_limit_s():
        archive.add("limit", f"{limit_s}\n".encode())
    if guest.bare:
        archive.add("bare", b"")
        archive.add_directory(str(Path.cwd()).lstrip("/"))
        for file in [*_needed(guest), *own.files]:
            mode = stat.S_IMODE(file.stat().st_mode)
            archive.add(str(file).lstrip("/"), file.read_bytes(), mode)
    return archive.end()


def _add_modules(
    archive: "Archive", guest: Guest, kernel: kernels.Kernel, own: module.Modules
) -> None:
    """What guest-init loads, in this order: what the guest cannot be set up without, and in a bare
    guest, which has no modprobe, all the rest."""
    asked = _asked(guest, own)
    kernel.module_files(asked)  # what it does not have is told now, not in the guest
    names = ["virtio_pci"]
    if guest.written() or not guest.bare:
        names += _FOR_FILES
    names += asked if guest.bare else ["overlay"]
    files = [*kernel.module_files(names), *(own.files if guest.bare else [])]
    packed = [f"{number:02}-{file.name}" for number, file in enumerate(files)]
    for name, file in zip(packed, files, strict=True):
        archive.add(name, kernels.module_bytes(file))
    archive.add("modules", "".join(f"/{name}\n" for name in packed).encode())


def _asked(guest: Guest, own: module.Modules) -> list[str]:
    """Modules of the kernel's own that are loaded before the command runs."""
    nic = [_NICS[guest.seat.nic]] if guest.seat else []
    return [*nic, *guest.load, *own.stock]


def _job(guest: Guest, own: module.Modules) -> str:
    """The command as a script, in this directory and with this environment's search path."""
    words = shlex.join(guest.command)
    lines = [
        f"export PATH={shlex.quote(os.environ.get('PATH', ''))}:/usr/sbin:/sbin HOME=/root",
        f"export BEOWIRE_ROOT={shlex.quote(str(places.root()))}",
        f"export BEOWIRE_BUILD={shlex.quote(str(places.build_dir()))}",
        f"export BEOWIRE_MODULES={shlex.quote(shlex.join(str(file) for file in own.files))}",
        f"export BEOWIRE_LIMIT_S={guest.own_limit_s() or ''}",
        *([] if guest.bare else _loading(guest, own)),
        "ip link set lo up",
        *(_seating(guest.seat) if guest.seat else []),
        f"cd {shlex.quote(str(Path.cwd()))} || exit {BROKEN}",
        *([words, "status=$?"] if guest.coverage else [f"exec {words}"]),
    ]
    if guest.coverage:
        lines += [*coverage.script(guest.coverage), "exit $status"]
    return "\n".join(lines) + "\n"


def _loading(guest: Guest, own: module.Modules) -> list[str]:
    """Loaded in the guest itself, where modules find by modprobe what they ask for by alias."""
    stock = [f"modprobe {shlex.quote(name)}" for name in _asked(guest, own)]
    own_files = [f"insmod {shlex.quote(str(file))}" for file in own.files]
    return [f"{line} || exit {BROKEN}" for line in [*stock, *own_files]]


def _seating(seat: Seat) -> list[str]:
    """Lines of the job that bring a guest on a wire into the network."""
    return [
        f"hostname guest{seat.number}",
        f"export BEOWIRE_GUEST={seat.number} BEOWIRE_GUESTS={seat.guests}",
        f"export BEOWIRE_MEET={shlex.quote(str(seat.meet))}",
        f"export PATH=$PATH:{shlex.quote(str(places.source('tools/guest')))}",
        f"ip link set eth0 mtu {seat.mtu_bytes} || exit {BROKEN}",
        f"ip address add 10.0.0.{seat.number}/24 dev eth0 && ip link set eth0 up || exit {BROKEN}",
    ]


def _needed(guest: Guest) -> list[Path]:
    """What a bare guest is given: the command, what the job uses, the files named, and for each of
    them the libraries that it is linked to."""
    programs = [Path("/bin/sh"), Path(places.program("ip", "iproute2"))]
    if found := shutil.which(guest.command[0]):
        programs.append(Path(found).absolute())
    needed = []
    for file in [*programs, *(each.absolute() for each in guest.files)]:
        if not file.is_file():
            raise BeowireError(f"{file} is no file.", "Name files for a bare guest one by one.")
        needed += [file, *_libraries(file)]
    return needed


def _libraries(program: Path) -> list[Path]:
    done = subprocess.run(
        [places.program("ldd", "libc-bin"), str(program)],
        capture_output=True,
        text=True,
        check=False,  # it fails for what is not linked to any
    )
    return [Path(path) for path in re.findall(r"(/\S+) \(0x", done.stdout)]


class Archive:
    """A cpio archive of files ("newc"; Documentation/driver-api/early-userspace of Linux)."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._names: set[str] = set()

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        """Adds a file, and the directories that it lies in; a name that is there stays as it is."""
        if name not in self._names:
            self.add_directory(str(PurePosixPath(name).parent))
            self._names.add(name)
            self._entry(name, content, stat.S_IFREG | mode)

    def add_directory(self, name: str) -> None:
        if name not in (".", *self._names):
            self.add_directory(str(PurePosixPath(name).parent))
            self._names.add(name)
            self._entry(name, b"", stat.S_IFDIR | 0o755)

    def end(self) -> bytes:
        self._entry("TRAILER!!!", b"", 0)
        return bytes(self._bytes)

    def _entry(self, name: str, content: bytes, mode: int) -> None:
        if any(ord(letter) > 127 for letter in name):
            raise BeowireError(f"{name}: only plain names go into an initial file system.")
        fields = [len(self._names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        self._bytes += b"070701" + "".join(f"{value:08x}" for value in fields).encode()
        self._bytes += name.encode() + b"\0"
        self._pad()
        self._bytes += content
        self._pad()

    def _pad(self) -> None:
        self._bytes += bytes(-len(self._bytes) % 4)
