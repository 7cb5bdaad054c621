# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Facts about installed files, which a command told once: it need not be asked again until one of
the files changes. They lie with what can be fetched again; where that place cannot be written, the
command is asked each time."""

import contextlib
import os
import zlib
from collections.abc import Iterable
from pathlib import Path

from beowire import places


def is_known(what: str, about: Iterable[Path]) -> bool:
    """Whether `keep` was called for this fact, and its files are still the same."""
    try:
        told = _told(what, about)
        return _file(told).read_text() == told
    except (OSError, RuntimeError, UnicodeDecodeError):  # no file, no home, no text
        return False


def keep(what: str, about: Iterable[Path]) -> None:
    """Remembers that this is so, as long as these files stay as they are."""
    with contextlib.suppress(OSError, RuntimeError):
        told = _told(what, about)
        file = _file(told)
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.{os.getpid()}")
        part.write_text(told)
        part.replace(file)


def _file(told: str) -> Path:
    what = told.partition("\n")[0]
    return places.cache_dir() / "facts" / f"{zlib.crc32(what.encode()):08x}"


def _told(what: str, about: Iterable[Path]) -> str:
    """The fact in its first line, its files and what a change would change in the others."""
    lines = [what.replace("\n", " ")]
    for path in about:
        at = path.stat()
        lines.append(f"{path} {at.st_dev} {at.st_ino} {at.st_size} {at.st_mtime_ns}")
    return "\n".join([*lines, ""])
