# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line that runs a program with the preload library of adapters/replicate, and which
programs it can serve."""

import os
import shutil
import stat
import struct
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError

LIBRARY = "adapters/replicate/libbeowire-replicate.so"
PAGES = ("auto", "small", "huge")
_PT_INTERP = 3
_PROGRAM_HEADERS_MAX = 128


def line(program: list[str], pages: str = "auto", **variables: str) -> list[str]:
    """The program with the library, before others that are loaded already: neither a shell nor
    env(1) before it has the variables."""
    library = str(places.product(LIBRARY))
    others = [each for each in os.environ.get("LD_PRELOAD", "").split(":") if each]
    loaded = ":".join([library, *(each for each in others if each != library)])
    told = {"LD_PRELOAD": loaded, "BEOWIRE_REPLICATE_PAGES": pages, **variables}
    return ["env", *(f"{name}={value}" for name, value in told.items()), *program]


def check(name: str) -> None:
    """Fails if the library would not be loaded into that program, or must not be."""
    found = shutil.which(name)
    if found is None:
        raise BeowireError(f"{name}: not found, or not executable.", code=127)
    status = Path(found).stat()
    if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
        raise BeowireError(
            f"{found} runs with the rights of its owner or group.",
            "Such programs load no library that their caller names.",
        )
    if interpreter(Path(found)) == "":
        raise BeowireError(
            f"{found} is linked statically.", "Only what is linked dynamically can be copied."
        )


def interpreter(file: Path) -> str | None:
    """The dynamic loader that an ELF file names, "" if it names none; None: it is no ELF file of
    64 bits whose headers can be read (System V ABI, chapters 4 and 5)."""
    try:
        with file.open("rb") as opened:
            head = opened.read(64)
            if len(head) < 64 or head[:5] != b"\x7fELF\x02":
                return None
            order = "<" if head[5] == 1 else ">"
            (where,) = struct.unpack_from(f"{order}Q", head, 32)
            size, count = struct.unpack_from(f"{order}HH", head, 54)
            if size != 56 or not 0 < count <= _PROGRAM_HEADERS_MAX:
                return None
            opened.seek(where)
            table = opened.read(size * count)
            for at in range(0, len(table) - size + 1, size):
                (kind,) = struct.unpack_from(f"{order}I", table, at)
                if kind == _PT_INTERP:
                    offset, _, _, length = struct.unpack_from(f"{order}4Q", table, at + 8)
                    opened.seek(offset)
                    return opened.read(min(length, 4096)).rstrip(b"\0").decode(errors="replace")
    except (OSError, ValueError, OverflowError):  # offsets are anything
        return None
    return ""
