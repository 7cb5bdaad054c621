# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""beowired, compiled in another way than the build's."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from beowire import places

ROOT = Path(__file__).resolve().parents[2]
ROOM = ROOT / "service"
OF_COMMON = ("claim.c", "discard.c", "key.c", "thread.c", "who.c")
"""What the service compiles of common/: claim_sources and key_sources of its meson.build."""


def compile_service(target: Path, flags: Sequence[str], instead: dict[str, Path]) -> str:
    """Compiles the service with these flags, and files in place of those of these names: what the
    compiler complains of, "" if nothing."""
    files = [*sorted(ROOM.glob("*.c")), *(ROOT / "common" / name for name in OF_COMMON)]
    sources = [str(instead.get(each.name, each)) for each in files]
    build = places.build_dir()
    names = ("common/libbeowire-common", "common/libbeowire-keyed", "engine/libbeowire-engine")
    shared = [build / f"{name}.a" for name in names]
    words = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-w", "-fno-strict-aliasing", *flags]
    words += [f"-I{ROOM}", f"-I{ROOT / 'common'}", f"-I{ROOT / 'engine'}", '-DBS_VERSION="test"']
    done = subprocess.run(
        [
            *words,
            *sources,
            "-o",
            str(target),
            *map(str, shared),
            "-lsodium",
            "-lpthread",
            "-Wl,-z,now",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def compile_actor(target: Path, changed: Path) -> str:
    """Compiles the actor of tests with a changed file of the user host: what the compiler and the
    linker complain of, "" if nothing."""
    build = places.build_dir()
    names = ("hosts/user/libbeowire-user", "engine/libbeowire-engine")
    names += ("common/libbeowire-common", "common/libbeowire-keyed")
    rooms = ("hosts/user", "common", "engine", "hosts/user/link/packet")
    # What the changed file defines is not looked for in the library any more.
    words = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-w", "-O1", "-fno-strict-aliasing", "-fno-lto"]
    words += [f"-I{ROOT / room}" for room in rooms]
    words += [str(ROOT / "tests/user/actor.c"), str(changed), "-Wl,--start-group"]
    words += [str(build / f"{name}.a") for name in names]
    done = subprocess.run(
        [*words, "-Wl,--end-group", "-lsodium", "-lpthread", "-o", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""
