# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether the host's hardware can run guests: tried once after each start of the host.

That /dev/kvm can be opened says little: inside a virtual machine it may be there and not work.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from beowire import places
from beowire.vm import initrd
from beowire.vm.guest import BROKEN
from beowire.vm.kernels import Kernel, home, one_at_a_time

_LIMIT_S = 10
DEVICE = Path("/dev/kvm")


def works(kernel: Kernel) -> bool:
    """Whether KVM runs a guest of this kernel here."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return False
    start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    verdicts = home() / "accelerated"
    with one_at_a_time(home()):
        known = verdicts.read_text().split() if verdicts.exists() else []
        if known[:1] != [start]:
            known = [start, "yes" if _try(kernel) else "no"]
            verdicts.write_text(" ".join(known))
    return known[1] == "yes"


def _try(kernel: Kernel) -> bool:
    """Starts a guest that has nothing but its first process, which then ends it as broken."""
    archive = initrd.Archive()
    archive.add("init", places.product("tools/guest/guest-init").read_bytes(), 0o755)
    with tempfile.TemporaryDirectory(prefix="beowire-vm-") as name:
        image = Path(name) / "initrd"
        image.write_bytes(archive.end())
        command = [
            places.program("qemu-system-x86_64", "qemu-system-x86"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
            *("-machine", "q35", "-accel", "kvm", "-cpu", "max", "-m", "512"),
            *("-kernel", str(kernel.image), "-initrd", str(image), "-append", "panic=-1"),
            *("-device", "isa-debug-exit,iobase=0xf4,iosize=4"),
        ]
        try:
            quiet = subprocess.DEVNULL
            done = subprocess.run(
                command, stdin=quiet, stdout=quiet, stderr=quiet, timeout=_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 2 * BROKEN + 1
