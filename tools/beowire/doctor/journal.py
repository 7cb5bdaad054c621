# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The undo file: what was changed, from what to what, on disk before each change is made.

Lines of JSON: a head, then for each change one line before it (its setting, old and new value) and
one after it (what the kernel made of it). A crash leaves a last change that was or was not made:
undoing writes its old value in both cases. A torn last line is of a change not begun.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from beowire import places
from beowire.doctor.check import Change
from beowire.doctor.setting import Setting, from_json, synchronize_directory, to_json
from beowire.doctor.source import Recorded, Source
from beowire.errors import BeowireError

_FORMAT = 1
_OPEN = ".journal"
_UNDONE = ".undone"
_CONFIRMED = ".confirmed"


def directory() -> Path:
    """Where journals are kept: beside the run-time state if BEOWIRE_STATE names a place for that,
    else where root's outlive a reboot."""
    if os.geteuid() == 0 and not os.environ.get("BEOWIRE_STATE"):
        return Path("/var/lib/beowire/doctor")
    return places.state_dir() / "doctor"


def network_of(source: Source) -> str:
    """What the settings of a source belong to: the thread's network namespace, or the tree."""
    if isinstance(source, Recorded):
        return str(source.root.resolve())
    return str(Path("/proc/thread-self/ns/net").readlink())


def boot_of(source: Source) -> str:
    with contextlib.suppress(OSError):
        return source.text("/proc/sys/kernel/random/boot_id").strip()
    return ""


@dataclass(frozen=True)
class Entry:
    """A change that was begun."""

    setting: Setting
    old: str
    new: str
    became: str | None
    """What the setting read afterwards; None: the journal ends before."""


@dataclass(frozen=True)
class Past:
    """A journal read back."""

    path: Path
    what: str
    """The command that wrote it."""
    started: str
    boot: str
    network: str
    entries: tuple[Entry, ...]


class Journal:
    """A journal being written. Its one writer holds a lock on it until close(), or its death."""

    def __init__(self, source: Source, what: str) -> None:
        place = directory()
        try:
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            self.path, self._file = _create(place)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        except OSError as error:
            raise BeowireError(
                f"The undo file cannot be made in {place}: {error.strerror}. Nothing was changed.",
                "Run it as root, or let BEOWIRE_STATE name a place that can be written.",
                code=2,
            ) from error
        head = {
            "format": _FORMAT,
            "what": what,
            "started": time.strftime("%Y-%m-%d %H:%M:%S"),
            "boot": boot_of(source),
            "network": network_of(source),
        }
        self._append(head)
        synchronize_directory(place)

    def before(self, change: Change) -> None:
        """On disk when this returns: the change may be made."""
        self._append({"setting": to_json(change.setting), "old": change.old, "new": change.new})

    def after(self, became: str) -> None:
        """What the last setting reads now."""
        self._append({"became": became})

    def close(self) -> None:
        """Ends it. One without changes is removed."""
        if not read(self.path).entries:
            self.path.unlink()
        self._file.close()

    def _append(self, value: dict[str, Any]) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _create(place: Path) -> tuple[Path, IO[str]]:
    """A new file, whose name sorts after those of all earlier ones."""
    number = max((_number(each) for each in place.iterdir()), default=0) + 1
    while True:
        path = place / f"{number:06}{_OPEN}"
        try:
            return path, path.open("x")
        except FileExistsError:
            number += 1


def _number(path: Path) -> int:
    name = path.name.partition(".")[0]
    return int(name) if name.isdigit() else 0


def read(path: Path) -> Past:
    """The journal at this path."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise BeowireError(
            f"{path} cannot be read: {error.strerror}.", "Run it as root."
        ) from error
    values = []
    for line in lines[:-1]:  # what follows the last newline is torn
        try:
            values.append(json.loads(line))
        except ValueError:
            raise BeowireError(
                f"{path} is damaged: it has a line that is no JSON.",
                "Restore the values by hand from the lines that can be read.",
            ) from None
    head = values[0] if values else {}
    if head and head.get("format") != _FORMAT:
        raise BeowireError(
            f"{path} was written by another version (format {head.get('format')}).",
            "Undo it with that version of beowire.",
        )
    entries: list[Entry] = []
    for value in values[1:]:
        if "setting" in value:
            setting = from_json(value["setting"])
            entries.append(Entry(setting, value["old"], value["new"], None))
        elif entries:
            last = entries.pop()
            entries.append(Entry(last.setting, last.old, last.new, value["became"]))
    fields = {name: str(head.get(name, "")) for name in ("what", "started", "boot", "network")}
    return Past(path, entries=tuple(entries), **fields)


def pending() -> list[Past]:
    """Journals that were not undone, the latest first."""
    place = directory()
    if not place.is_dir():
        return []
    paths = (each for each in place.iterdir() if each.name.endswith(_OPEN))
    return [read(path) for path in sorted(paths, key=_number, reverse=True)]


@contextlib.contextmanager
def held(path: Path, *, wait: bool) -> Iterator[None]:
    """Keeps others from undoing a journal, after its writer has ended; without `wait` a writer at
    work is an error."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise BeowireError(
                f"{path} is being written: a fix is at work.", "Wait until it has ended."
            ) from None
        yield


def set_undone(path: Path) -> None:
    """The journal is history."""
    path.rename(path.with_suffix(_UNDONE))
    path.with_suffix(_CONFIRMED).unlink(missing_ok=True)
    synchronize_directory(path.parent)


def confirm(path: Path) -> bool:
    """What this journal changed may stay: its guard lets it. False if it was taken back already."""
    try:
        with held(path, wait=True):
            if not path.exists():
                return False
            path.with_suffix(_CONFIRMED).touch()
            return True
    except FileNotFoundError:
        return False


def is_confirmed(path: Path) -> bool:
    return path.with_suffix(_CONFIRMED).exists()
