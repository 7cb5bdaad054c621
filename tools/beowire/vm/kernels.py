# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stock kernels for guests: the distribution's own packages, unpacked but never installed.

A package is fetched once, into the user's cache. Guests boot its uncompressed image (PVH, twice
as fast as the compressed one under emulation) and load its modules.
"""

import fcntl
import lzma
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note
from beowire.vm.packages import STOCK, Archive, backports, told

_ELF = b"\x7fELF"
_USUAL = ("linux-image-amd64", "linux-image-virtual")  # Debian's and Ubuntu's
_WHICH = "`apt-cache search linux-image` shows which kernels there are, after `apt-get update`."
_VERSIONED = r"^linux-image-[0-9]+\.[0-9]+-amd64$"  # Debian's for newer ones in a stable release

NEWER = "newer"
"""What --kernel calls the newest kernel that the distribution offers: in its archive of newer
packages, or beside the usual one."""


@dataclass(frozen=True)
class Kernel:
    """An unpacked kernel: `release` as uname tells it, `image` and the folder of its modules.

    `tree` is where all of it was unpacked, `package` the package that it came in. `build` is what
    modules are built against, if that came with it.
    """

    release: str
    image: Path
    modules: Path
    tree: Path
    package: str
    build: Path | None = None

    def module_files(self, names: list[str]) -> list[Path]:
        """These modules and all that they need, in the order of loading."""
        needs: dict[str, list[str]] = {}
        paths: dict[str, str] = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            file, _, rest = line.partition(":")
            name = _module_name(file)
            paths[name] = file
            needs[name] = [_module_name(each) for each in rest.split()]
        first = self._wanted_first()
        order: list[str] = []

        def visit(name: str) -> None:
            if name in order:
                return
            for each in [*first.get(name, []), *reversed(needs[name])]:
                visit(each)
            order.append(name)

        built_in = (self.modules / "modules.builtin").read_text().splitlines()
        inside = {_module_name(file) for file in built_in}
        for name in names:
            if (found := _module_name(name)) in paths:
                visit(found)
            elif found not in inside:
                raise BeowireError(f"The kernel {self.release} has no module {name}.")
        return [self.modules / paths[name] for name in order]

    def _wanted_first(self) -> dict[str, list[str]]:
        """By module, those that it will ask for by an alias when it is loaded."""
        aliases: dict[str, list[str]] = {}
        for line in (self.modules / "modules.alias").read_text().splitlines():
            _, alias, *_, module = line.split()
            aliases.setdefault(alias.replace("-", "_"), []).append(module)
        first: dict[str, list[str]] = {}
        for line in (self.modules / "modules.softdep").read_text().splitlines():
            if found := re.match(r"softdep (\S+) (?:.* )?pre: ([^:]+?)(?: post:.*)?$", line):
                wanted = [_module_name(each) for each in found[2].split()]
                first[found[1]] = [module for each in wanted for module in aliases.get(each, [])]
        return first


def _module_name(file: str) -> str:
    return Path(file).name.partition(".")[0].replace("-", "_")


def find(release: str = "") -> Kernel:
    """The kernel of this release, by default the distribution's own; fetched if need be. NEWER is
    the newest that the distribution offers."""
    if platform.machine() != "x86_64":
        raise BeowireError("Guests are made for x86-64 only.", "Run this on such a machine.")
    with one_at_a_time(home()):
        tree = home() / f"linux-image-{release}"
        if not (tree / "ready").exists():
            archive, package = _offered(release)
            tree = home() / package
            if not (tree / "ready").exists():
                _fetch(archive, package, tree)
                (tree / "ready").touch()
    image = next(tree.glob("vmlinux-*"))
    name = image.name.removeprefix("vmlinux-")
    return Kernel(name, image, tree / "lib" / "modules" / name, tree, tree.name)


def archive_of(package: str) -> Archive:
    """The archive that has this package: the machine's own, or that of newer ones."""
    if STOCK.has(package):
        return STOCK
    archive = backports()
    if not archive.has(package):
        raise BeowireError(f"There is no package {package}.", _WHICH)
    return archive


def _offered(release: str) -> tuple[Archive, str]:
    """The archive that has the kernel of this release, and its package."""
    if not release:
        return STOCK, _newest(STOCK, _USUAL)
    if release != NEWER:
        package = f"linux-image-{release}"
        return archive_of(package), package
    if (
        platform.freedesktop_os_release()["ID"] == "ubuntu"
    ):  # its newer ones are in the same archive
        version = platform.freedesktop_os_release()["VERSION_ID"]
        return STOCK, _newest(STOCK, (f"linux-image-virtual-hwe-{version}",))
    archive = backports()
    offered = [(archive, _newest(archive, _USUAL))]
    offered += [(STOCK, _newest(STOCK, (name,))) for name in STOCK.names(_VERSIONED)]
    return max(offered, key=lambda each: [int(number) for number in re.findall(r"\d+", each[1])])


def home() -> Path:
    """The directory in which kernels are kept."""
    place = places.cache_dir() / "guest-kernels"
    place.mkdir(parents=True, exist_ok=True)
    return place


@contextmanager
def one_at_a_time(home: Path) -> Iterator[None]:
    """Nobody else is inside for the same directory, which exists."""
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _newest(archive: Archive, names: tuple[str, ...]) -> str:
    """The kernel package that the distribution's own name for "the kernel" stands for."""
    for name in names:
        if not archive.has(name):
            continue
        for each in archive.needs(name):
            if re.match(r"linux-image-\d", each):
                return each
    raise BeowireError(
        f"The package archive has no {' and no '.join(names)}.",
        "Refresh the package lists: apt-get update. Or name a kernel by --kernel RELEASE.",
    )


def _fetch(archive: Archive, package: str, tree: Path) -> None:
    note(f"fetching the kernel package {package} for guests (it is unpacked, not installed)")
    modules = [each for each in archive.needs(package) if each.startswith("linux-modules-")]
    archive.unpack([package, *modules], tree)
    packed = next((tree / "boot").glob("vmlinuz-*"))
    release = packed.name.removeprefix("vmlinuz-")
    (tree / f"vmlinux-{release}").write_bytes(_uncompressed(packed.read_bytes()))
    told(["depmod", "-b", str(tree), release], f"The modules of {package}", package="kmod")


def _unxz(data: bytes) -> bytes:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ).decompress(data)


def _unzstd(data: bytes) -> bytes:
    zstd = places.program("zstd", "zstd")
    return subprocess.run([zstd, "-dcq"], input=data, capture_output=True, check=False).stdout


_PACKERS: tuple[tuple[bytes, Callable[[bytes], bytes]], ...] = (
    (b"\xfd7zXZ\x00", _unxz),
    (b"\x28\xb5\x2f\xfd", _unzstd),
)


def module_bytes(file: Path) -> bytes:
    """What is in a file of a module, which may be packed."""
    data = file.read_bytes()
    for magic, unpack in _PACKERS:
        if data.startswith(magic):
            return unpack(data)
    return data


def _uncompressed(packed: bytes) -> bytes:
    """The ELF image inside a compressed kernel: what unpacks so, behind a packer's magic."""
    for magic, unpack in _PACKERS:
        at = packed.find(magic)
        while at >= 0:
            try:
                image = unpack(packed[at:])
            except lzma.LZMAError:
                image = b""
            if image.startswith(_ELF):
                return image
            at = packed.find(magic, at + 1)
    raise BeowireError(
        "The kernel's image is packed in a way that is not known here.",
        "Name a kernel that is packed with xz or zstd by --kernel RELEASE.",
    )
