# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests: virtual machines that run one command under a stock kernel, then are gone.

A guest sees the host's files (the checkout and its build included) through 9p; what it writes stays
in its memory, but for the directories shared with it. A complaint of its kernel fails the run, even
if the command was content.
"""

import functools
import re
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm import accel, debug, initrd, kernels, nodes, races, wire
from beowire.vm.guest import BROKEN, Guest, Seat

__all__ = ["BROKEN", "Guest", "Outcome", "complaints", "find_kernel", "run", "run_all"]

_COMMAND_LINE = (
    "console=ttyS0 8250.nr_uarts=2 loglevel=5 panic=-1 oops=panic panic_on_warn=1 nokaslr "
    "tsc=reliable no_timer_check cryptomgr.notests mitigations=off audit=0 "
    # An emulated processor may stand still for long on a busy host.
    "rcupdate.rcu_cpu_stall_timeout=120 watchdog_thresh=60"
)
# Under emulation on a busy host a boot stands still now and then, before the command.
_SET_UP = "beowire guest: set up"
_SET_UP_S = 90.0
_SET_UP_COUNTED_S = 240.0  # instructions that are counted take longer
# Without five-level paging: an interrupt while the kernel identifies its processor finds it taken
# for off, and KASAN then takes all memory for wild.
_PROCESSOR = "max,-la57"
# An instruction that copies a whole buffer is emulated piece by piece, slower than a loop. So no
# kernel is to prefer it, neither those for bytes nor (112 is X86_FEATURE_REP_GOOD) those for words.
_NO_BYTE_COPIES = "-erms,-fsrm"
_NO_WORD_COPIES = "clearcpuid=112"
_TICKS_IN_A_SECOND = 250  # CONFIG_HZ of the kernel that looks for races
# Lockdep, atomic-sleep and leak reports do not panic, so the console is read as well.
_COMPLAINT = re.compile(
    r"^.*(?:\bBUG: |\bWARNING: |\bOops: |Kernel panic|KASAN: |KCSAN: |unreferenced object|"
    r"kmemleak: \d+ new|general protection fault|INFO: task .* blocked|rcu.*detected stall|"
    r"soft lockup|possible .*deadlock|suspicious RCU usage|refcount_t: |\bBUG \S+ \(|UBSAN: |"
    r"ODEBUG: |unregister_netdevice: waiting|DEBUG_LOCKS_WARN_ON).*$",
    re.MULTILINE,
)


# What guests tell of what takes too long: tools/guest/tell.c.
_LATE = re.compile(
    r"^beowire guest: late: (.*?)^(?:beowire guest: told$|\Z)", re.MULTILINE | re.DOTALL
)
_LATE_LINES = 250


@dataclass(frozen=True)
class Outcome:
    """How a guest ended: the command's exit status, and what its kernel complained of."""

    exit_status: int
    complaints: list[str]
    console: str


def complaints(console: str) -> list[str]:
    """The lines in which a kernel reports something that must not happen, and what did not end,
    with all that the guest told of it. Of data races those that a module has a part in."""
    found: list[str] = []
    if "BUG: KCSAN: " in console:
        found, console = races.split(console)
    found += [each.group().strip() for each in _COMPLAINT.finditer(console)]
    late = ["\n".join(each[1].splitlines()[:_LATE_LINES]) for each in _LATE.finditer(console)]
    return found + late


def find_kernel(name: str) -> kernels.Kernel:
    """The kernel that --kernel calls so; it is made ready if need be."""
    return debug.find(name) if name in debug.NAMES else kernels.find(name)


def run(guest: Guest, output: int | None = None) -> Outcome:
    """Boots a guest, runs its command and waits. The command's output goes to `output`."""
    return run_all([guest], [output])[0]


def run_all(guests: list[Guest], outputs: Sequence[int | None]) -> list[Outcome]:
    """Runs guests side by side and waits for all of them. The output of each goes to its own."""
    qemu = places.program("qemu-system-x86_64", "qemu-system-x86")
    init = places.product("tools/guest/guest-init")
    started = []
    with ExitStack() as ends:
        for guest, output in zip(guests, outputs, strict=True):
            work = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="beowire-vm-")))
            kernel = find_kernel(guest.kernel)
            (work / "initrd").write_bytes(initrd.contents(guest, kernel, init))
            command = [qemu, *_machine(guest, kernel, work / "initrd", work / "console")]
            machine = _Machine(guest, command, output, work / "console")
            ends.callback(machine.kill)
            started.append(machine)
        _await(started)
        return [_outcome(each.guest, each.status(), each.console) for each in started]


class _Machine:
    """A guest's QEMU. What it writes goes to `output`."""

    def __init__(self, guest: Guest, command: list[str], output: int | None, console: Path) -> None:
        self.guest = guest
        self.console = console
        self._command = command
        self._output = output
        self._patience_s = _SET_UP_COUNTED_S if guest.icount else _SET_UP_S
        # A debugger's guest waits for it; kernels that look for defects take long.
        self._again = not (guest.debugger or guest.kernel in debug.NAMES)
        self._start()

    def _start(self) -> None:
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=self._output
        )

    def runs_s(self) -> float:
        """Since when it was started, or started again."""
        return time.monotonic() - self._begun

    def status(self) -> int | None:
        """QEMU's exit status; None while it runs."""
        return self._process.poll()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def start_again_if_stuck(self) -> None:
        """Once, if its command has not begun by now."""
        if not self._again or self.runs_s() < self._patience_s:
            return
        self._again = False
        said = self.console.read_text(errors="replace") if self.console.exists() else ""
        if _SET_UP in said:
            return
        note(
            f"A guest stood still for {self._patience_s:g} s at its boot, and is started again.\n"
            f"  It said last: {said.strip()[-200:] or 'nothing'}"
        )
        self.kill()
        self._start()


def _await(started: list[_Machine]) -> None:
    """Waits for all, each no longer than its limit. Others on its wire are told of one's end."""
    running = list(started)
    while running:
        time.sleep(0.02)
        for each in list(running):
            if each.status() is None and each.runs_s() <= each.guest.limit_s:
                each.start_again_if_stuck()
                continue
            running.remove(each)
            seat = each.guest.seat
            if seat:
                (seat.meet / f"ended.{seat.number}").touch()


def _outcome(guest: Guest, code: int | None, console: Path) -> Outcome:
    """`code` is None for one that did not end."""
    text = console.read_text(errors="replace") if console.exists() else ""
    found = complaints(text)
    if code is None:
        found.append(f"the guest did not end within {guest.limit_s:g} s")
    # isa-debug-exit makes QEMU end with twice the value plus one; an even number is QEMU's own end.
    if code is not None and code > 0 and code % 2 == 1:
        return Outcome(code // 2, found, text)
    if not found:
        found.append("the guest ended before its command did")
    return Outcome(BROKEN, found, text)


@functools.cache
def _tsc_rate_khz() -> int:
    """How fast a guest's clock counts whose processor is emulated: as fast as the host's."""
    command = [places.product("tools/guest/tsc-rate")]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def _watching() -> str:
    """How emulated processors watch for races. A delay only has to be long enough for the others
    to begin; what it waits for is measured wrongly by all but the first of those that share a
    thread, so that they would not wait at all."""
    lpj = _tsc_rate_khz() * 1000 // _TICKS_IN_A_SECOND
    return f"lpj={lpj} kcsan.skip_watch=251 kcsan.udelay_task=100 kcsan.udelay_interrupt=20"


def _machine(guest: Guest, kernel: kernels.Kernel, initrd: Path, console: Path) -> list[str]:
    accelerated = not guest.icount and accel.works(kernel)
    boot = guest.boot
    if not (guest.icount or accelerated):
        boot = f"tsc_early_khz={_tsc_rate_khz()} {_NO_WORD_COPIES} {boot}"
    if guest.kernel == debug.RACES:  # the kernel has races of its own
        boot = f"panic_on_warn=0 {'' if accelerated else _watching()} {boot}"
    arguments = [
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35", *_processors(guest, accelerated)),
        *("-m", str(guest.memory_mb), *nodes.arguments(guest)),
        *("-kernel", str(kernel.image), "-initrd", str(initrd)),
        *("-append", f"{_COMMAND_LINE} {boot}"),
        *("-serial", f"file:{console}", "-chardev", "stdio,id=out,signal=off"),
        *("-device", "isa-serial,chardev=out"),
        *("-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        *("-object", "rng-random,id=random,filename=/dev/urandom"),
        *("-device", "virtio-rng-pci,rng=random"),
    ]
    if not guest.bare:
        arguments += _share("root", Path("/"), ",readonly=on")
    for number, directory in enumerate(guest.written()):
        arguments += _share(f"share{number}", directory, "")
    if guest.debugger:
        arguments += ["-gdb", f"unix:path={guest.debugger},server=on,wait=off", "-S"]
    return arguments + (_interface(guest.seat) if guest.seat else [])


def _interface(seat: Seat) -> list[str]:
    own = wire.guest_end(seat.wire, seat.number)
    other = wire.wire_end(seat.wire, seat.number)
    ends = f"local.type=unix,local.path={own},remote.type=unix,remote.path={other}"
    more = f",host_mtu={seat.mtu_bytes}" if seat.nic.startswith("virtio") else ""
    if seat.nic_options:
        more += f",{seat.nic_options}"
    bridge, behind = nodes.bridge(seat)
    more += behind
    return [
        *bridge,
        *("-netdev", f"dgram,id=wire,{ends}"),
        *("-device", f"{seat.nic},netdev=wire,mac=52:54:00:00:00:{seat.number:02x}{more}"),
    ]


def _processors(guest: Guest, accelerated: bool) -> list[str]:
    if accelerated:
        return ["-accel", "kvm", "-cpu", _PROCESSOR, "-smp", nodes.processors(guest)]
    if not guest.icount:
        processor = f"{_PROCESSOR},{_NO_BYTE_COPIES}"
        # A processor that waits in a loop gives its thread to the next one, if all share one: who
        # watches for a race lets the others run meanwhile, however busy the host is.
        how = "single" if guest.kernel == debug.RACES else "multi"
        return ["-accel", f"tcg,thread={how}", "-cpu", processor, "-smp", nodes.processors(guest)]
    if guest.cpus != 1:
        raise BeowireError("Instructions are counted on one processor only.", "Add --cpus 1.")
    # No instruction that is random; time is the count alone.
    processor = f"max,{_NO_BYTE_COPIES},-rdrand,-rdseed"
    return [
        *("-accel", "tcg,thread=single", "-cpu", processor, "-smp", "1"),
        *("-icount", "shift=0,sleep=off", "-rtc", "base=2024-01-01,clock=vm", "-seed", "1"),
    ]


def _share(tag: str, directory: Path, options: str) -> list[str]:
    where = f"local,id={tag},path={directory},security_model=none,multidevs=remap{options}"
    return ["-fsdev", where, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
