# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where things lie: the checkout, the build's products or the installation, the run-time state.

One place to ask, so that no other module spells a path.
"""

import contextlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beowire import installed, private_dir, settings
from beowire.errors import BeowireError


def root() -> Path:
    """The checkout: set by the bootstrap script, else found from this file."""
    given = os.environ.get("BEOWIRE_ROOT")
    return Path(given) if given else Path(__file__).resolve().parents[2]


def build_dir() -> Path:
    """The build directory; BEOWIRE_BUILD selects another one."""
    return Path(os.environ.get("BEOWIRE_BUILD") or root() / "build")


def package_file(name: str) -> Path:
    """A file that ships inside this package."""
    return Path(__file__).resolve().parent / name


def source(relative: str) -> Path:
    """A file or directory of the checkout; an installation has none."""
    if installed.directories() is not None:
        raise installed.checkout_only(relative)
    return root() / relative


def command() -> Path:
    """The command `beowire`, where it lies on other nodes, too."""
    where = installed.directories()
    return where["bindir"] / "beowire" if where is not None else root() / "beowire"


def module(name: str) -> list[str]:
    """The words that execute a module of this package, without what the command of a checkout does
    first. An installation's command does nothing first; its other modules are found by PYTHONPATH,
    before what the user has there."""
    words = [sys.executable, "-P", "-m", name]
    if installed.directories() is None:
        return words
    if name == "beowire":
        return [str(command())]
    own = str(package_file("").parent)
    users = os.environ.get("PYTHONPATH", "")
    first, _, rest = users.partition(":")
    if first == own:
        users = rest
    return ["env", f"PYTHONPATH={own}:{users}" if users else f"PYTHONPATH={own}", *words]


def product(relative: str) -> Path:
    """A product of the build, by its path inside the build directory, or where the installation has
    it; it must exist."""
    path = product_path(relative)
    if path.exists():
        return path
    if installed.directories() is not None:
        raise BeowireError(
            f"{path} is not installed.",
            f"Install it: apt-get install {installed.package(relative)}",
        )
    raise BeowireError(
        f"{relative} has not been built (looked for {path}).",
        "Build it: meson setup build && ninja -C build   (or ./beowire test)",
    )


def product_path(relative: str) -> Path:
    """The same; it may be missing."""
    where = installed.directories()
    return installed.product(relative, where) if where is not None else build_dir() / relative


def provider_dir() -> Path:
    """The directory that holds libbeowire-fi.so, as FI_PROVIDER_PATH wants it."""
    return product("adapters/libfabric/libbeowire-fi.so").parent


def provider_files() -> list[Path]:
    """The provider and the library that it looks for beside itself, for hosts that may lack it."""
    provider = provider_dir() / "libbeowire-fi.so"
    command = [program("ldd", "libc-bin"), str(provider)]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = re.findall(r"^\s*libsodium\.so\.\d+ => (/\S+)", said, re.MULTILINE)
    return [provider, *map(Path, found)]


def library_dir() -> Path:
    """The directory that holds libbeowire.so."""
    return product("hosts/user/libbeowire.so").parent


def example(name: str) -> Path:
    """One of the MPI example programs."""
    return product(f"examples/{name}")


def check_output(file: Path) -> None:
    """Fails unless this file can be written, so that nothing is measured in vain."""
    existed = file.exists()
    try:
        with file.open("a"):
            pass
        if not existed:
            file.unlink()
    except OSError as error:
        raise _unwritable(file, error) from error


def check_replaceable(file: Path) -> None:
    """Fails if there is something that a new file must not take the place of, such as a device."""
    if file.exists() and not file.is_file():
        raise BeowireError(f"{file} is no regular file.", "Name another place.")


@contextlib.contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """A file beside this one to be written, which takes its place once that went well, at once.
    Failures are the caller's OSErrors."""
    check_replaceable(file)
    part = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    try:
        yield part
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def write_output(file: Path, text: str) -> None:
    """Writes a result for the user."""
    try:
        file.write_text(text)
    except OSError as error:
        raise _unwritable(file, error) from error


def write_json(file: Path, told: Any) -> None:
    """Writes a result for machines."""
    write_output(file, json_text(told))


def json_text(told: Any) -> str:
    """A result for machines. What is no finite number is null: JSON has no other word."""
    return json.dumps(_finite(told), indent=1) + "\n"


def _finite(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: _finite(each) for key, each in told.items()}
    if isinstance(told, list | tuple):
        return [_finite(each) for each in told]
    return None if isinstance(told, float) and not math.isfinite(told) else told


def make_output_dir(directory: Path) -> None:
    """Makes a directory for results, unless it is there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory, error) from error
    if not os.access(directory, os.W_OK | os.X_OK):
        raise BeowireError(f"{directory} cannot be written to.", "Name another directory.")


def _unwritable(path: Path, error: OSError) -> BeowireError:
    return BeowireError(
        f"{path} cannot be written: {error.strerror or error}.",
        "Name another place, or make that one writable.",
    )


def state_dir() -> Path:
    """Run-time state: BEOWIRE_STATE, else /run for root, else the user's run-time directory. It may
    not be there yet; it fails if somebody else could have written what lies there."""
    directory = state_path()
    private_dir.check(directory)
    return directory


def make_state_dir() -> Path:
    """The same, made if it is not there."""
    directory = state_path()
    try:
        private_dir.make(directory)
    except OSError as error:
        raise state_unwritable(error) from error
    return directory


def state_unwritable(error: OSError) -> BeowireError:
    return BeowireError(
        f"The state of labs cannot be kept in {state_path()}: {error.strerror}.",
        "Name a directory that can be written to in BEOWIRE_STATE.",
    )


def state_path() -> Path:
    """Its name alone, to be told."""
    if given := settings.get("BEOWIRE_STATE"):
        return Path(given)
    if os.geteuid() == 0:
        return Path("/run/beowire")
    base = os.environ.get("XDG_RUNTIME_DIR")
    return Path(base) / "beowire" if base else Path(f"/tmp/beowire-{os.getuid()}")


def cache_dir() -> Path:
    """What was fetched and can be fetched again: BEOWIRE_CACHE, else as the XDG standard says."""
    if given := settings.get("BEOWIRE_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "beowire"


def program(name: str, package: str) -> str:
    """The full path of a system program, or an error that names the package that has it."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        raise BeowireError(f"{name} is not installed.", f"Install it: apt-get install {package}")
    return path
