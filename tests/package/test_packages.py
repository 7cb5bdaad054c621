# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is in the packages, and what the distribution's own checker says of them."""

import subprocess
from pathlib import Path

from beowire import __version__
from package_build import Packages

FILES = {
    "libbeowire1": ("libbeowire.so.1",),
    "libbeowire-dev": ("beowire.h", "libbeowire.so", "beowire.pc", "libbeowire.3.gz"),
    "libfabric-beowire": ("libfabric/libbeowire-fi.so", "libfabric/alone/libfabric.so.1"),
    "openmpi-beowire": ("bin/mpirun.beowire", "bin/mpiexec.beowire", "etc/beowire/openmpi.conf"),
    "beowire": ("bin/beowire", "bin/beowire-info", "sbin/beowire-attach", "man1/beowire.1.gz"),
    "beowired": ("sbin/beowired", "beowired.service", "etc/beowire/beowired.conf"),
    "beowire-sockets": ("beowire/libbeowire-sockets.so",),
    "beowire-dkms": ("dkms.conf", "engine/peer.c", "main.c", "Kbuild"),
}


def said(*words: str | Path) -> str:
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_each_package_has_its_files(packages: Packages) -> None:
    named = {said("dpkg-deb", "--field", each, "Package").strip(): each for each in packages.older}
    assert set(named) == set(FILES)
    for name, files in FILES.items():
        lines = said("dpkg-deb", "--contents", named[name]).splitlines()
        listed = [line.split()[5] for line in lines]
        for file in files:
            assert any(each.endswith(f"/{file}") for each in listed), (name, file)
        assert not any("__pycache__" in each or "/tests/" in each for each in listed), name


def test_no_compiler_is_needed_to_use_them(packages: Packages) -> None:
    for each in packages.older:
        if "dkms" not in each.name:
            needed = said("dpkg-deb", "--field", each, "Depends")
            assert not any(word in needed for word in ("gcc", "qemu", "meson", "-dev")), each


def test_lintian_has_no_complaint(packages: Packages) -> None:
    done = subprocess.run(
        ["lintian", "--allow-root", "--tag-display-limit", "0", *packages.older],
        capture_output=True,
        text=True,
        check=False,
    )
    found = [line for line in done.stdout.splitlines() if line.startswith(("E:", "W:"))]
    assert found == []
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_projects(packages: Packages) -> None:
    for each in packages.newer:
        assert said("dpkg-deb", "--field", each, "Version").strip() == f"{__version__}-2"
