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
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from beowire import places, private_dir, settings
from beowire.doctor.check import Change
from beowire.doctor.setting import (
    ConfigurationSetting,
    Setting,
    from_json,
    same,
    synchronize_directory,
    to_json,
)
from beowire.doctor.source import Recorded, Source
from beowire.errors import BeowireError

_FORMAT = 1
_OPEN = ".journal"
_UNDONE = ".undone"
_CONFIRMED = ".confirmed"
_LIVE = "net:"
"""How the name of a network namespace begins, and no tree's."""


def directory() -> Path:
    """Where journals are kept: beside the run-time state if BEOWIRE_STATE names a place for that,
    else where root's outlive a reboot."""
    if os.geteuid() == 0 and not settings.get("BEOWIRE_STATE"):
        return Path("/var/lib/beowire/doctor")
    return places.state_dir() / "doctor"


def network_of(source: Source) -> str:
    """What the settings of a source belong to: the thread's network namespace, or the tree."""
    if isinstance(source, Recorded):
        return str(source.root.resolve())
    return str(Path("/proc/thread-self/ns/net").readlink())


def is_of(past: "Past", source: Source) -> bool:
    """Whether what a journal changed is what the source has. The machine's files are those of its
    first network namespace, which may have another number after a reboot; files that lie elsewhere
    are the same in all."""
    here = network_of(source)
    if past.network == here or not past.entries:
        return True
    if not (past.network.startswith(_LIVE) and here.startswith(_LIVE)):
        return False
    first = Path("/proc/sys/net/core/netdev_budget").exists()
    settings = [each.setting for each in past.entries]
    return all(
        isinstance(each, ConfigurationSetting) and (first or not each.path.startswith("/etc/"))
        for each in settings
    )


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
    """What the setting read afterwards; None: it could not be read, or the journal ends before."""

    @property
    def refused(self) -> bool:
        """It is known that nothing was changed."""
        return self.became is not None and unchanged(self.old, self.new, self.became)


def unchanged(old: str, new: str, now: str) -> bool:
    """Whether a setting still has its old value, though it was to get another one."""
    return same(now, old) and not same(old, new)


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
            private_dir.make(place)
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
            return path, open(path, "x", opener=_private)
        except FileExistsError:
            number += 1


def _private(path: str, flags: int) -> int:
    """Opens a file that others may read but not write, whatever the umask."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _number(path: Path) -> int:
    name = path.name.partition(".")[0]
    return int(name) if name.isdigit() else 0


def read(path: Path) -> Past:
    """The journal at this path. Undoing it writes what stands there, so it has to be the caller's
    own or root's, and nobody else may have been able to write it."""
    values = []
    for line in _content(path).split(b"\n")[:-1]:  # what follows the last newline is torn
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            raise _damaged(path, "it has a line that is no JSON") from None
    if not all(isinstance(value, dict) for value in values):
        raise _damaged(path, "it has a line that is no change")
    head = values[0] if values else {}
    if head and head.get("format") != _FORMAT:
        raise BeowireError(
            f"{path} was written by another version (format {head.get('format')}).",
            "Undo it with that version of beowire.",
        )
    try:
        entries = _entries(values[1:])
    except (KeyError, ValueError, AttributeError) as error:
        raise _damaged(path, str(error)) from None
    fields = {name: str(head.get(name, "")) for name in ("what", "started", "boot", "network")}
    return Past(path, entries=entries, **fields)


def _entries(values: list[dict[str, Any]]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for value in values:
        if "setting" in value:
            setting = from_json(value["setting"])
            entries.append(Entry(setting, str(value["old"]), str(value["new"]), None))
        elif entries:
            last = entries.pop()
            entries.append(Entry(last.setting, last.old, last.new, str(value["became"])))
    return tuple(entries)


def _damaged(path: Path, why: str) -> BeowireError:
    return BeowireError(
        f"{path} is damaged: {why}.",
        "Put its values back by hand from the lines that can be read, then remove it.",
    )


def _content(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            _check_trusted(path, os.fstat(file.fileno()), stat.S_ISREG)
            _check_trusted(path.parent, path.parent.stat(), stat.S_ISDIR)
            return file.read()
    except OSError as error:
        raise BeowireError(
            f"{path} cannot be read: {error.strerror}.", "Run it as root."
        ) from error


def _check_trusted(path: Path, status: os.stat_result, right_kind: Callable[[int], bool]) -> None:
    others = stat.S_IWGRP | stat.S_IWOTH
    if not right_kind(status.st_mode):
        why = "is not what it should be"
    elif status.st_uid not in (0, os.geteuid()):
        why = f"belongs to user {status.st_uid}"
    elif status.st_mode & others:
        why = "can be written by others"
    else:
        return
    raise BeowireError(
        f"{path} {why}: what undo files there say is not trusted.",
        "See what it says; if it is right, let it belong to root alone (chown, chmod go-w).",
    )


def pending() -> list[Past]:
    """Journals that were not undone and can be read, the latest first."""
    return [each for each in _pending() if isinstance(each, Past)]


def unreadable() -> list[BeowireError]:
    """Why those that cannot be read, or are not trusted, cannot be undone."""
    return [each for each in _pending() if isinstance(each, BeowireError)]


def _pending() -> Iterator[Past | BeowireError]:
    place = directory()
    if not place.is_dir():
        return
    paths = (each for each in place.iterdir() if each.name.endswith(_OPEN))
    for path in sorted(paths, key=_number, reverse=True):
        try:
            yield read(path)
        except BeowireError as error:
            yield error


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
