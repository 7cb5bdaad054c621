# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowired, compiled in another way than the build's."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "service"


def compile_service(target: Path, flags: Sequence[str], instead: dict[str, Path]) -> str:
    """Compiles the service with these flags, and files in place of those of these names: what the
    compiler complains of, "" if nothing."""
    sources = [str(instead.get(each.name, each)) for each in sorted(ROOM.glob("*.c"))]
    words = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-w", "-fno-strict-aliasing", *flags]
    words += [f"-I{ROOM}", f"-I{ROOT / 'common'}", f"-I{ROOT / 'engine'}", '-DBS_VERSION="test"']
    done = subprocess.run(
        [*words, *sources, "-o", str(target), "-lpthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""
