# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Modules of the tests' own, built for a guest's kernel where the test programs look for them."""

import subprocess
from pathlib import Path

from beowire import places
from beowire.vm import module
from beowire.vm.kernels import Kernel, one_at_a_time

BOOT = "movablecore=256M"
"""What the test programs want of a guest's kernel: some memory is to be movable."""
SOURCE = Path(__file__).resolve().parent / "drivers"


def build(kernel: Kernel) -> None:
    """They are in tests/kernel/drivers/RELEASE of the build, up to date."""
    stage = places.build_dir() / "tests" / "kernel" / "drivers" / kernel.release
    stage.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(stage.parent):
        for file in SOURCE.iterdir():
            link = stage / file.name
            if not link.is_symlink() or link.readlink() != file:  # of a tree that has moved
                link.unlink(missing_ok=True)
                link.symlink_to(file)
        command = [places.program("make", "make"), "-s", "-C", str(module.headers(kernel))]
        command += [f"M={stage}", "KCFLAGS=-Werror", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
