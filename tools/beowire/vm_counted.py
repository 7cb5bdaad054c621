# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests whose clock counts executed instructions: one a nanosecond, whatever the host does.

Such a guest holds one static program and modules, and nothing of the host, since an answer of the
host would come at a time of its own. So the same program gives the same output to the last bit.
"""

import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from beowire import places, vm, vm_initrd, vm_kernel
from beowire.errors import BeowireError

Watcher = Callable[[Path], None]
"""Follows a guest through the socket of its debugger, from before its first instruction on."""


@dataclass(frozen=True)
class Guest:
    """What to run in it: a static program with its words, after these modules of the kernel's own
    and these files. With `counted` unset the clock is the host's, and there may be more `cpus`."""

    program: Path
    words: list[str]
    stock: list[str] = field(default_factory=list)
    modules: list[Path] = field(default_factory=list)
    counted: bool = True
    cpus: int = 1
    memory_mb: int = 512
    limit_s: float = 600


def run(guest: Guest, kernel: vm_kernel.Kernel, watcher: Watcher | None = None) -> str:
    """What the program printed. It fails if the program does, or the guest's kernel complains."""
    qemu = places.program("qemu-system-x86_64", "qemu-system-x86")
    with tempfile.TemporaryDirectory(prefix="beowire-vm-") as name:
        work = Path(name)
        (work / "initrd").write_bytes(_initial_files(guest, kernel))
        arguments = [qemu, *_machine(guest, kernel, work)]
        if watcher is not None:
            arguments += ["-gdb", f"unix:path={work / 'debugger'},server=on,wait=off", "-S"]
        with subprocess.Popen(arguments, stdin=subprocess.DEVNULL) as machine:
            try:
                if watcher is not None:
                    watcher(work / "debugger")
                code = machine.wait(guest.limit_s)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                machine.kill()
        console, output = (_text(work / each) for each in ("console", "output"))
    _check(code, console, output, guest)
    return output


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def _check(code: int, console: str, output: str, guest: Guest) -> None:
    if code < 0:
        raise BeowireError(f"The guest did not end within {guest.limit_s:g} s.\n{output[-2000:]}")
    if found := vm.complaints(console):
        raise BeowireError("The guest's kernel complains:\n" + "\n".join(found))
    if code != 1:  # twice the program's status plus one
        message = output[max(0, output.rfind(f"{guest.program.name}: ")) :]
        told = message or "\n".join(console.splitlines()[-15:])
        raise BeowireError(f"The program in the guest failed:\n{told[-2000:]}")


def _machine(guest: Guest, kernel: vm_kernel.Kernel, work: Path) -> list[str]:
    return [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", *vm.processors(guest.counted, guest.cpus)),
        *("-m", str(guest.memory_mb)),
        *("-kernel", str(kernel.image), "-initrd", str(work / "initrd")),
        *("-append", vm.COMMAND_LINE, "-serial", f"file:{work / 'console'}"),
        *("-chardev", f"file,id=out,path={work / 'output'}", "-device", "isa-serial,chardev=out"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
    ]


def _initial_files(guest: Guest, kernel: vm_kernel.Kernel) -> bytes:
    archive = vm_initrd.Archive()
    archive.add("init", places.product("tools/guest/guest-init").read_bytes(), 0o755)
    files = [*kernel.module_files(guest.stock), *guest.modules]
    names = [f"{number:02}-{file.name}" for number, file in enumerate(files)]
    for name, file in zip(names, files, strict=True):
        archive.add(name, vm_kernel.module_bytes(file))
    archive.add("modules", "".join(f"/{name}\n" for name in names).encode())
    archive.add("program", guest.program.read_bytes(), 0o755)
    archive.add("words", "".join(f"{word}\n" for word in guest.words).encode())
    return archive.end()
