# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs of examples/apps, compiled when they are wanted, with Open MPI's compiler, into the
user's cache: under a name that hangs on all that went into them."""

import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from beowire import places, private_dir
from beowire.bench.apps.application import Source
from beowire.errors import BeowireError

_FLAGS = ("-O2", "-D_GNU_SOURCE")
_LEDGER = ("-O2", "-D_GNU_SOURCE", "-fPIC", "-shared")


def program(source: Source) -> Path:
    """The program; it is compiled if the cache has none that is up to date."""
    examples = places.source("examples")
    files = [examples / "apps" / f"{source.name}.c"]
    if source.common:
        files.append(examples / "common.c")
    libraries = [*_packages(source), *(f"-l{each}" for each in source.libraries), "-lm"]
    return _made(source.name, [*_FLAGS, f"-I{examples}"], files, libraries)


def ledger() -> Path:
    """The library that keeps a ledger of a program's calls of MPI and of the kernel."""
    room = places.source("adapters/ledger")
    return _made("ledger.so", list(_LEDGER), [room / "ledger.c", room / "libc.c"], ["-ldl"])


def _made(name: str, flags: list[str], files: list[Path], libraries: list[str]) -> Path:
    compiler = _compiler()
    parts = [_identity(compiler), *flags, *libraries]
    parts += [file.read_text() for file in [*files, *_headers(files)]]
    mark = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    directory = places.cache_dir() / "apps"
    file = directory / f"{mark}-{name}"
    if file.exists():
        return file
    directory.parent.mkdir(parents=True, exist_ok=True)
    private_dir.make(directory)
    part = directory / f".{file.name}.{os.getpid()}"
    command = [compiler, *flags, *map(str, files), "-o", str(part), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        part.unlink(missing_ok=True)
        raise BeowireError(f"{name} cannot be compiled: {_last(done.stderr)}")
    part.replace(file)
    return file


def _headers(files: list[Path]) -> list[Path]:
    return sorted({each for file in files for each in file.parent.glob("*.h")})


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if "error" in line] or text.splitlines()[-1:]
    return lines[0] if lines else "the compiler says nothing"


def _compiler() -> str:
    found = shutil.which("mpicc.openmpi") or shutil.which("mpicc")
    if found is None:
        raise BeowireError(
            "mpicc.openmpi is not installed.", "Install it: apt-get install libopenmpi-dev gcc"
        )
    return found


@cache
def _identity(compiler: str) -> str:
    """Changes with the compiler and the MPI library."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    shown = subprocess.run([compiler, "-show"], capture_output=True, text=True, check=False)
    return done.stdout + shown.stdout


@cache
def _packages(source: Source) -> tuple[str, ...]:
    """Flags by pkg-config."""
    if not source.packages:
        return ()
    tool = shutil.which("pkg-config")
    if tool is None:
        raise BeowireError("pkg-config is not installed.", "Install it: apt-get install pkg-config")
    command = [tool, "--cflags", "--libs", *source.packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BeowireError(
            f"There are no headers of {' '.join(source.packages)} here "
            "(see --install, which gets the packages)."
        )
    return tuple(done.stdout.split())
