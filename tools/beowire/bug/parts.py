# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The parts of a report: what each is, and how it is had. None changes anything."""

import os
import platform
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from beowire import __version__, installed, places

_LIMIT_S = 300
_TAIL_BYTES = 256 << 10
KNOWN_VARIABLES = (
    "BEOWIRE_BUILD", "BEOWIRE_CACHE", "BEOWIRE_CHECKSUM", "BEOWIRE_CLUSTER", "BEOWIRE_CONFIG",
    "BEOWIRE_DEAD_TIMEOUT", "BEOWIRE_DOMAINS", "BEOWIRE_EAGER_MAX", "BEOWIRE_ENCRYPT",
    "BEOWIRE_ETHERTYPE", "BEOWIRE_FANOUT", "BEOWIRE_HELPER", "BEOWIRE_HUGE_PAGES",
    "BEOWIRE_INTERFACE", "BEOWIRE_INTERFACES", "BEOWIRE_LINKS", "BEOWIRE_LOCAL_CMA", "BEOWIRE_LOG",
    "BEOWIRE_MEMORY", "BEOWIRE_MTU", "BEOWIRE_NODE", "BEOWIRE_REPLICATE",
    "BEOWIRE_REPLICATE_EXPLAIN", "BEOWIRE_REPLICATE_KEEPER", "BEOWIRE_REPLICATE_MAX",
    "BEOWIRE_REPLICATE_PAGES", "BEOWIRE_RING", "BEOWIRE_SEND_COPIES", "BEOWIRE_SERVICE",
    "BEOWIRE_SOCKETS", "BEOWIRE_SOCKETS_AFTER", "BEOWIRE_SOCKETS_COMPARE",
    "BEOWIRE_SOCKETS_EXPLAIN", "BEOWIRE_SOCKETS_IO_URING", "BEOWIRE_SOCKETS_STATS",
    "BEOWIRE_SOCKETS_WITHIN", "BEOWIRE_STATE", "BEOWIRE_STATS", "BEOWIRE_STATUS",
    "BEOWIRE_UDP_ADDRESS", "BEOWIRE_UDP_OFFLOAD", "BEOWIRE_UDP_PORTS", "BEOWIRE_UNEXPECTED_EACH",
    "BEOWIRE_UNEXPECTED_MAX", "BEOWIRE_WAIT", "FI_LOG_LEVEL", "FI_PROVIDER", "FI_PROVIDER_PATH",
    "LANG", "LD_LIBRARY_PATH", "MPIR_CVAR_CH4_NETMOD", "OMPI_MCA_btl", "OMPI_MCA_mtl",
    "OMPI_MCA_pml", "SLURM_JOB_ID", "UCX_TLS",
)  # fmt: skip
"""Whatever else is set stays out: much of it is secret, and little is about us."""


@dataclass(frozen=True)
class Part:
    """One file of the archive."""

    name: str
    says: str
    read: Callable[[], str]


def _run(*command: str) -> str:
    """What a command says; that it fails is told as well."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"({command[0]}: {error})\n"
    end = f"({command[0]} ended with status {done.returncode})\n" if done.returncode else ""
    return done.stdout + done.stderr + end


def _beowire(*arguments: str) -> str:
    return _run(*places.module("beowire"), *arguments)


def _file(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError as error:
        return f"({path}: {error.strerror})\n"


def _versions() -> str:
    commit = "installed"
    if installed.directories() is None:
        commit = _run("git", "-C", str(places.root()), "describe", "--always", "--dirty")
    told = [f"beowire {__version__}, {commit.strip()}", f"Python {platform.python_version()}"]
    for command in (("mpirun", "--version"), ("fi_info", "--version"), ("cc", "--version")):
        told.append(f"{command[0]}: {_run(*command).strip()}")
    return "\n".join(told) + "\n"


def _kernel() -> str:
    modules = [line for line in _file("/proc/modules").splitlines() if "beowire" in line]
    told = [platform.platform(), platform.version(), _file("/etc/os-release"), *modules]
    return "\n".join(told) + "\n"


def _environment() -> str:
    return "".join(f"{name}={os.environ[name]}\n" for name in KNOWN_VARIABLES if name in os.environ)


def _kernel_log() -> str:
    lines = [line for line in _run("dmesg").splitlines() if "beowire" in line.lower()]
    return "\n".join(lines[-500:]) + "\n"


def tail(path: Path) -> str:
    """The end of a file that a user adds."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode(errors="replace")
    except OSError as error:
        return f"({path}: {error.strerror})\n"


PARTS = (
    Part("versions.txt", "versions of Beowire, Python, MPI, libfabric and the compiler", _versions),
    Part("kernel.txt", "kernel, distribution, modules of ours", _kernel),
    Part("environment.txt", "variables that we know, and no other", _environment),
    Part(
        "interfaces.json", "network interfaces", lambda: _run("ip", "-details", "-json", "address")
    ),
    Part("info.json", "which links can be used", lambda: _beowire("info", "--json")),
    Part("doctor.json", "what the doctor finds", lambda: _beowire("doctor", "--json")),
    Part("status.json", "the endpoints that run now", lambda: _beowire("status", "--json")),
    Part("kernel-log.txt", "lines of the kernel's log that name us", _kernel_log),
)
