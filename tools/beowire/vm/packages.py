# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of the distribution, looked up and unpacked into a directory, but never installed."""

import platform
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError

_FRESH_S = 24 * 3600  # a list of packages is taken for true so long


@dataclass(frozen=True)
class Archive:
    """A package archive; `options` are apt's for it, none for those that the machine uses."""

    options: tuple[str, ...] = ()

    def _cache(self, *words: str) -> list[str]:
        """A command of apt-cache. What it makes of the package lists is kept in our cache, and apt
        looks itself whether they changed since: a container's is often told to keep nothing, and
        reading the lists takes half a second of processor time."""
        place = places.cache_dir() / "package-lists" / ("other" if self.options else "own")
        place.mkdir(parents=True, exist_ok=True)
        settings = (f"Dir::Cache::pkgcache={place}/pkgcache.bin", "Dir::Cache::srcpkgcache=")
        kept = [word for each in settings for word in ("-o", each)]
        return ["apt-cache", *self.options, *kept, *words]

    def has(self, package: str) -> bool:
        """Whether there is a package of exactly this name: apt takes a name with a dot that nothing
        has for a pattern, and shows, or fetches, all that fits it."""
        command = [places.program("apt-cache", "apt"), *self._cache("show", package)[1:]]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return f"Package: {package}" in shown.splitlines()

    def names(self, pattern: str) -> list[str]:
        """The packages whose names match this regular expression."""
        words = self._cache("search", "--names-only", pattern)
        return [line.split()[0] for line in told(words, "No list of packages").splitlines()]

    def needs(self, package: str) -> list[str]:
        """What this package depends on, by name, in the archive's order."""
        text = told(self._cache("depends", package), f"No package {package}")
        return re.findall(r"^\s*Depends: (\S+)", text, re.MULTILINE)

    def unpack(self, packages: list[str], tree: Path) -> None:
        """Fetches these packages, their signatures checked, and lays out their files in `tree`."""
        tree.mkdir(parents=True, exist_ok=True)
        what = f"{packages[0]} cannot be fetched"
        told(["apt-get", *self.options, "download", *packages], what, cwd=tree)
        for file in tree.glob("*.deb"):
            told(["dpkg-deb", "-x", file.name, "."], f"{file.name} cannot be unpacked", cwd=tree)
            file.unlink()


STOCK = Archive()


def told(command: list[str], what: str, cwd: Path | None = None, package: str = "apt") -> str:
    """What a command of the package system prints; `what` failed if it fails."""
    program = places.program(command[0], package)
    done = subprocess.run(
        [program, *command[1:]], capture_output=True, text=True, check=False, cwd=cwd
    )
    if done.returncode:
        raise BeowireError(
            f"{what}: {done.stderr.strip() or 'no reason given'}",
            "Refresh the package lists: apt-get update. `apt-cache search linux-image` shows "
            "which kernels there are.",
        )
    return done.stdout


def backports() -> Archive:
    """The distribution's archive of newer packages, known to apt only in here: its list lies in the
    cache, and the machine's own lists stay as they are. Raises if it cannot be reached."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    suite = f"{release}-backports"
    place = places.cache_dir() / "backports"
    for directory in ("lists/partial", "cache/archives/partial"):
        (place / directory).mkdir(parents=True, exist_ok=True)
    source = place / "list.sources"
    archive = Archive(
        (
            *("-o", f"Dir::Etc::sourcelist={source}", "-o", "Dir::Etc::sourceparts=-"),
            *("-o", f"Dir::State::lists={place}/lists", "-o", f"Dir::Cache={place}/cache"),
            *("-o", "APT::Sandbox::User=root"),  # the cache is the user's alone
        )
    )
    index = place / "fresh"
    if index.exists() and time.time() - index.stat().st_mtime < _FRESH_S:
        return archive
    lines = [f"URIs: {_site(release)}", f"Suites: {suite}", "Components: main"]
    source.write_text("\n".join(["Types: deb", *lines]) + "\n")
    try:
        update = ["apt-get", *archive.options, "-o", "APT::Update::Error-Mode=any", "update"]
        told(update, f"{suite} cannot be reached")
    except BeowireError:
        if not index.exists():
            raise
        return archive
    index.touch()
    return archive


def _site(release: str) -> str:
    """Where the machine gets the distribution's own packages from."""
    form = "$(SITE) $(CODENAME) $(COMPONENT) $(CREATED_BY)"
    for line in told(["apt-get", "indextargets", "--format", form], "No sources").splitlines():
        site, *rest = line.split()
        if rest == [release, "main", "Packages"]:
            return site
    raise BeowireError(
        f"apt has no source of packages for {release or 'this distribution'}.",
        "Refresh the package lists: apt-get update.",
    )
