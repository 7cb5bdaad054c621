# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The hosts that a launcher of MPI programs was told, in its command line or in a file.

The words are some process' own, and what follows the program are the program's. Nobody reads a
file for another user's process that this user does not own.
"""

import itertools
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from beowire.run.cluster import hosts_in

_LAUNCHER = re.compile(r"(?:mpirun|mpiexec|prterun|prun|orterun|hydra)(?:[._-].*)?")
_SRUN = "srun"
_OF_OPEN_MPI = re.compile(r"prterun.*|prun.*|orterun.*|.*[._-]openmpi.*")
_HOSTS = frozenset({"host", "hosts", "H"})
_FILES = frozenset({"hostfile", "machinefile", "default-hostfile"})
_FILE_OF_HYDRA = "f"
"""Open MPI has no such option."""
_VARIABLES = frozenset({"genv", "env"})
"""Their two words may be one: NAME=VALUE."""
_FILE_MAX = 1 << 20
_WORDS_MAX = 16384


def _with(values: int, options: str) -> dict[str, int]:
    return dict.fromkeys(options.split(), values)


_TAKES = {
    **_with(
        0,
        """
        allow-run-as-root oversubscribe nooversubscribe use-hwthread-cpus bynode byslot pernode
        bind-to-core bind-to-socket bind-to-none bycore bysocket report-bindings display-map
        display-allocation display-devel-map display-devel-allocation display-topo tag-output
        timestamp-output xml merge-stderr-to-stdout quiet q verbose v debug tv debug-daemons
        debug-daemons-file leave-session-attached do-not-launch enable-recovery disable-recovery
        continuous preload-binary s get-stack-traces report-state-on-timeout noprefix novm nolocal
        do-not-resolve index-argv-by-rank report-child-jobs-separately set-cwd-to-session-dir
        genvnone genvall envnone envall enable-x disable-x info print-all-exitcodes profile
        prepend-rank l disable-auto-cleanup disable-hostname-propagation pmi-port skip-launch-node
        print-rank-map rr
        """,
    ),
    **_with(
        1,
        """
        n np c N npernode npersocket map-by rank-by bind-to x wdir wd path prefix output
        output-filename output-directory am rf rankfile report-pid report-uri stdin timeout cpu-list
        cpu-set cpus-per-proc cpus-per-rank slot-list ppr max-restarts preload-files tune
        personality dvm dvm-uri forward-signals stream-buffering launch-agent ompi-server xterm
        display runtime-options initial-errhandler memory-alloc-kind gpu-support
        configfile genvlist envlist launcher launcher-exec bootstrap bootstrap-exec rmk topolib
        membind binding demux iface ppn perhost prepend-pattern outfile-pattern errfile-pattern
        nameserver order-nodes localhost usize gpus-per-proc soft arch
        """,
    ),
    **_with(2, "mca gmca pmca omca gomca prtemca gprtemca pmixmca gpmixmca genv env"),
}
"""How many words options take, of Open MPI 4 and 5 (mpirun(1), prterun(1)) and of MPICH's Hydra
(mpiexec(1)), as far as they agree."""


def is_launcher(words: list[str]) -> bool:
    """Whether these are the words of a launcher, Slurm's among them."""
    name = Path(words[0]).name if words else ""
    return name == _SRUN or _LAUNCHER.fullmatch(name) is not None


def named_hosts(words: list[str], directory: Path, owner: int) -> list[str]:
    """The hosts in the words of a launcher, or in the files that they name. `directory`: where the
    launcher runs, `owner`: whose process it is."""
    name = Path(words[0]).name if words else ""
    if not _LAUNCHER.fullmatch(name):
        return []
    of_hydra = not _OF_OPEN_MPI.fullmatch(name)
    hosts: dict[str, None] = {}
    files: dict[str, None] = {}
    for option, value in _options(words[1:_WORDS_MAX], of_hydra):
        if option in _HOSTS:
            hosts |= dict.fromkeys(hosts_in(value.split(",")))
        else:
            files[value] = None
    if hosts:
        return list(hosts)
    return [host for file in files for host in hosts_in(_lines(directory / file, owner))]


def _options(words: list[str], of_hydra: bool) -> Iterator[tuple[str, str]]:
    """The options that tell hosts, and their values, of all programs that a launcher was told."""
    for told, of_one in itertools.groupby(words, lambda word: word != ":"):
        if told:
            yield from _before_program(list(of_one), of_hydra)


def _before_program(words: list[str], of_hydra: bool) -> Iterator[tuple[str, str]]:
    """The same of one program. An option that is not known may take a value or none, so that what
    follows it may be the program's: nothing more is read then."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        option, equals, value = words[at].removeprefix("-").removeprefix("-").partition("=")
        following = words[at + 1] if at + 1 < len(words) else ""
        takes = _takes(option, of_hydra)
        if takes is None:
            return
        if _tells(option, of_hydra):
            yield option, value if equals else following
        if option in _VARIABLES and "=" in following:
            takes = 1
        at += 1 + (0 if equals else takes)


def _tells(option: str, of_hydra: bool) -> bool:
    """Whether hosts are told by this option."""
    return option in _HOSTS | _FILES or (of_hydra and option == _FILE_OF_HYDRA)


def _takes(option: str, of_hydra: bool) -> int | None:
    """How many words an option takes; None: it is not known."""
    return 1 if _tells(option, of_hydra) else _TAKES.get(option)


def _lines(path: Path, owner: int) -> list[str]:
    """Of a file that a process of this owner named; none of what is no plain file, too long, or
    not the owner's: who asks about processes of his own is bound by his own rights, though. Such a
    file is not opened either, which can have effects."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, ValueError):
        return []
    try:
        status = os.fstat(place)
        if not stat.S_ISREG(status.st_mode) or owner not in (status.st_uid, os.geteuid()):
            return []
        if status.st_size > _FILE_MAX:
            return []
        file = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.read(file, _FILE_MAX).decode(errors="replace").splitlines()
        finally:
            os.close(file)
    except OSError:
        return []
    finally:
        os.close(place)
