# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire info --mpi`: the transport that an MPI would choose, by what it tells of itself."""

import subprocess
from pathlib import Path

import pytest
from beowire import places
from beowire.info import mpi
from beowire.info.mpi import Setting
from beowire_cli import beowire

PROVIDER = Path("/usr/lib/x86_64-linux-gnu/libfabric/libbeowire-fi.so")
TOLD = """\
mca:mtl:ofi:version:"mca:2.1.0"
mca:mtl:base:param:mtl:value:^ofi
mca:mtl:base:param:mtl:source:file (/etc/openmpi/openmpi-mca-params.conf:67)
mca:mtl:base:param:mtl:status:writeable
mca:mtl:ofi:param:mtl_ofi_provider_include:value:
mca:mtl:ofi:param:mtl_ofi_provider_include:source:default
mca:pml:base:param:pml:value:ob1
mca:pml:base:param:pml:source:environment
mca:pml:base:param:pml_base_verbose:value:1
"""
OFI = {"mtl": Setting("ofi"), "mtl_ofi_provider_include": Setting("beowire", "a file")}


def test_settings_are_read_with_their_sources() -> None:
    assert mpi.settings(TOLD) == {
        "mtl": Setting("^ofi", "file (/etc/openmpi/openmpi-mca-params.conf:67)"),
        "mtl_ofi_provider_include": Setting(),
        "pml": Setting("ob1", "environment"),
    }


@pytest.mark.parametrize(
    ("made", "transport", "why"),
    [
        (OFI, "beowire", "set by a file"),
        (OFI | {"pml": Setting("^ucx")}, "beowire", "provider beowire"),
        (OFI | {"pml": Setting("^ucx,cm", "x")}, "tcp", "pml = ^ucx,cm, set by x"),
        (OFI | {"pml": Setting("ob1", "environment")}, "tcp", "a variable OMPI_MCA_"),
        (OFI | {"mtl": Setting("^ofi", "y")}, "tcp", "mtl = ^ofi, set by y"),
        (OFI | {"mtl": Setting("psm2,psm")}, "tcp", "mtl = psm2,psm"),
        (OFI | {"mtl": Setting("psm2,ofi")}, "beowire", "provider beowire"),
        (OFI | {"mtl_ofi_provider_include": Setting("psm3")}, "other", "'psm3' is asked for"),
        (OFI | {"mtl_ofi_provider_include": Setting("psm3,beowire")}, "other", "first that works"),
        ({"mtl": Setting("ofi")}, "other", "no provider is named"),
    ],
)
def test_what_open_mpi_chooses(made: dict[str, Setting], transport: str, why: str) -> None:
    found = mpi.of_openmpi(made, True, PROVIDER, {})
    assert found[0] == transport
    assert why in found[1]
    assert found[2]


def test_what_open_mpi_lacks() -> None:
    assert mpi.of_openmpi(OFI, False, PROVIDER, {})[:2] == (
        "tcp",
        "it was built without libfabric (component mtl ofi)",
    )
    transport, why, change = mpi.of_openmpi(OFI, True, None, {})
    assert (transport, change) == ("tcp", "apt-get install libfabric-beowire")
    assert "FI_PROVIDER_PATH" not in why
    assert "FI_PROVIDER_PATH" in mpi.of_openmpi(OFI, True, None, {"FI_PROVIDER_PATH": "/x"})[1]


def test_a_variable_names_the_provider() -> None:
    by_variable = {"mtl": Setting("ofi")}
    found = mpi.of_openmpi(by_variable, True, PROVIDER, {"FI_PROVIDER": "beowire"})
    assert found[0] == "beowire"
    assert "the variable FI_PROVIDER" in found[1]


SET = {"FI_PROVIDER": "beowire", "FI_PROVIDER_PATH": "/x"}


@pytest.mark.parametrize(
    ("device", "variables", "transport"),
    [
        ("ch4:ucx", SET, "other"),
        ("ch3:nemesis", SET, "tcp"),
        ("ch4:ofi", SET, "beowire"),
        ("ch4:ucx,ofi", SET, "other"),
        ("ch4:ucx,ofi", SET | {"MPIR_CVAR_CH4_NETMOD": "ofi"}, "beowire"),
        ("ch4:ofi", {"FI_PROVIDER_PATH": "/x"}, "other"),
        ("ch4:ofi", {"FI_PROVIDER": "beowire"}, "other"),
    ],
)
def test_what_mpich_chooses(device: str, variables: dict[str, str], transport: str) -> None:
    told = f"MPICH Version:    \t4.0.2\nMPICH Device:    \t{device}\n"
    assert mpi.of_mpich(told, PROVIDER, variables)[0] == transport


def test_where_the_provider_is_looked_for(tmp_path: Path) -> None:
    assert mpi.provider_path({}, tmp_path) is None
    place = tmp_path / "lib" / "some-linux-gnu" / "libfabric"
    place.mkdir(parents=True)
    assert mpi.provider_path({}, tmp_path) is None
    (place / "libbeowire-fi.so").touch()
    assert mpi.provider_path({}, tmp_path) == place / "libbeowire-fi.so"
    other = tmp_path / "other"
    assert mpi.provider_path({"FI_PROVIDER_PATH": f"{other}"}, tmp_path) is None
    given = {"FI_PROVIDER_PATH": f"@{other}:{place}"}
    assert mpi.provider_path(given, tmp_path) == place / "libbeowire-fi.so"


def test_what_the_user_made_goes_before_what_the_package_makes(tmp_path: Path) -> None:
    file, own = tmp_path / "file", tmp_path / "own"
    file.write_text("# a = 1\nmtl = ofi\n  mtl_ofi_provider_include=beowire \n")
    assert mpi.presets(file, own, {}) == {"mtl": "ofi", "mtl_ofi_provider_include": "beowire"}
    own.write_text("mtl = psm2\n")
    assert mpi.presets(file, own, {}) == {"mtl_ofi_provider_include": "beowire"}
    assert mpi.presets(file, own, {"OMPI_MCA_mtl_ofi_provider_include": ""}) == {}


OWN = "psm = 1\n\tmine=\n # osc = ^ucx\nlast_of_own = 1"
"""The last line of each file ends without a newline."""
FILE = """\
# a = 1
 mtl=ofi
\tmtl_ofi_provider_include\t= \tbeowire \t
psm = 2
mine = 2
last_of_own = 2
osc = ^ucx,pt2pt
osc =^ucx
empty =
Capitals = a = b
with blanks inside = 1
named-otherwise = 1
= 1
word
\N{LATIN SMALL LETTER E WITH ACUTE} = 1
of_the_environment = 2
of_the_environment = 3
ends_as_elsewhere = 1\r
back\\slash = 1
with_z\0ero = a\0b
value = a \\n "b" 'c' $HOME `id` * ;
last = 1"""


def test_the_launcher_and_info_read_settings_by_the_same_rules(tmp_path: Path) -> None:
    made = {
        "mtl": "ofi",
        "mtl_ofi_provider_include": "beowire",
        "osc": "^ucx",
        "empty": "",
        "Capitals": "a = b",
        "ends_as_elsewhere": "1",
        "with_zero": "ab",
        "value": "a \\n \"b\" 'c' $HOME `id` * ;",
        "last": "1",
    }
    (tmp_path / "file").write_text(FILE, newline="")
    own = tmp_path / ".openmpi" / "mca-params.conf"
    own.parent.mkdir()
    own.write_text(OWN)
    variables = {"OMPI_MCA_of_the_environment": "1"}
    assert mpi.presets(tmp_path / "file", own, variables) == made
    other = {"name": "a", "line": "b", "made": "c", "theirs": "d", "trimmed": "e", "own": "f"}
    found = launched(tmp_path, variables | other)
    settings = {f"OMPI_MCA_{name}": value for name, value in made.items()}
    assert {name: found[name] for name in found if name.startswith("OMPI_MCA_")} == (
        settings | variables
    )
    assert {name: found[name] for name in other} == other


@pytest.mark.parametrize("missing", ["file", ".openmpi/mca-params.conf"])
def test_a_file_of_settings_that_is_not_there_has_none(missing: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a = 1\n")
    own = tmp_path / ".openmpi" / "mca-params.conf"
    own.parent.mkdir()
    own.write_text("b = 1\n")
    (tmp_path / missing).unlink()
    made = mpi.presets(tmp_path / "file", own, {})
    assert made == ({} if missing == "file" else {"a": "1"})
    found = launched(tmp_path, {})
    assert {name for name in found if name.startswith("OMPI_MCA_")} == {
        f"OMPI_MCA_{name}" for name in made
    }


def launched(place: Path, variables: dict[str, str]) -> dict[str, str]:
    """The environment of what the launcher becomes, with its settings in `file` there; it says
    nothing itself."""
    text = places.source("packaging/debian/mpirun.beowire").read_text()
    assert text.count("/etc/beowire/openmpi.conf") == 1
    text = text.replace("/etc/beowire/openmpi.conf", f"{place}/file")
    program = place / "mpirun.openmpi"
    program.write_text('#!/bin/sh\n[ $# = 3 ] && [ "$3" = "a  b" ] && exec env -0\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", text, "mpirun", "-n", "2", "a  b"],
        env=variables | {"HOME": str(place), "PATH": f"{place}:/usr/bin:/bin"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return dict(each.split("=", 1) for each in done.stdout.split("\0") if each)


def test_it_is_asked_alone() -> None:
    answer = beowire("info", "--mpi", "--peer", "somebody")
    assert answer.status == 1
    assert "--mpi is asked alone" in answer.errors


def test_all_on_the_search_path_are_told(tmp_path: Path) -> None:
    (tmp_path / "mpirun").write_text("#!/bin/sh\necho 'mpirun (Open MPI) 9.7.1'\n")
    (tmp_path / "mpirun").chmod(0o755)
    (tmp_path / "mpiexec").symlink_to("mpirun")
    answer = beowire("info", "--mpi", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert answer.status == 0, answer.errors
    assert answer.output.count("Open MPI 9.7") == 1
    assert f"Open MPI 9.7 ({tmp_path}/mpirun): tcp" in answer.output
