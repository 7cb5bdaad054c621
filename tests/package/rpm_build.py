# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of rpm, made of what the checkout's build has already, and a root directory for them."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.package import builder, rpm
from beowire.progress import Progress

_MESON = """#!/bin/sh
# In the place of meson: what the checkout's build installs, where the spec file wants it.
case $1 in
setup)
	mkdir -p _build
	for each; do case $each in --libdir=*) echo "${each#*=}" >_build/libdir ;; esac; done
	;;
install)
	libdir=$(cat _build/libdir)
	/usr/bin/meson install -C "$BUILT" --no-rebuild --quiet --destdir "$PWD/_build/made" || exit
	mkdir -p "$DESTDIR$libdir"
	mv _build/made/usr/local/lib/*-linux-*/* "$DESTDIR$libdir"
	rmdir _build/made/usr/local/lib/*-linux-*
	cp -r _build/made/usr/local/. "$DESTDIR/usr"
	;;
esac
"""


@dataclass(frozen=True)
class Rpms:
    """What was built, by the packages' names."""

    files: dict[str, Path]

    def said(self, name: str, *query: str) -> list[str]:
        """What rpm tells of the package."""
        words = ["rpm", "-qp", *query, str(self.files[name])]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def by_name(files: list[Path]) -> Rpms:
    return Rpms({each.name.rsplit("-", 2)[0]: each for each in files})


def of_this_build(directory: Path, revision: str, monkeypatch: pytest.MonkeyPatch) -> Rpms:
    """Packages of the checkout's products, as they are compiled already: the whole build takes a
    minute. All else is the command's own."""
    tools = directory / "tools"
    tools.mkdir(parents=True)
    (tools / "meson").write_text(_MESON)
    (tools / "meson").chmod(0o755)
    monkeypatch.setattr(builder, "_PATH", f"{tools}:{builder._PATH}")
    monkeypatch.setenv("BUILT", str(places.build_dir()))
    monkeypatch.setenv("BEOWIRE_BUILD", str(directory / "build"))
    built = rpm.build(directory / "out", revision, Progress(rpm.STEPS))
    return by_name(built.files)


_DKMS = """
case $1 in
add) echo "$3/$5: added" >>/database/dkms ;;
remove)
	left=
	while read -r line; do [ "$line" = "$3/$5: added" ] || left="$left$line
"; done </database/dkms
	printf %s "$left" >/database/dkms ;;
status)
	while read -r line; do
		[ "$line" != "$3/$5: added" ] || echo "$line"
	done </database/dkms ;;
esac
"""
"""What dkms tells of a module's version: whether it was added and not removed."""


class Root:
    """An empty root directory, with a shell for scriptlets, and the commands that these call: they
    write down how they were called."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("bin", "usr/bin", "run/systemd/system", "usr/sbin", "dev"):
            (directory / name).mkdir(parents=True)
        (directory / "dev" / "null").touch()
        self._program("/bin/sh")
        for name, more in (("bin/systemctl", ""), ("sbin/dkms", _DKMS), ("sbin/ldconfig", "")):
            script = directory / "usr" / name
            script.write_text(f'#!/bin/sh\necho "{script.name} $*" >>/log\n{more}')
            script.chmod(0o755)
        (directory / "sbin").symlink_to("usr/sbin")
        self._before = self.all()

    def _program(self, name: str) -> None:
        told = subprocess.run(["ldd", name], capture_output=True, text=True, check=True).stdout
        libraries = [word for word in told.split() if word.startswith("/")]
        for each in (name, *libraries):
            to = self.directory / each.lstrip("/")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(each, to)

    def rpm(self, *words: str | Path) -> str:
        """What rpm does there; it must succeed, and so must scriptlets."""
        done = subprocess.run(
            ["rpm", "--root", self.directory, "--dbpath", "/database", *words],
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/"},
        )
        assert done.returncode == 0, done.stderr
        assert "scriptlet failed" not in done.stderr, done.stderr
        return done.stdout

    def calls(self) -> list[str]:
        """What scriptlets called since this was asked last."""
        log = self.directory / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def all(self) -> set[str]:
        """All files and directories there but rpm's own."""
        found = set()
        for place, directories, files in os.walk(self.directory):
            inside = Path(place).relative_to(self.directory)
            if inside == Path():
                directories[:] = [each for each in directories if each != "database"]
            found |= {str(inside / each) for each in (*directories, *files)}
        return found

    def added(self) -> set[str]:
        return self.all() - self._before
