# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A PostgreSQL server for a while: its data lie in a temporary place, and it runs for a user
without privileges, since it refuses root."""

import contextlib
import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.bench import sockets_programs
from beowire.errors import BeowireError
from beowire.sockets import cli as preloading

USER = "nobody"
SUPERUSER = "beowire"
"""Of the database."""
BELIEVED = ("local all all trust", "host all all 0.0.0.0/0 trust", "host all all ::/0 trust")
"""In pg_hba.conf: everybody."""
SETTINGS = ("fsync=off", "shared_buffers=64MB")
_INSTALLED = Path("/usr/lib/postgresql")
"""Where Debian has a directory for each version."""
_MAPPED = Path("/proc/self/uid_map")
_TOOLS = ("initdb", "postgres", "pgbench", "pg_isready")


@dataclass(frozen=True)
class Server:
    """Where a server has its data, and how it becomes its user."""

    programs: Path
    place: Path

    @property
    def data(self) -> Path:
        """Its directory of data."""
        return self.place / "data"

    @property
    def variables(self) -> dict[str, str]:
        """What preloads the library, by a copy that its user can read."""
        _, _, others = preloading.preload()["LD_PRELOAD"].partition(":")
        return {"LD_PRELOAD": ":".join([str(self.place / "library.so"), *filter(None, [others])])}

    def directory(self, name: str) -> Path:
        """Makes one beside its data, in which its user may write."""
        made = self.place / name
        sockets_programs.output([*become(), "mkdir", str(made)])
        return made

    def words(self, *settings: str) -> list[str]:
        """Its command line, as its user."""
        given = (*SETTINGS, f"unix_socket_directories={self.place}", *settings)
        options = [word for each in given for word in ("-c", each)]
        return [str(self.programs / "postgres"), "-D", str(self.data), *options]

    def answers(self, port: int = 5432) -> bool:
        """Does the server at this port accept connections? It listens long before."""
        ask = [str(self.programs / "pg_isready"), "-h", str(self.place), "-p", str(port), "-q"]
        try:
            sockets_programs.output(ask)
        except BeowireError:
            return False
        return True


def programs() -> Path | None:
    """The directory of the newest version's programs, or None."""
    found = sorted(
        (each for each in _INSTALLED.glob("*/bin") if each.parent.name.isdigit()),
        key=lambda each: int(each.parent.name),
    )
    elsewhere = shutil.which("postgres")
    found += [Path(elsewhere).resolve().parent] if elsewhere else []
    whole = [each for each in found if all((each / name).exists() for name in _TOOLS)]
    return whole[-1] if whole else None


def lacking() -> str:
    """Why there can be no server here; empty: there can."""
    if programs() is None:
        return "PostgreSQL: not installed (Debian: apt-get install postgresql postgresql-contrib)"
    if os.geteuid() != 0 or not _is_mapped(pwd.getpwnam(USER).pw_uid):
        return f"PostgreSQL refuses root, and nothing can be run as {USER} here"
    return ""


def _is_mapped(uid: int) -> bool:
    """Is there such a user in our namespace of users? (user_namespaces(7))"""
    rows = [line.split() for line in _MAPPED.read_text().splitlines()]
    return any(int(first) <= uid < int(first) + int(length) for first, _, length in rows)


def become() -> list[str]:
    """What stands before a command for it to run as the user, with bare frames and nothing else of
    what root may do."""
    user = pwd.getpwnam(USER)
    raw = "-all,+net_raw"
    return [
        places.program("setpriv", "util-linux"),
        *(f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"),
        *(f"--inh-caps={raw}", f"--ambient-caps={raw}"),
        *("env", "-C", "/"),
    ]


@contextlib.contextmanager
def made(tables: bool = True) -> Iterator[Server]:
    """A server's data, gone afterwards: every database user is believed. Pgbench has its tables, if
    it is to have them."""
    found = programs()
    if found is None:
        raise BeowireError(lacking())
    with tempfile.TemporaryDirectory(prefix="beowire-postgres-") as name:
        server = Server(found, Path(name))
        shutil.copy(places.product(preloading.LIBRARY), server.place / "library.so")
        shutil.chown(server.place, USER)
        initdb = [str(found / "initdb"), "-D", str(server.data), "-A", "trust", "-U", SUPERUSER]
        sockets_programs.output([*become(), *initdb, "-N", "-E", "UTF8", "--locale=C"])
        # What lies there is its user's, who could have put a link in place of a file.
        write = ["sh", "-c", 'printf "%s\\n" "$@" >pg_hba.conf', "sh", *BELIEVED]
        sockets_programs.output([*become(), "env", "-C", str(server.data), *write])
        if tables:
            _fill(server)
        yield server


def _fill(server: Server) -> None:
    """Makes the tables of pgbench, by the server's socket in its place."""
    there = ["-h", str(server.place), "-U", SUPERUSER]
    fill = [str(server.programs / "pgbench"), *there, "-i", "-q", "-s", "1", "postgres"]
    words = [*become(), *server.words("listen_addresses=")]
    with sockets_programs.running(words, "postgres", server.answers):
        sockets_programs.output(fill)
