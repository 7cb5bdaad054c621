# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the variables of beowire(7) are set to: by the environment, else by the user's file, else by
the system's. The library reads the same files in the same way (hosts/user/setting.c)."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SYSTEM = Path("/etc/beowire.conf")
FILE_MAX = 16384
"""Bytes."""
LINE_MAX = 1023
"""Bytes, without the line's end."""
PATH_MAX = 511
NAMES = (
    "BEOWIRE_CACHE", "BEOWIRE_CHECKSUM", "BEOWIRE_CLUSTER", "BEOWIRE_DEAD_TIMEOUT",
    "BEOWIRE_DOMAINS", "BEOWIRE_EAGER_MAX", "BEOWIRE_ENCRYPT", "BEOWIRE_ETHERTYPE",
    "BEOWIRE_FANOUT", "BEOWIRE_HELPER", "BEOWIRE_HUGE_PAGES", "BEOWIRE_INTERFACE",
    "BEOWIRE_INTERFACES", "BEOWIRE_KEY", "BEOWIRE_LINKS", "BEOWIRE_LOCAL_CMA", "BEOWIRE_LOG",
    "BEOWIRE_MEMORY", "BEOWIRE_MTU", "BEOWIRE_NODE", "BEOWIRE_RING", "BEOWIRE_SEND_COPIES",
    "BEOWIRE_SERVICE", "BEOWIRE_SOCKETS", "BEOWIRE_SOCKETS_AFTER", "BEOWIRE_SOCKETS_COMPARE",
    "BEOWIRE_SOCKETS_EXPLAIN", "BEOWIRE_SOCKETS_IO_URING", "BEOWIRE_SOCKETS_STATS",
    "BEOWIRE_SOCKETS_WITHIN", "BEOWIRE_STATE", "BEOWIRE_STATS", "BEOWIRE_STATUS",
    "BEOWIRE_UDP_ADDRESS", "BEOWIRE_UDP_OFFLOAD", "BEOWIRE_UDP_PORTS", "BEOWIRE_UNEXPECTED_EACH",
    "BEOWIRE_UNEXPECTED_MAX", "BEOWIRE_WAIT",
)  # fmt: skip
"""What a file may set."""
_TOLD = 8
_BLANKS = b" \t"
_SETTING = re.compile(rb"([A-Z0-9_]+)[ \t]*=[ \t]*(.*)", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True)
class Setting:
    """A value, and who has set it."""

    value: str
    path: Path | None = None
    """None: the environment."""
    line: int = 0


@dataclass
class Files:
    """What files of settings say."""

    settings: dict[str, Setting] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    def read(self, path: Path, own: bool, must: bool = False) -> None:
        """Takes a file, if it is there. `own`: it has to belong to the user, or to root."""
        try:
            number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            # In a directory that this user cannot enter there is nothing of theirs.
            if must or _is_there(path):
                self._trouble(path, f" cannot be opened: {error.strerror}")
            return
        try:
            if wrong := _unsafe(os.fstat(number), own):
                self._trouble(path, wrong)
                return
            text = _filled(number, FILE_MAX + 1)
        except OSError as error:
            self._trouble(path, f" cannot be read: {error.strerror}")
            return
        finally:
            os.close(number)
        if len(text) > FILE_MAX:
            self._trouble(path, f" has more than {FILE_MAX} bytes: it is ignored")
            return
        for name, setting in self._parse(text, path):
            held = self.settings.get(name)
            if held is None or held.path is path:
                self.settings[name] = setting

    def _parse(self, text: bytes, path: Path) -> Iterator[tuple[str, Setting]]:
        for number, whole in enumerate(text.split(b"\n"), 1):
            line = whole.strip(_BLANKS)
            if not line or line.startswith(b"#"):
                continue
            if len(whole) > LINE_MAX:
                wrong = f"the line is longer than {LINE_MAX} bytes"
            elif _CONTROL.search(line):
                wrong = "the line has a control character"
            elif not (found := _SETTING.fullmatch(line)):
                wrong = "this is not NAME = VALUE"
            elif (name := found[1].decode()) not in NAMES:
                wrong = f"there is no setting {name[:60]}"
            else:
                yield name, Setting(os.fsdecode(found[2]), path, number)
                continue
            self._trouble(path, f":{number}: {wrong}")

    def _trouble(self, path: Path, what: str) -> None:
        self.troubles.append(f"{str(path)[:PATH_MAX]}{what}")

    def told(self) -> list[str]:
        """The troubles, as many as somebody wants to read."""
        more = len(self.troubles) - _TOLD
        rest = [f"settings: {more} more lines like these"] if more > 0 else []
        return [*self.troubles[:_TOLD], *rest]


def _is_there(path: Path) -> bool:
    try:
        path.stat()
    except OSError:
        return False
    return True


def _filled(number: int, room: int) -> bytes:
    text = b""
    while len(text) < room and (more := os.read(number, room - len(text))):
        text += more
    return text


def _unsafe(found: os.stat_result, own: bool) -> str:
    """Why somebody else could have written it; empty: nobody could."""
    if not stat.S_ISREG(found.st_mode):
        return " is no regular file: it is ignored"
    if own and found.st_uid not in (os.geteuid(), 0):
        return f" belongs to user {found.st_uid}, not to this user or root: it is ignored"
    if found.st_mode & 0o022:
        return " can be written by others than its owner: it is ignored; fix: chmod go-w"
    return ""


def user_file() -> Path | None:
    """The user's, as the XDG Base Directory Specification has it."""
    base, inside = os.environ.get("XDG_CONFIG_HOME", ""), ""
    if not base.startswith("/"):
        base, inside = os.environ.get("HOME", ""), "/.config"
    path = f"{base}{inside}/beowire.conf"
    return Path(path) if base.startswith("/") and len(os.fsencode(path)) <= PATH_MAX else None


@cache
def of_files() -> Files:
    """What the files say that count here; BEOWIRE_CONFIG names another, or none (`off`)."""
    files = Files()
    if only := os.environ.get("BEOWIRE_CONFIG"):
        if only != "off":
            files.read(Path(only), own=True, must=True)
    else:
        if user := user_file():
            files.read(user, own=True)
        files.read(SYSTEM, own=False)
    if files.troubles:
        from beowire.terminal import note  # takes time to load

        for trouble in files.told():
            note(trouble)
    return files


def find(name: str) -> Setting | None:
    """A setting, with who has set it; its value may be empty, which is the default."""
    if name in os.environ:
        return Setting(os.environ[name])
    return of_files().settings.get(name)


def get(name: str) -> str:
    """Its value; empty: the default holds."""
    found = find(name)
    return found.value if found else ""
