# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which kernel packages are found, with a package system that says what the tests want."""

import os
import re
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import kernels
from beowire.vm.packages import Archive

# Its archive is known by its options: "-o" is that of newer packages. As apt does, it shows what
# matches a name that no package has.
_APT_CACHE = r"""#!/bin/sh
packages="linux-image-amd64 linux-image-6.12-amd64 linux-image-6.1.0-9-amd64
linux-image-6.12.117-amd64 linux-image-6.12.95-amd64"
newest=6.1.0-9
echo "$*" >>"${0%/*}/asked"
while [ "$1" = -o ]; do
    case $2 in Dir::Cache::*) ;; *) newest=$(cat "$2") ;; esac
    shift 2
done
case $1 in
show)
    for each in $packages; do
        case $each in *$2*) echo "Package: $each" ;; esac
    done ;;
search) echo "linux-image-6.12-amd64 - meta-package" ;;
depends)
    case $2 in linux-image-6.12-amd64) newest=6.12.117 ;; esac
    echo "  Depends: linux-image-$newest-amd64" ;;
esac
"""

_APT_GET = """#!/bin/sh
touch "${0%/*}/fetched"
exit 1
"""


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """The archive of newer packages; the file `newest` beside the tests' program says which."""
    for name, text in (("apt-cache", _APT_CACHE), ("apt-get", _APT_GET)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + ":" + os.environ["PATH"])
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path / "cache"))
    newer = Archive(("-o", str(tmp_path / "newest")))
    monkeypatch.setattr(kernels, "backports", lambda: newer)
    monkeypatch.setattr(
        "platform.freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    )
    return newer


def test_a_part_of_a_name_is_no_package(archive: Archive) -> None:
    assert archive.has("linux-image-6.12.95-amd64")
    assert not archive.has("linux-image-6.12")


@pytest.mark.usefixtures("archive")
def test_what_apt_made_of_the_lists_is_kept_for_each_archive(tmp_path: Path) -> None:
    (tmp_path / "newest").write_text("6.13.2")
    kernels._offered(kernels.NEWER)
    asked = (tmp_path / "asked").read_text().splitlines()
    places = [re.findall(r"Dir::Cache::pkgcache=(\S+)/pkgcache.bin ", line) for line in asked]
    assert all(len(each) == 1 and Path(each[0]).is_dir() for each in places)
    assert all(Path(each[0]).is_relative_to(tmp_path / "cache") for each in places)
    of = [line.startswith(f"-o {tmp_path}") for line in asked]
    assert len({(*each, other) for each, other in zip(places, of, strict=True)}) == 2
    assert len({each[0] for each in places}) == 2


@pytest.mark.parametrize(
    ("newest", "found"),
    [
        ("6.12.95", "6.12.117"),
        ("6.12.117", "6.12.117"),
        ("6.13.2", "6.13.2"),
        ("6.9.1", "6.12.117"),
    ],
)
def test_the_newest_kernel_is_in_either_archive(
    archive: Archive, tmp_path: Path, newest: str, found: str
) -> None:
    (tmp_path / "newest").write_text(newest)
    where, package = kernels._offered(kernels.NEWER)
    assert package == f"linux-image-{found}-amd64"
    if newest != found:
        assert where is not archive


@pytest.mark.usefixtures("archive")
def test_a_kernel_that_there_is_not_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "home", lambda: tmp_path)
    with pytest.raises(BeowireError):
        kernels.find("6.12")
    assert not (tmp_path / "fetched").exists()
