# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The kernel's own scripts, by which it checks what is merged into it: out of the distribution's
package of its source, which is unpacked for them but never installed."""

import shutil
import subprocess
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm.kernels import home, one_at_a_time
from beowire.vm.packages import STOCK


def find() -> Path:
    """The folder of scripts; fetched if need be."""
    tree = home() / "scripts"
    tree.mkdir(exist_ok=True)
    with one_at_a_time(tree):
        if not (tree / "ready").exists():
            _fetch(tree)
            (tree / "ready").touch()
    return tree / "scripts"


def _fetch(tree: Path) -> None:
    if not STOCK.has("linux-source"):
        raise BeowireError(
            "The package archive has no linux-source.", "Refresh the package lists: apt-get update."
        )
    package = STOCK.needs("linux-source")[0]
    note(f"fetching {package} for the kernel's checks (it is unpacked, not installed)")
    packed = tree / "packed"
    shutil.rmtree(packed, ignore_errors=True)
    shutil.rmtree(tree / "scripts", ignore_errors=True)
    STOCK.unpack([package], packed)
    archive = next(packed.rglob("linux-source-*.tar.*"))
    top = archive.name.partition(".tar")[0]
    tar = places.program("tar", "tar")
    subprocess.run([tar, "-xf", archive, "-C", packed, f"{top}/scripts"], check=True)
    (packed / top / "scripts").rename(tree / "scripts")
    shutil.rmtree(packed)
