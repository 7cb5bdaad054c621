# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests: virtual machines that run one command under a stock kernel, then are gone.

A guest sees the host's files (the checkout and its build included) through 9p; what it writes stays
in its memory, but for the directories shared with it. A complaint of its kernel fails the run, even
if the command was content.
"""

import os
import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from beowire import places, vm_debug, vm_kernel, vm_module
from beowire.errors import BeowireError

BROKEN = 125  # exit status of a guest that did not get as far as the command, or had to be ended
_MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"]
COMMAND_LINE = (
    "console=ttyS0 8250.nr_uarts=2 loglevel=5 panic=-1 oops=panic panic_on_warn=1 nokaslr "
    "tsc=reliable no_timer_check cryptomgr.notests mitigations=off audit=0"
)
# Lockdep, atomic-sleep and leak reports do not panic, so the console is read as well.
_COMPLAINT = re.compile(
    r"^.*(?:\bBUG: |\bWARNING: |\bOops: |Kernel panic|KASAN: |KCSAN: |unreferenced object|"
    r"kmemleak: \d+ new|general protection fault|INFO: task .* blocked|rcu.*detected stall|"
    r"soft lockup|possible .*deadlock|suspicious RCU usage|refcount_t: ).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Guest:
    """What to run, and in what machine. `shares` are directories that the guest may write to.

    With `modules` the project's kernel modules are built and loaded before the command runs. With
    `icount` the guest's clock counts the instructions that its only processor executes, one for
    each nanosecond, so that a figure in nanoseconds is one in instructions and repeats.
    """

    command: list[str]
    kernel: str = ""
    cpus: int = 2
    memory_mb: int = 1024
    limit_s: float = 600
    shares: list[Path] = field(default_factory=list)
    modules: bool = False
    icount: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a guest ended: the command's exit status, and what its kernel complained of."""

    exit_status: int
    complaints: list[str]
    console: str


def complaints(console: str) -> list[str]:
    """The lines in which a kernel reports something that must not happen."""
    return [found.group().strip() for found in _COMPLAINT.finditer(console)]


def find_kernel(name: str) -> vm_kernel.Kernel:
    """The kernel that --kernel calls so; it is made ready if need be."""
    return vm_debug.find() if name == vm_debug.NAME else vm_kernel.find(name)


def run(guest: Guest, output: int | None = None) -> Outcome:
    """Boots a guest, runs its command and waits. The command's output goes to `output`."""
    qemu = places.program("qemu-system-x86_64", "qemu-system-x86")
    init = places.product("tools/guest/guest-init")
    kernel = find_kernel(guest.kernel)
    with tempfile.TemporaryDirectory(prefix="beowire-vm-") as name:
        work = Path(name)
        console = work / "console"
        (work / "initrd").write_bytes(_initial_files(guest, kernel, init))
        arguments = [qemu, *_machine(guest, kernel, work / "initrd", console)]
        with subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=output) as machine:
            try:
                code = machine.wait(guest.limit_s)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                machine.kill()
        text = console.read_text(errors="replace") if console.exists() else ""
    found = complaints(text)
    if code < 0:
        found.append(f"the guest did not end within {guest.limit_s:g} s")
    # isa-debug-exit makes QEMU end with twice the value plus one; an even number is QEMU's own end.
    ended = code > 0 and code % 2 == 1
    if not ended and not found:
        found.append("the guest ended before its command did")
    return Outcome(code // 2 if ended else BROKEN, found, text)


def _machine(guest: Guest, kernel: vm_kernel.Kernel, initrd: Path, console: Path) -> list[str]:
    arguments = [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", *processors(guest.icount, guest.cpus), "-m", str(guest.memory_mb)),
        *("-kernel", str(kernel.image), "-initrd", str(initrd), "-append", COMMAND_LINE),
        *("-serial", f"file:{console}", "-chardev", "stdio,id=out,signal=off"),
        *("-device", "isa-serial,chardev=out"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        *("-object", "rng-random,id=random,filename=/dev/urandom"),
        *("-device", "virtio-rng-pci,rng=random"),
    ]
    arguments += _share("root", Path("/"), ",readonly=on")
    for number, directory in enumerate(guest.shares):
        arguments += _share(f"share{number}", directory, "")
    return arguments


def processors(icount: bool, cpus: int) -> list[str]:
    """QEMU's arguments for the processors and their clock."""
    if not icount:
        return ["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(cpus)]
    if cpus != 1:
        raise BeowireError("Instructions are counted on one processor only.", "Add --cpus 1.")
    # No instruction that copies a whole buffer, none that is random; time is the count alone.
    return [
        *("-accel", "tcg,thread=single", "-cpu", "max,-erms,-fsrm,-rdrand,-rdseed", "-smp", "1"),
        *("-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm", "-seed", "1"),
    ]


def _share(tag: str, directory: Path, options: str) -> list[str]:
    where = f"local,id={tag},path={directory},security_model=none,multidevs=remap{options}"
    return ["-fsdev", where, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def _loading(kernel: vm_kernel.Kernel | None) -> list[str]:
    """Lines of the job that load the project's modules for this kernel, if there is one."""
    if kernel is None:
        return []
    modules = vm_module.build(kernel)
    files = [shlex.quote(str(file)) for file in modules.files]
    return [
        f"export BEOWIRE_MODULES={shlex.quote(shlex.join(str(file) for file in modules.files))}",
        *(f"modprobe {name} || exit {BROKEN}" for name in modules.stock),
        *(f"insmod {file} || exit {BROKEN}" for file in files),
    ]


def _job(guest: Guest, kernel: vm_kernel.Kernel) -> str:
    """The command as a script, in this directory and with this environment's search path."""
    words = shlex.join(guest.command)
    lines = [
        f"export PATH={shlex.quote(os.environ.get('PATH', ''))}:/usr/sbin:/sbin HOME=/root",
        f"export BEOWIRE_ROOT={shlex.quote(str(places.root()))}",
        f"export BEOWIRE_BUILD={shlex.quote(str(places.build_dir()))}",
        "ip link set lo up",
        *_loading(kernel if guest.modules else None),
        f"cd {shlex.quote(str(Path.cwd()))} || exit {BROKEN}",
        f"exec {words}",
    ]
    return "\n".join(lines) + "\n"


def _initial_files(guest: Guest, kernel: vm_kernel.Kernel, init: Path) -> bytes:
    """The initial file system: guest-init and what it reads."""
    archive = Archive()
    loaded = kernel.module_files(_MODULES)
    archive.add("init", init.read_bytes(), 0o755)
    names = [f"{number:02}-{file.name}" for number, file in enumerate(loaded)]
    for name, file in zip(names, loaded, strict=True):
        archive.add(name, vm_kernel.module_bytes(file))
    archive.add("modules", "".join(f"/{name}\n" for name in names).encode())
    archive.add("release", f"{kernel.release} {kernel.modules}\n".encode())
    shares = [f"share{number} {path}\n" for number, path in enumerate(guest.shares)]
    archive.add("shares", "".join(shares).encode())
    archive.add("job", _job(guest, kernel).encode())
    return archive.end()


class Archive:
    """A cpio archive of plain files ("newc"; Documentation/driver-api/early-userspace of Linux)."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._files = 0

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._files += 1
        self._entry(name, content, 0o100000 | mode)

    def end(self) -> bytes:
        self._entry("TRAILER!!!", b"", 0)
        return bytes(self._bytes)

    def _entry(self, name: str, content: bytes, mode: int) -> None:
        if any(ord(letter) > 127 for letter in name):
            raise BeowireError(f"{name}: only plain names go into an initial file system.")
        fields = [self._files, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0]
        self._bytes += b"070701" + "".join(f"{value:08x}" for value in fields).encode()
        self._bytes += name.encode() + b"\0"
        self._pad()
        self._bytes += content
        self._pad()

    def _pad(self) -> None:
        self._bytes += bytes(-len(self._bytes) % 4)
