# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Minimal roots of Debian's releases, made by mmdebstrap, and our packages built in each by its own
compiler.

Roots are made once and kept, with what apt fetched for them and what a build needs, in a directory
that BEOWIRE_TEST_ROOTS names: some gigabytes.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import package_machine
from beowire import places
from package_machine import Machine

RELEASES = {"debian12": "bookworm", "debian13": "trixie"}
PLACE = Path(os.environ.get("BEOWIRE_TEST_ROOTS", "/var/tmp/beowire-roots"))
PIP_CERTIFICATES = "PIP_CERT"
_FOR_A_BUILD = "apt-utils build-essential gpg libopenmpi-dev lintian python3-venv"
"""Beside Build-Depends: for the command, for a repository, for the checker and for MPI programs."""
_OF_ARM64 = (
    *("libc6-dev", "libcmocka-dev", "libfabric-dev", "libgcc-12-dev", "libsodium-dev"),
    *("libmpich-dev", "libopenmpi-dev"),
)
_PROGRAMS = {
    "pi": "-I examples examples/pi.c examples/common.c",
    "onesided": "-I examples -I tests/mpi tests/mpi/onesided.c tests/mpi/check.c examples/common.c",
}


def lacks() -> str:
    """What this machine needs to make roots, and does not have."""
    if os.geteuid() != 0:
        return "making roots of Debian needs root"
    if not shutil.which("mmdebstrap"):
        return "mmdebstrap is missing: apt-get install mmdebstrap"
    return ""


def base(name: str) -> Path:
    """The minimal root of this release."""
    place = PLACE / name / "base"
    if not place.exists():
        part = place.with_name("base.part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        words = ["mmdebstrap", "--mode=root", "--variant=minbase", "--format=directory"]
        subprocess.run([*words, RELEASES[name], part], check=True)
        part.rename(place)
    return place


def for_arm64() -> Path:
    """The files of an arm64 Debian 12 that a build needs, unpacked: none was executed."""
    place = PLACE / "arm64"
    if not place.exists():
        part = place.with_name("arm64.part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        words = ["mmdebstrap", "--variant=extract", "--architectures=arm64", "--format=directory"]
        words += [f"--include={','.join(_OF_ARM64)}", "bookworm", str(part)]
        subprocess.run(words, check=True)
        part.rename(place)
    return place


@contextlib.contextmanager
def machine(
    name: str, directory: Path, *, builds: bool = False, written: Path | None = None
) -> Iterator[Machine]:
    """A machine with this root: a fresh one, or the one that builds and keeps what is written. A
    fresh one's writings are kept in `written`, if there is such a directory."""
    archives = PLACE / name / "archives"
    written = PLACE / name / "builder" if builds else written
    for each in (archives, written):
        if each:
            each.mkdir(parents=True, exist_ok=True)
    directory.mkdir()
    with package_machine.started(directory, base(name), written, archives) as started:
        yield started


def build(builder: Machine, shared: Path, revision: str) -> None:
    """Lays this checkout out there and builds, as docs/install.md says; packages, a repository of
    them and programs come to the directory that is shared."""
    # Nothing there has to outlast a loss of power.
    builder.output("echo force-unsafe-io >/etc/dpkg/dpkg.cfg.d/fast")
    builder.output("apt-get -q update", fetches=True)
    builder.output(f"apt-get -q -y install --no-install-recommends {_FOR_A_BUILD}", fetches=True)
    _lay_out(shared / "checkout.tar")
    old = "find beowire -mindepth 1 -maxdepth 1 ! -name .venv ! -name build -exec rm -rf {} +"
    builder.output(f"mkdir -p beowire && {old} && tar -C beowire -xf /tmp/shared/checkout.tar")
    wanted = "apt-get -q -y build-dep --no-install-recommends ./packaging"
    builder.output(f"cd beowire && {wanted}", fetches=True)
    of_pip = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    if PIP_CERTIFICATES in of_pip:
        shutil.copy(of_pip[PIP_CERTIFICATES], shared / "certificates")
        of_pip[PIP_CERTIFICATES] = "/tmp/shared/certificates"
    make = f"./beowire package deb --output /tmp/shared/packages --revision {revision}"
    builder.output(f"cd beowire && {make}", fetches=True, **of_pip)
    for name, sources in _PROGRAMS.items():
        builder.output(f"cd beowire && mpicc -o /tmp/shared/{name} -D_GNU_SOURCE {sources} -lm")


def _lay_out(archive: Path) -> None:
    """What git knows or would take of this checkout, as it is."""
    listed = ["git", "-C", str(places.root()), "ls-files", "--cached", "--others"]
    listed += ["--exclude-standard", "-z"]
    names = subprocess.run(listed, capture_output=True, check=True).stdout
    words = ["tar", "--create", f"--file={archive}", f"--directory={places.root()}"]
    subprocess.run([*words, "--null", "--files-from=-"], input=names, check=True)
