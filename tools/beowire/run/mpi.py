# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which MPI starts a program: its launcher, its family and version, and where its library lies.

An MPI is named `openmpi` (the system's), `mpich` (the Python wheel set up by the tests, since
Debian's MPICH has no libfabric), or by the directory where it is installed. Its launcher is asked
what it is.
"""

import contextlib
import os
import re
import shutil
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from beowire import installed, places
from beowire.errors import BeowireError
from beowire.run import asked, kept_facts
from beowire.terminal import note

Mpi = str
"""`openmpi`, `mpich`, or the directory of an installation."""
Family = Literal["openmpi", "mpich"]

_NAMES: dict[Family, str] = {"openmpi": "Open MPI", "mpich": "MPICH"}
_LAUNCHERS = ("mpirun", "mpiexec", "mpiexec.hydra")
_ALONE = "adapters/libfabric/alone/libfabric.so.1"
_MEND = "Give --mpi openmpi, --mpi mpich, or the directory of an MPI that holds bin/mpirun."


@dataclass(frozen=True)
class Installation:
    """An MPI as it is installed here."""

    family: Family
    version: tuple[int, int]
    launcher: Path
    library_dir: Path | None
    """Where its library lies; None: where programs find it by themselves."""

    @property
    def name(self) -> str:
        return f"{_NAMES[self.family]} {self.version[0]}.{self.version[1]}"

    @property
    def launcher_rank_bytes(self) -> int:
        """What its launcher sends over TCP for each rank, measured, with room. Open MPI 5 tells
        every rank, by a socket on its own node, all about the machine."""
        return 250_000 if self.family == "openmpi" and self.version >= (5, 0) else 20_000

    def library_path(self) -> str:
        """The value of LD_LIBRARY_PATH by which programs find this MPI's library; empty: none is
        needed."""
        if self.library_dir is None:
            return ""
        own = [str(self.library_dir)]
        if self.family == "mpich" and (alias := _debian_alias(self.library_dir)) is not None:
            own.insert(0, str(alias))
        return ":".join([*own, *os.environ.get("LD_LIBRARY_PATH", "").split(":")]).rstrip(":")

    def alone_path(self) -> str:
        """The value of LD_LIBRARY_PATH by which this MPI finds the libfabric of this build, which
        knows Beowire alone; empty: it has one of its own, or does not work with that.

        Distributions link theirs with the libraries of many devices, and each process waits for
        their start, whatever FI_PROVIDER says: 0.36 s with Debian 12's."""
        path = self._alone_candidate()
        return path if path and self._tells_of_libfabric(path) else ""

    def _alone_candidate(self) -> str:
        library = places.product_path(_ALONE)
        if self.family != "openmpi" or self.library_dir is not None or not library.exists():
            return ""
        return ":".join([str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")

    def ask_ahead(self, words: list[str], *, libfabric: bool) -> None:
        """Begins what the checks of these words, and of libfabric, will ask other commands."""
        with contextlib.suppress(OSError):  # the checks will meet it again
            for name in _programs(words):
                if _is_elf(name):
                    asked.begin(["ldd", name], _ldd_variables(self.library_path()))
            path = self._alone_candidate()
            if libfabric and Path(self._about()[0]).exists() and not self._is_known(path):
                asked.begin(self._about(), _library_path(path))

    def check_program(self, words: list[str]) -> None:
        """Fails if a program of this command line, as it lies here, is linked with an MPI of
        another family: each of its ranks would believe that it is alone."""
        for name in _programs(words):
            linked = _linked_families(name, self.library_path())
            if not linked or self.family in linked:
                continue
            family, library = next(iter(linked.items()))
            raise BeowireError(
                f"{name} was built with {_NAMES[family]} ({library}) and would be started by "
                f"{self.name}: each of its ranks would run alone.",
                f"Give --mpi {family} or the directory of such an MPI by --mpi DIR, or build the "
                f"program with {self.name}.",
            )

    def check_libfabric(self) -> None:
        """Fails if this MPI says that it was built without libfabric."""
        if not Path(self._about()[0]).exists():
            return  # nobody to ask; the program will tell
        if not self.alone_path() and not self._tells_of_libfabric(""):
            what = {"openmpi": "the component mtl ofi", "mpich": "the device ch4:ofi"}
            raise BeowireError(
                f"The {self.name} of {self.launcher} has no libfabric ({what[self.family]} is "
                "missing), and Beowire is reached through that.",
                "Name an MPI that was built with libfabric by --mpi DIR, such as one installed "
                "from the Python packages openmpi and mpich.",
            )

    def told_about(self, variables: Mapping[str, str]) -> str:
        """All that it tells of how it was built and, with these variables, is set; empty: nobody
        can be asked."""
        tool = self._about()
        if not Path(tool[0]).exists():
            return ""
        more = ["--all", "--level", "9"] if self.family == "openmpi" else []
        return _output([*tool, *more], variables)

    def _about(self) -> list[str]:
        """The command that tells how this MPI was built, which may be missing."""
        tool = {"openmpi": ["ompi_info", "--parsable"], "mpich": ["mpichversion"]}[self.family]
        return [str(self.launcher.parent / tool[0]), *tool[1:]]

    def _tells_of_libfabric(self, library_path: str) -> bool:
        """Whether it says that it can use libfabric, with libraries from there first."""
        wanted = {"openmpi": r"^mca:mtl:ofi:", "mpich": r"^MPICH Device:.*\bofi\b"}[self.family]
        tool = self._about()
        if not Path(tool[0]).exists():
            return False
        fact, about = self._fact(library_path)
        if self._is_known(library_path):
            return True
        if fact not in _denied:
            told = _output(tool, _library_path(library_path))
            if re.search(wanted, told, re.MULTILINE):
                kept_facts.keep(fact, about)
                _known.add(fact)
                return True
            _denied.add(fact)
        return False

    def _is_known(self, library_path: str) -> bool:
        fact, about = self._fact(library_path)
        if fact not in _known and kept_facts.is_known(fact, about):
            _known.add(fact)
        return fact in _known

    def _fact(self, library_path: str) -> tuple[str, list[Path]]:
        """That it can use libfabric, as it is kept: what it says would change with these files."""
        tool = Path(self._about()[0])
        about = [tool, self.launcher]
        if library_path:
            about.append(places.product_path(_ALONE))
        return f"{tool} of {self.name} knows libfabric with LD_LIBRARY_PATH={library_path}", about


@cache
def find(name: Mpi) -> Installation:
    """The MPI of this name, or an error that says how to get one."""
    if name == "openmpi":
        return _system_openmpi()
    if name == "mpich":
        return _wheel()
    prefix = Path(name).expanduser().absolute()
    if not prefix.is_dir():
        raise BeowireError(f"--mpi {name}: there is no directory {prefix}.", _MEND)
    launcher = _first(prefix / "bin" / each for each in _LAUNCHERS)
    if launcher is None:
        raise BeowireError(
            f"--mpi {name}: {prefix} is no installation of an MPI, it has no bin/mpirun.", _MEND
        )
    return _asked(launcher, prefix)


def on_search_path() -> list[Installation]:
    """All that a shell would find, each once, by the name under which it was found first."""
    found: dict[Path, Installation] = {}
    for name in (*_LAUNCHERS, *(f"{each}.{mpi}" for each in _LAUNCHERS[:2] for mpi in _NAMES)):
        path = shutil.which(name)
        if path is None or Path(path).resolve() in found:
            continue
        with contextlib.suppress(BeowireError):
            if (told := _family(_output([path, "--version"]))) is not None:
                found[Path(path).resolve()] = Installation(*told, Path(path), None)
    return list(found.values())


def wheel_dir(name: str) -> Path:
    """Where an MPI from a Python wheel is installed for the tests."""
    return places.root() / ".venv" / name


def _wheel() -> Installation:
    if installed.directories() is not None:
        raise BeowireError("There is no MPICH that speaks libfabric at a known place.", _MEND)
    path = wheel_dir("mpich")
    if not (path / "bin" / "mpirun").exists():
        python = places.root() / ".venv" / "bin" / "python"
        raise BeowireError(
            "The MPICH that speaks libfabric (a Python wheel) is not installed.",
            f"Install it: {python} -m pip install --prefix {path} 'mpich>=4.3,<5'   (./beowire "
            "test does that), or name another MPICH by --mpi DIR.",
        )
    return _asked(path / "bin" / "mpirun", path)


def _system_openmpi() -> Installation:
    """Debian's name for the launcher tells it from MPICH's; elsewhere it is just mpirun."""
    for name in ("mpirun.openmpi", "mpirun"):
        path = shutil.which(name)
        if path is not None and (told := _family(_output([path, "--version"]))) is not None:
            family, version = told
            if family == "openmpi":
                return Installation(family, version, Path(path), None)
    raise BeowireError(
        "Open MPI is not installed.",
        "Install it: apt-get install openmpi-bin, or name another MPI by --mpi DIR.",
    )


def _asked(launcher: Path, prefix: Path) -> Installation:
    told = _output([str(launcher), "--version"])
    found = _family(told)
    if found is None:
        said = next(iter(told.splitlines()), "nothing")
        raise BeowireError(
            f"{launcher} is the launcher of neither Open MPI nor MPICH: asked for its version, it "
            f"says {said!r}.",
            _MEND,
        )
    family, version = found
    library = {"openmpi": "libmpi.so.40", "mpich": "libmpi.so.12"}[family]
    beside = _first(prefix / each / library for each in ("lib", "lib64"))
    return Installation(family, version, launcher, beside.parent if beside else None)


def _family(told: str) -> tuple[Family, tuple[int, int]] | None:
    """Family and version in what a launcher says of itself."""
    patterns: dict[Family, str] = {
        "openmpi": r"\((?:Open MPI|OpenRTE)\) (\d+)\.(\d+)",
        "mpich": r"HYDRA build details:\s+Version:\s+(\d+)\.(\d+)",
    }
    for family, pattern in patterns.items():
        if match := re.search(pattern, told):
            return family, (int(match[1]), int(match[2]))
    return None


_known: set[str] = set()
_denied: set[str] = set()
"""What this process found to be facts, and to be none: the next one asks again, as an MPI may have
been fixed."""


def _output(command: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; whether it succeeds is told by that."""
    try:
        return asked.answer(command, variables).text
    except subprocess.TimeoutExpired as error:
        raise BeowireError(f"{' '.join(command)} does not end.", _MEND) from error
    except OSError as error:
        raise BeowireError(
            f"{command[0]} cannot be executed: {error.strerror or error}.", _MEND
        ) from error


def _library_path(path: str) -> dict[str, str]:
    return {"LD_LIBRARY_PATH": path} if path else {}


def _ldd_variables(library_path: str) -> dict[str, str]:
    return {"LC_ALL": "C", "LD_LIBRARY_PATH": library_path}


def _programs(words: list[str]) -> list[str]:
    """The programs in a command line: the first word, and others that are paths of some."""
    first, *others = words
    names = [shutil.which(first), *(shutil.which(each) for each in others if "/" in each)]
    return [name for name in names if name is not None]


def _is_elf(name: str) -> bool:
    with open(name, "rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _linked_families(name: str, library_path: str) -> dict[Family, str]:
    """The families of MPI whose libraries a program is linked with, directly or through others, and
    the library of each; none for scripts, static programs and where nothing can tell."""
    try:
        if not _is_elf(name):
            return {}
        said = asked.answer(["ldd", name], _ldd_variables(library_path)).text
    except (OSError, subprocess.TimeoutExpired):
        return {}
    found: dict[Family, str] = {}
    for line in said.splitlines():
        for family, pattern in _LIBRARIES.items():
            if match := re.match(pattern, line.strip()):
                found.setdefault(family, match[0])
    return found


_LIBRARIES: dict[Family, str] = {
    "openmpi": r"libmpi\.so\.[2-9]\d\b",
    "mpich": r"libmpich(?:-\w+)?\.so\.\d+|libmpi\.so\.12\b",
}
"""Names of shared libraries. MPICH and what is compatible with it agreed on libmpi.so.12; Open MPI
has higher numbers (20 in version 2, 40 from 3 on)."""


def _debian_alias(library_dir: Path) -> Path | None:
    """A directory by which programs built with Debian's MPICH, which call the library
    libmpich.so.12, find this one. What the library itself needs lies beside it in `mpich`, as the
    wheel has it, and is searched for from the alias."""
    wanted = library_dir / "libmpi.so.12"
    alias = _alias_dir() / "mpich" / f"{zlib.crc32(str(library_dir).encode()):08x}"
    links = {alias / "libmpich.so.12": wanted, alias / "mpich": library_dir / "mpich"}
    try:
        alias.mkdir(parents=True, exist_ok=True)
        for link, target in links.items():
            if not link.is_symlink() and target.exists():
                _link(link, target)
    except OSError as error:
        note(
            f"{alias} cannot be written ({error.strerror}): programs built with Debian's MPICH "
            "will not find this library"
        )
        return None
    return alias


def _alias_dir() -> Path:
    """Nobody writes into an installation; what is made for one lies with what is made anew."""
    return places.cache_dir() if installed.directories() is not None else places.build_dir()


def _link(link: Path, target: Path) -> None:
    """Makes a link, whoever else makes it just now."""
    try:
        link.symlink_to(target)
    except FileExistsError:
        return


def _first(paths: Iterable[Path]) -> Path | None:
    return next((path for path in paths if path.exists()), None)
