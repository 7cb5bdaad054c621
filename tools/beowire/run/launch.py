# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command lines that start an MPI program, over Beowire or over TCP.

A job plus a cluster gives a command and its environment, nothing else: no process is started
here. What is built is what a person would type, and it is printed before it is used.
"""

import math
import os
import shlex
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from beowire import places
from beowire.errors import BeowireError
from beowire.run import mpi, user
from beowire.run.cluster import Cluster
from beowire.run.mpi import Installation, Mpi

Transport = Literal["beowire", "tcp", "memory"]
"""`memory` is an MPI's own way between the ranks of one node."""
Bind = Literal["none", "core"]
TcpStack = Literal["native", "ofi", "ucx"]

# Variables of the bootstrap and of these tools, which a program has no use for.
_OWN_VARIABLES = {"BEOWIRE_ROOT", "BEOWIRE_BUILD", "BEOWIRE_STATE", "BEOWIRE_LAB_MODE"}
_OWN_VARIABLES |= {"BEOWIRE_LAB", "BEOWIRE_LAB_DIR", "BEOWIRE_JOB"}


@dataclass(frozen=True)
class Job:
    """What to run: a program on so many ranks."""

    program: list[str]
    ranks: int
    transport: Transport
    mpi: Mpi = "openmpi"
    """Which MPI starts it: a name or a directory, as `mpi.find` takes them."""
    per_node: int = 0
    """Ranks on each node; 0: spread evenly."""
    bind: Bind = "none"
    tcp_stack: TcpStack = "native"
    """Over which software an MPI speaks TCP: its own, libfabric's or UCX's."""
    eager_bytes: int = 0
    """The longest message sent eagerly, over Beowire and over `memory`; 0: their own choice."""
    environment: dict[str, str] = field(default_factory=dict)
    """Variables for the ranks, beside those of BEOWIRE_* set here."""
    provider_dir: str = ""
    """Where libbeowire-fi.so lies on the nodes; empty: in this build."""
    working_dir: str = ""
    """Where the ranks start, on the nodes; empty: where the launcher was started."""
    user: str = ""
    """Who the ranks run as, on a lab; empty: who runs the launcher."""
    before: list[str] = field(default_factory=list)
    """Words that start each rank at its place (run/placing.py); they execute what follows."""


@dataclass(frozen=True)
class Command:
    """A command line and the variables it needs beyond those that are set already."""

    arguments: list[str]
    environment: dict[str, str]

    def text(self) -> str:
        """As a person would type it."""
        variables = [f"{key}={shlex.quote(value)}" for key, value in self.environment.items()]
        return " ".join([*variables, shlex.join(self.arguments)])


def command(job: Job, cluster: Cluster, session_dir: Path | None = None) -> Command:
    """The command that runs the job; the launcher keeps its own files in `session_dir`."""
    slots = place(job, cluster)
    library = mpi.find(job.mpi)
    if job.transport == "beowire":
        library.check_libfabric()
    builder = {"openmpi": _openmpi, "mpich": _mpich}[library.family]
    built = builder(job, library, cluster, slots, session_dir)
    return Command([*cluster.head, *built.arguments], {**cluster.environment, **built.environment})


def check_program(job: Job, cluster: Cluster) -> None:
    """Fails if the program cannot be started, where its nodes are this machine, or if it is one of
    another MPI; launchers say that in many ways, few of them clear, or do not notice."""
    if cluster.shares_cores:
        _check_executable(job.program[0])
    mpi.find(job.mpi).check_program(job.program)


def _check_executable(name: str) -> None:
    found = shutil.which(name)
    if found is None:
        path = Path(name)
        if "/" not in name:
            raise BeowireError(
                f"There is no program {name} on the search path.",
                f"Write its path, such as ./{name}.",
            )
        if path.is_dir():
            raise BeowireError(f"{name} is a directory.", "Name the program in it.")
        if path.exists():
            raise BeowireError(f"{name} is not executable.", f"Make it so: chmod +x {name}")
        raise BeowireError(f"There is no program {name}.", "Build it, or fix the path.")
    try:
        with open(found, "rb") as stream:
            start = stream.read(4)
    except OSError:
        return  # it may be executed, though not read
    if start != b"\x7fELF" and not start.startswith(b"#!") and not _others_known():
        raise BeowireError(
            f"{found} is no program: it begins neither as ELF files do nor with #!.",
            "Build it again; a script needs a first line such as #!/bin/sh.",
        )


def _others_known() -> bool:
    """Whether the kernel was told of further kinds of programs (binfmt_misc)."""
    directory = Path("/proc/sys/fs/binfmt_misc")
    known = {entry.name for entry in directory.iterdir()} if directory.is_dir() else set()
    return bool(known - {"register", "status"})


def place(job: Job, cluster: Cluster) -> dict[str, int]:
    """How many ranks each host gets, in order; hosts without ranks are left out."""
    if job.ranks < 1:
        raise BeowireError(f"A job of {job.ranks} ranks?", "Give -n 1 or more.")
    per_node = job.per_node or math.ceil(job.ranks / len(cluster.hosts))
    if job.per_node < 0 or per_node * len(cluster.hosts) < job.ranks:
        raise BeowireError(
            f"{job.ranks} ranks do not fit on {len(cluster.hosts)} nodes with {per_node} each.",
            f"Give --ppn {math.ceil(job.ranks / len(cluster.hosts))} or more nodes.",
        )
    slots = {}
    left = job.ranks
    for host in cluster.hosts:
        if left > 0:
            slots[host] = min(per_node, left)
            left -= slots[host]
    return slots


def carried_variables() -> dict[str, str]:
    """Beowire's variables that are set here, for the ranks."""
    return {
        key: value
        for key, value in os.environ.items()
        if key.startswith("BEOWIRE_") and key not in _OWN_VARIABLES
    }


def _rank_environment(job: Job, library: Installation) -> dict[str, str]:
    """The variables that every rank gets."""
    carried = carried_variables()
    if path := library.library_path():
        carried["LD_LIBRARY_PATH"] = path
    if job.transport == "beowire":
        if not job.provider_dir and (path := library.alone_path()):
            carried["LD_LIBRARY_PATH"] = path
        carried["FI_PROVIDER_PATH"] = job.provider_dir or str(places.provider_dir())
        carried["FI_PROVIDER"] = "beowire"
        if job.eager_bytes:
            carried["BEOWIRE_EAGER_MAX"] = str(job.eager_bytes)
    return {**carried, **job.environment}


def _program(job: Job, cluster: Cluster, session_dir: Path | None = None) -> list[str]:
    """The program, on a lab behind the script that pins by global rank, and as its user."""
    words = list(job.before)
    if job.user:
        words += user.become(job.user, session_dir)
    if job.bind == "core" and cluster.shares_cores:
        words.append(str(places.package_file("run/pin.sh")))
    return [*words, *job.program]


def _binding(job: Job, cluster: Cluster) -> str:
    """What the launcher shall bind a rank to: on a lab nothing, there the script pins."""
    return "core" if job.bind == "core" and not cluster.shares_cores else "none"


YIELD = "OMPI_MCA_mpi_yield_when_idle"
"""Who sets it decides. Ranks that exchange without a pause are faster with it where they share
cores; ranks that wait long and yield in a loop meanwhile starve others for seconds under EEVDF
(Linux 6.6 and later; seen with 6.18, lab book; fixed by 79104becf42b and 1319ea57529e)."""


def _crowded(job: Job, cluster: Cluster) -> bool:
    """More ranks than cores: waiting ranks should make way, over either transport."""
    return cluster.shares_cores and job.ranks > (os.cpu_count() or 1)


def _openmpi(
    job: Job,
    library: Installation,
    cluster: Cluster,
    slots: dict[str, int],
    session_dir: Path | None,
) -> Command:
    if blank := [word for word in cluster.agent if any(each.isspace() for each in word)]:
        raise BeowireError(
            f"Open MPI's launcher cannot start {blank[0]!r}: a blank ends a word there.",
            "Name a path without blanks, such as that of a symbolic link.",
        )
    environment = _rank_environment(job, library)
    arguments = [str(library.launcher)]
    if os.geteuid() == 0:
        arguments.append("--allow-run-as-root")
    arguments += ["--host", ",".join(f"{host}:{count}" for host, count in slots.items())]
    arguments += ["-n", str(job.ranks), "--bind-to", _binding(job, cluster)]
    if job.working_dir:
        arguments += ["--wdir", job.working_dir]
    settings = _openmpi_transport(job, library, cluster)
    launching = {"ssh_agent": " ".join(cluster.agent)}
    own: dict[str, str] = {}
    if library.library_dir is not None:
        own["LD_LIBRARY_PATH"] = environment["LD_LIBRARY_PATH"]
    if cluster.network:
        launching["if_include"] = cluster.network
    if session_dir is not None and cluster.shares_host_name:
        own["TMPDIR"] = str(session_dir)  # each node sets its own, see lab/node.py
    elif session_dir is not None and cluster.lab is not None:
        launching["tmpdir_base"] = str(session_dir)
    if job.user:  # its daemons are root's, and believe their ranks alone
        own |= {"PMIX_MCA_gds": "hash", "PMIX_MCA_psec": "none"}
    if job.transport == "tcp" and job.tcp_stack == "ofi":
        environment["FI_PROVIDER"] = "tcp"
    elif job.transport == "tcp" and job.tcp_stack == "ucx":
        environment["UCX_TLS"] = "tcp,self,sm"
    modern = library.version >= (5, 0)
    if modern and cluster.shares_host_name:
        raise BeowireError(
            f"{library.name} starts no ranks on loopback addresses, and this lab has no others.",
            "Take --mpi mpich or Open MPI 4, or a lab of namespaces (as root, on a host).",
        )
    if modern:  # ranks fill the nodes in turn, which Open MPI 4 does unasked
        arguments += ["--map-by", "slot"]
    for key, value in launching.items():
        option, name = ("--prtemca", _PRRTE[key]) if modern else ("--mca", _ORTE[key])
        arguments += [option, name, value]
    for key, value in settings.items():
        arguments += ["--mca", key, value]
    for key, value in environment.items():
        arguments += ["-x", f"{key}={value}"]
    return Command([*arguments, *_program(job, cluster, session_dir)], own)


# The launchers' settings, by what they mean: Open MPI 4's and, since 5, PRRTE's.
_ORTE = {
    "ssh_agent": "plm_rsh_agent",
    "if_include": "oob_tcp_if_include",
    "tmpdir_base": "orte_tmpdir_base",
}
_PRRTE = {
    "ssh_agent": "plm_ssh_agent",
    "if_include": "prte_if_include",
    "tmpdir_base": "prte_tmpdir_base",
}


def _openmpi_transport(job: Job, library: Installation, cluster: Cluster) -> dict[str, str]:
    """The settings that hold Open MPI to a transport."""
    modern = library.version >= (5, 0)
    memory = "sm" if modern else "vader"
    settings: dict[str, str] = {}
    if job.transport == "memory":
        settings |= {"pml": "ob1", "btl": f"{memory},self"}
        if job.eager_bytes:
            settings[f"btl_{memory}_eager_limit"] = str(job.eager_bytes)
    elif job.transport == "beowire":
        # btl without tcp: what is not carried by Beowire fails instead of going over TCP.
        settings |= {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": "beowire"}
        if modern:  # one-sided operations go by btl ofi, which obeys the same include
            settings["btl"] = "self,sm,ofi"
        else:
            settings["btl"] = "self,vader"
    elif job.tcp_stack == "native":
        settings |= {"pml": "ob1", "btl": f"tcp,{memory},self"}
        if cluster.network:
            settings["btl_tcp_if_include"] = cluster.network
    elif job.tcp_stack == "ofi":
        provider = "tcp" if modern else "tcp;ofi_rxm"
        settings |= {"pml": "cm", "mtl": "ofi", "mtl_ofi_provider_include": provider}
    else:
        settings |= {"pml": "ucx", "pml_ucx_tls": "any", "pml_ucx_devices": "any", "osc": "ucx"}
    if not modern:  # Debian's settings exclude the one-sided component that works over messages
        settings.setdefault("osc", "sm,pt2pt")
    if _crowded(job, cluster) and YIELD not in os.environ:
        settings["mpi_yield_when_idle"] = "1"
    return settings


def _mpich(
    job: Job,
    library: Installation,
    cluster: Cluster,
    slots: dict[str, int],
    session_dir: Path | None,
) -> Command:
    del session_dir
    if cluster.agent[1:] and cluster.agent[0] != "ssh":
        raise BeowireError(
            f"MPICH's launcher takes a command without options: {' '.join(cluster.agent)}",
            "Put options into ~/.ssh/config, or into a script that --ssh names.",
        )
    if job.transport == "memory":
        raise BeowireError(
            "MPICH cannot be held to its own shared memory by its launcher.",
            "Take --mpi openmpi, or a directory with an Open MPI.",
        )
    environment = _rank_environment(job, library)
    if job.transport == "beowire" or job.tcp_stack != "ucx":
        environment["MPIR_CVAR_CH4_NETMOD"] = "ofi"
        environment.setdefault("FI_PROVIDER", "tcp")
    else:
        environment |= {"MPIR_CVAR_CH4_NETMOD": "ucx", "UCX_TLS": "tcp,self"}
    arguments = [str(library.launcher), "-launcher", "ssh"]
    arguments += ["-launcher-exec", *cluster.agent[:1]]
    if cluster.interface:
        arguments += ["-iface", cluster.interface]
    hosts = ",".join(f"{host}:{count}" for host, count in slots.items())
    arguments += ["-hosts", hosts, "-n", str(job.ranks)]
    arguments += ["-bind-to", _binding(job, cluster)]
    if job.working_dir:
        arguments += ["-wdir", job.working_dir]
    for key, value in environment.items():
        arguments += ["-genv", key, value]
    return Command([*arguments, *_program(job, cluster)], {})
