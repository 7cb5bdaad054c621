# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where the doctor reads: the running kernel, or a tree recorded from one.

A recorded tree has the files under their own paths, and what netlink and system calls answered as
JSON under `answers/`. It stands in for hardware that is not here, and for a node whose owner sent
a recording.
"""

import contextlib
import errno
import gzip
import json
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from pyroute2.netlink.exceptions import NetlinkError

from beowire.doctor import answers, privacy, probe
from beowire.doctor.ethtool_netlink import Ethtool
from beowire.errors import BeowireError

_GZIP_MAGIC = b"\x1f\x8b"


class Reader(Protocol):
    """What reading a setting takes: a source, or a node's memory of one."""

    def text(self, path: str, /) -> str: ...

    def ethtool(self, interface: str, kind: str, /) -> dict[str, Any]: ...

    def answer(self, what: str, /) -> Any: ...


class Source:
    """The running kernel, as the caller's network namespace sees it.

    One thread at a time. Failures are OSError with the kernel's code.
    """

    def __init__(self) -> None:
        self._ethtool: Ethtool | None = None

    def close(self) -> None:
        if self._ethtool is not None:
            self._ethtool.close()
            self._ethtool = None

    def text(self, path: str) -> str:
        """A file's whole text, unpacked if need be. Bytes that are no text are replaced."""
        content = self.place(path).read_bytes()
        if content.startswith(_GZIP_MAGIC):
            try:
                content = gzip.decompress(content)
            except (EOFError, zlib.error) as error:
                raise OSError(errno.EIO, f"it cannot be unpacked: {error}", path) from error
        return content.decode(errors="replace")

    def names(self, path: str) -> list[str]:
        """The entries of a directory, sorted."""
        return sorted(each.name for each in self.place(path).iterdir())

    def target(self, path: str) -> str:
        """What a symbolic link points to."""
        return str(self.place(path).readlink())

    def writable(self, path: str) -> bool:
        return os.access(self.place(path), os.W_OK)

    def place(self, path: str) -> Path:
        """The file that stands for this path. /proc/net is that of the calling thread, whose
        network namespace may not be the process's."""
        if path.startswith("/proc/net/"):
            return Path(f"/proc/self/task/{threading.get_native_id()}{path.removeprefix('/proc')}")
        return Path(path)

    def ethtool(self, interface: str, kind: str) -> dict[str, Any]:
        """What the driver tells, by Ethtool.get()."""
        with _as_os_error():
            return self._open_ethtool().get(interface, kind)

    def set_ethtool(self, interface: str, kind: str, name: str, value: int) -> None:
        with _as_os_error():
            self._open_ethtool().set(interface, kind, name, value)

    def answer(self, what: str) -> Any:
        """What netlink or a system call tells of `what`, a key of answers.ASKED, as JSON has it."""
        with _as_os_error():
            return answers.ASKED[what]()

    def path_to(self, host: str, round_trip_s: float) -> dict[str, Any]:
        """The path to another host, by probe.path_to()."""
        return probe.path_to(host, round_trip_s)

    def set_link(self, interface: str, name: str, value: int) -> None:
        """Changes an attribute of an interface by rtnetlink, such as "mtu"."""
        with _as_os_error():
            answers.set_link(interface, name, value)

    def write(self, path: str, text: str) -> None:
        """Writes a file of the kernel in one call, as those want it."""
        descriptor = os.open(self.place(path), os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)

    def _open_ethtool(self) -> Ethtool:
        if self._ethtool is None:
            self._ethtool = Ethtool()
        return self._ethtool


class Recorded(Source):
    """A recorded tree at `root`. What is not in it is absent (ENOENT, EOPNOTSUPP)."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def place(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def ethtool(self, interface: str, kind: str) -> dict[str, Any]:
        found: dict[str, Any] = self._answer(f"ethtool/{interface}/{kind}")
        return found

    def set_ethtool(self, interface: str, kind: str, name: str, value: int) -> None:
        found = self.ethtool(interface, kind)
        if kind == "features":
            active = [each for each in found["active"] if each != name]
            found["active"] = [*active, name] if value else active
        else:
            found[name] = value
        self._file(f"ethtool/{interface}/{kind}").write_text(json.dumps(found))

    def answer(self, what: str) -> Any:
        return self._answer(what)

    def path_to(self, host: str, round_trip_s: float) -> dict[str, Any]:  # noqa: ARG002
        found: dict[str, Any] = self._answer(f"path/{host}")
        return found

    def set_link(self, interface: str, name: str, value: int) -> None:
        links = self._answer("links")
        for link in links:
            if link["name"] == interface:
                link[name] = value
        self._file("links").write_text(json.dumps(links))

    def write(self, path: str, text: str) -> None:
        place = self.place(path)
        if not place.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(place))
        place.write_text(text)

    def _file(self, name: str) -> Path:
        return self.root / "answers" / f"{name}.json"

    def _answer(self, name: str) -> Any:
        try:
            return json.loads(self._file(name).read_bytes())
        except FileNotFoundError:
            raise OSError(errno.EOPNOTSUPP, f"not recorded: {name}") from None
        except (ValueError, RecursionError):
            raise OSError(errno.EIO, f"damaged: answers/{name}.json is no JSON") from None


class Recorder(Source):
    """The running kernel, and a copy of what is read of it into a new tree at `root`, which its
    owner alone can read. Of files that hold others' secrets it has what checks need: privacy.py.
    """

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        try:
            root.mkdir(mode=0o700)
        except OSError as error:
            raise BeowireError(
                f"{root} cannot be made: {error.strerror}.", "Name a new folder.", 2
            ) from error

    def text(self, path: str) -> str:
        text = super().text(path)
        self._keep(path, privacy.limited(path, text))
        return text

    def names(self, path: str) -> list[str]:
        found = super().names(path)
        directory = self.root / path.lstrip("/")
        _make_private(directory)
        for name in found:
            if Path(path, name).is_dir():
                _make_private(directory / name)
        return found

    def target(self, path: str) -> str:
        target = super().target(path)
        link = self.root / path.lstrip("/")
        _make_private(link.parent)
        if not link.is_symlink():
            with contextlib.suppress(FileExistsError):
                link.symlink_to(target)
        return target

    def ethtool(self, interface: str, kind: str) -> dict[str, Any]:
        found = super().ethtool(interface, kind)
        self._keep(f"answers/ethtool/{interface}/{kind}.json", json.dumps(found))
        return found

    def answer(self, what: str) -> Any:
        found = super().answer(what)
        self._keep(f"answers/{what}.json", json.dumps(found))
        return found

    def path_to(self, host: str, round_trip_s: float) -> dict[str, Any]:
        found = super().path_to(host, round_trip_s)
        self._keep(f"answers/path/{host}.json", json.dumps(found))
        return found

    def _keep(self, path: str, text: str) -> None:
        place = self.root / path.lstrip("/")
        _make_private(place.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place, flags, 0o600), "w") as file:
            file.write(text)


def _make_private(directory: Path) -> None:
    """Makes a directory, and those above it, for the owner alone."""
    for each in (*reversed(directory.parents), directory):
        with contextlib.suppress(FileExistsError):
            each.mkdir(mode=0o700)


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Netlink's errors as the system's."""
    try:
        yield
    except NetlinkError as error:
        raise OSError(error.code, os.strerror(error.code)) from error
