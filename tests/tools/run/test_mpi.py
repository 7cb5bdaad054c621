# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An MPI is known by its name or its directory; what is none is told apart from one that lacks
something."""

import sys
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.run import mpi
from beowire_cli import beowire

OPENMPI_4 = "mpirun.openmpi (OpenRTE) 4.1.4\n"
OPENMPI_5 = "mpirun (Open MPI) 5.0.11\n"
MPICH_4 = "HYDRA build details:\n    Version:                                 4.3.2\n"
INTEL = "Intel(R) MPI Library for Linux* OS, Version 2021.11\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found out about these installations is not kept among the user's."""
    monkeypatch.setenv("BEOWIRE_CACHE", str(tmp_path / "cache"))


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
    assert "--mpi DIR" in caught.value.fix


WORKS_ALONE = """case $LD_LIBRARY_PATH in
*/alone | */alone:*) echo mca:mtl:ofi:version:4.1.4 ;;
*) sleep 1000 ;;
esac"""
NOT_ALONE = """case $LD_LIBRARY_PATH in
*/alone*) echo mca:mtl:psm2:version ;;
*) echo mca:mtl:ofi:version:4.1.4 ;;
esac"""


@pytest.mark.parametrize(("script", "alone"), [(WORKS_ALONE, True), (NOT_ALONE, False)])
def test_libfabric_with_beowire_alone_is_used_where_it_works(
    script: str, alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/of/the/user")
    prefix = installed(tmp_path / "mpi", OPENMPI_4)
    log = tmp_path / "log"
    info = prefix / "bin" / "ompi_info"
    info.write_text(f"#!/bin/sh\necho asked >> {log}\n{script}\n")
    info.chmod(0o755)
    found = mpi.find(str(prefix))
    expected = f"{places.provider_dir()}/alone:/of/the/user" if alone else ""
    for _ in range(3):
        found.check_libfabric()
        assert found.alone_path() == expected
    assert log.read_text() == "asked\n" * (1 if alone else 2)  # with and without


def test_an_mpi_with_a_library_of_its_own_has_its_own_libfabric(tmp_path: Path) -> None:
    prefix = installed(tmp_path / "mpi", OPENMPI_5, ompi_info="mca:mtl:ofi:version:5")
    (prefix / "lib").mkdir()
    (prefix / "lib" / "libmpi.so.40").touch()
    assert mpi.find(str(prefix)).alone_path() == ""


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
    assert "--mpi" in caught.value.fix


@pytest.mark.parametrize(
    ("says", "program", "library"),
    [(MPICH_4, "examples/pi", "libmpi.so.40"), (OPENMPI_4, "examples/pi.mpich", "libmpich.so.12")],
)
def test_a_program_of_another_mpi_is_refused(
    says: str, program: str, library: str, tmp_path: Path
) -> None:
    """Each of its ranks would run alone, and the job would end well."""
    found = mpi.find(str(installed(tmp_path / "mpi", says)))
    path = str(places.product(program))
    for words in ([path], ["nice", "-n", "5", path], ["sh", "-c", path]):
        with pytest.raises(BeowireError, match=f"pi.* was built with .*{library}") as caught:
            found.check_program(words)
        assert "Give --mpi " in caught.value.fix
    own = path.removesuffix(".mpich") if says == OPENMPI_4 else f"{path}.mpich"
    for words in (
        [own],
        ["sh", "-c", f"{path} x"],
        [str(tmp_path / "nothing")],
        [__file__, path[1:]],
    ):
        found.check_program(words)


@pytest.mark.parametrize(
    ("told", "families"),
    [
        ("libmpi.so.12 => /x (0x1)", ["mpich"]),
        ("libmpi.so.20 => /x", ["openmpi"]),
        ("liba.so => /a\n\tlibmpi.so.40 => not found", ["openmpi"]),
        ("libmpich.so.12 => /x\n\tlibmpi.so.40 => /y", ["mpich", "openmpi"]),
        ("libmpi_cxx.so.40 => /x\n\tlibnompi.so.12 => /y", []),
        ("\tstatically linked", []),
    ],
)
def test_families_in_what_ldd_says(
    told: str, families: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ldd").write_text(f"#!/bin/sh\ncat <<'END'\n\t{told}\nEND\n")
    (tmp_path / "ldd").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert sorted(mpi._linked_families(Path(sys.executable), "")) == families


def test_the_command_names_the_fix() -> None:
    arguments = ["--hosts", "a,b", "-n", "2", "--transport", "tcp", "--mpi", "/nowhere"]
    answer = beowire("run", *arguments, "--", "true")
    assert answer.status == 1
    assert "--mpi /nowhere: there is no directory" in answer.errors
    assert "Traceback" not in answer.errors
