# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An MPI is known by its name or its directory; what is none is told apart from one that lacks
something."""

from pathlib import Path

import pytest
from beowire import mpi
from beowire.errors import BeowireError
from beowire_cli import beowire

OPENMPI_4 = "mpirun.openmpi (OpenRTE) 4.1.4\n"
OPENMPI_5 = "mpirun (Open MPI) 5.0.11\n"
MPICH_4 = "HYDRA build details:\n    Version:                                 4.3.2\n"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.11\n"


def installed(prefix: Path, says: str, **tools: str) -> Path:
    """A directory whose mpirun says this when asked; `tools` are other programs beside it."""
    (prefix / "bin").mkdir(parents=True)
    for name, output in {"mpirun": says, **tools}.items():
        tool = prefix / "bin" / name
        tool.write_text(f"#!/bin/sh\ncat <<'END'\n{output}\nEND\n")
        tool.chmod(0o755)
    return prefix


@pytest.mark.parametrize(
    ("says", "family", "version"),
    [
        (OPENMPI_4, "openmpi", (4, 1)),
        (OPENMPI_5, "openmpi", (5, 0)),
        (MPICH_4, "mpich", (4, 3)),
    ],
)
def test_a_launcher_says_what_it_is(
    says: str, family: str, version: tuple[int, int], tmp_path: Path
) -> None:
    found = mpi.find(str(installed(tmp_path / "mpi", says)))
    assert (found.family, found.version) == (family, version)
    assert found.launcher == tmp_path / "mpi" / "bin" / "mpirun"
    assert found.library_path() == ""


@pytest.mark.parametrize(
    ("says", "library"), [(OPENMPI_5, "libmpi.so.40"), (MPICH_4, "libmpi.so.12")]
)
def test_its_library_comes_first(
    says: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/of/the/user")
    monkeypatch.setenv("BEOWIRE_BUILD", str(tmp_path / "build"))
    prefix = installed(tmp_path / "mpi", says)
    (prefix / "lib64").mkdir()
    (prefix / "lib64" / library).touch()
    *own, last = mpi.find(str(prefix)).library_path().split(":")
    assert last == "/of/the/user"
    assert own[-1] == str(prefix / "lib64")
    # Debian's MPICH calls the library so, and what is built with it asks for that name.
    aliases = [Path(each, "libmpich.so.12").resolve() for each in own[:-1]]
    assert aliases == ([prefix / "lib64" / library] if says == MPICH_4 else [])


@pytest.mark.parametrize(
    ("says", "tool", "without", "with_it"),
    [
        (OPENMPI_4, "ompi_info", "mca:mtl:psm2:version", "mca:mtl:ofi:version:4.1.4"),
        (MPICH_4, "mpichversion", "MPICH Device:  ch4:ucx", "MPICH Device:  ch4:ucx,ofi"),
    ],
)
def test_an_mpi_without_libfabric_is_refused(
    says: str, tool: str, without: str, with_it: str, tmp_path: Path
) -> None:
    mpi.find(str(installed(tmp_path / "with", says, **{tool: with_it}))).check_libfabric()
    lacking = mpi.find(str(installed(tmp_path / "without", says, **{tool: without})))
    with pytest.raises(BeowireError, match="has no libfabric") as caught:
        lacking.check_libfabric()
    assert "--mpi DIR" in caught.value.mend


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    for name in (tmp_path / "nowhere", Path("/etc/passwd")):
        with pytest.raises(BeowireError, match="there is no directory"):
            mpi.find(str(name))
    with pytest.raises(BeowireError, match="no installation of an MPI"):
        mpi.find(str(tmp_path))
    with pytest.raises(BeowireError, match=r"neither Open MPI nor MPICH.*Intel"):
        mpi.find(str(installed(tmp_path / "other", INTEL)))


@pytest.mark.parametrize(("content", "mode"), [(b"\x7fELF garbage", 0o755), (b"#!/bin/sh", 0o644)])
def test_a_launcher_that_does_not_start(content: bytes, mode: int, tmp_path: Path) -> None:
    launcher = tmp_path / "bin" / "mpirun"
    launcher.parent.mkdir()
    launcher.write_bytes(content)
    launcher.chmod(mode)
    with pytest.raises(BeowireError, match="cannot be executed") as caught:
        mpi.find(str(tmp_path))
    assert "--mpi" in caught.value.mend


def test_the_command_names_the_mend() -> None:
    arguments = ["--hosts", "a,b", "-n", "2", "--transport", "tcp", "--mpi", "/nowhere"]
    answer = beowire("run", *arguments, "--", "true")
    assert answer.status == 1
    assert "--mpi /nowhere: there is no directory" in answer.errors
    assert "Traceback" not in answer.errors
