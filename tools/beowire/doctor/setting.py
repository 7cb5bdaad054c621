# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A value of the kernel's that can be read, written and put back, and the command that a person
would type for it."""

import contextlib
import errno
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire.doctor import known
from beowire.doctor.answers import SETTABLE
from beowire.doctor.source import Reader, Source

_SYSCTL = "/proc/sys/"
_CHOSEN = re.compile(r"\[([^\]]+)\]")


@dataclass(frozen=True)
class FileSetting:
    """A file in /proc/sys or /sys. `of_choices`: reading lists all values, the chosen in brackets,
    and only that one can be written back."""

    path: str
    of_choices: bool = False

    @property
    def known(self) -> bool:
        """The doctor changes this one."""
        return known.file(self.path)

    @property
    def of_machine(self) -> bool:
        """It holds for all network namespaces."""
        return known.of_machine(self.path)

    def read(self, source: Reader) -> str:
        text = source.text(self.path)
        if not self.of_choices:
            return text
        chosen = _CHOSEN.search(text)
        return chosen[1] if chosen else text.strip()

    def write(self, source: Source, value: str) -> None:
        source.write(self.path, value)

    def command(self, value: str) -> str:
        if self.path.startswith(_SYSCTL):
            return f"sysctl -w {self.sysctl}='{' '.join(value.split())}'"
        return f"echo {' '.join(value.split())} > {self.path}"

    @classmethod
    def of_sysctl(cls, name: str) -> "FileSetting":
        """The file that sysctl(8) gives this name."""
        parts = (part.replace("/", ".") for part in name.split("."))
        return cls(f"{_SYSCTL}{'/'.join(parts)}")

    @property
    def sysctl(self) -> str:
        """The name that sysctl(8) gives it; empty for other files. A dot in a part of the path
        (an interface such as eth0.5) becomes a slash there."""
        if not self.path.startswith(_SYSCTL):
            return ""
        parts = self.path.removeprefix(_SYSCTL).split("/")
        return ".".join(part.replace(".", "/") for part in parts)

    def __str__(self) -> str:
        return self.sysctl or self.path


_ETHTOOL_OPTIONS = {
    "features": "-K",
    "rings": "-G",
    "channels": "-L",
    "coalesce": "-C",
    "pause": "-A",
    "eee": "--set-eee",
    "linkmodes": "-s",
}
_SWITCHES = {"pause", "eee", "features", "linkmodes"}
_SWITCHES_OF_COALESCING = {"adaptive-rx", "adaptive-tx"}


@dataclass(frozen=True)
class EthtoolSetting:
    """A number or switch of a NIC, by ethtool's netlink family; switches are 0 and 1."""

    interface: str
    kind: str
    name: str
    of_machine = False

    @property
    def known(self) -> bool:
        return known.interface(self.interface) and self.kind in _ETHTOOL_OPTIONS

    def read(self, source: Reader) -> str:
        answer = source.ethtool(self.interface, self.kind)
        if self.kind == "features":
            return str(int(self.name in answer["active"]))
        if self.name not in answer:
            raise OSError(errno.EOPNOTSUPP, f"the driver does not tell {self.name}")
        return str(answer[self.name])

    def write(self, source: Source, value: str) -> None:
        source.set_ethtool(self.interface, self.kind, self.name, int(value))

    def command(self, value: str) -> str:
        option = _ETHTOOL_OPTIONS[self.kind]
        switch = self.kind in _SWITCHES or self.name in _SWITCHES_OF_COALESCING
        shown = ("off", "on")[int(value)] if switch else value
        name = "eee" if (self.kind, self.name) == ("eee", "enabled") else self.name
        return f"ethtool {option} {self.interface} {name} {shown}"

    def __str__(self) -> str:
        return f"{self.interface} {self.kind} {self.name}"


@dataclass(frozen=True)
class LinkSetting:
    """An attribute of an interface by rtnetlink: mtu, txqlen, gso_max_size, gro_max_size."""

    interface: str
    name: str
    of_machine = False

    @property
    def known(self) -> bool:
        return known.interface(self.interface) and self.name in SETTABLE

    def read(self, source: Reader) -> str:
        for link in source.answer("links"):
            if link["name"] == self.interface:
                return str(link[self.name])
        raise OSError(19, "No such device")

    def write(self, source: Source, value: str) -> None:
        source.set_link(self.interface, self.name, int(value))

    def command(self, value: str) -> str:
        name = "txqueuelen" if self.name == "txqlen" else self.name
        return f"ip link set {self.interface} {name} {value}"

    def __str__(self) -> str:
        return f"{self.interface} {self.name}"


ABSENT = "\0"
"""The value of a configuration file that is not there."""


@dataclass(frozen=True)
class ConfigurationSetting:
    """A whole configuration file; unlike the kernel's files it outlives a reboot. Replaced in one
    step, so that nobody sees half of it."""

    path: str
    of_machine = True

    @property
    def known(self) -> bool:
        return known.configuration(self.path)

    def read(self, source: Reader) -> str:
        try:
            return source.text(self.path)
        except FileNotFoundError:
            return ABSENT

    def write(self, source: Source, value: str) -> None:
        place = source.place(self.path)
        if value == ABSENT:
            place.unlink(missing_ok=True)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            _replace(place, value)
        if place.parent.is_dir():
            synchronize_directory(place.parent)

    def command(self, value: str) -> str:
        return f"rm {self.path}" if value == ABSENT else f"write {self.path}"

    def __str__(self) -> str:
        return self.path


def _replace(place: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(place)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def synchronize_directory(directory: Path) -> None:
    """New and removed names in it survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


Setting = FileSetting | EthtoolSetting | LinkSetting | ConfigurationSetting

_KINDS: dict[str, type[Setting]] = {
    "file": FileSetting,
    "ethtool": EthtoolSetting,
    "link": LinkSetting,
    "configuration": ConfigurationSetting,
}


def to_json(setting: Setting) -> dict[str, Any]:
    """The setting for a journal; from_json() makes it again."""
    of = next(name for name, each in _KINDS.items() if isinstance(setting, each))
    return {"of": of, **vars(setting)}


def from_json(value: dict[str, Any]) -> Setting:
    """Raises ValueError where it is no setting, or not one that the doctor changes."""
    fields = {name: each for name, each in value.items() if name != "of"}
    try:
        made = _KINDS[value["of"]](**fields)
        plain = all(isinstance(each, str | bool) for each in fields.values())
        if plain and made.known:
            return made
    except (KeyError, TypeError) as error:
        raise ValueError(f"{value} is no setting") from error
    raise ValueError(f"the doctor does not change {made}")


def same(one: str, other: str) -> bool:
    """Whether two texts are one value: the kernel separates fields by tabs and ends lines."""
    return one.split() == other.split()
