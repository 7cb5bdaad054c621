# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Packages of rpm: what is in them, what its checker says, and the life of an installation in an
empty root directory. They are made of the products of this build, but for one long test."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from beowire import __version__, places
from package_build import build as build_debs
from rpm_build import Root, Rpms, by_name, of_this_build

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
from beowire_cli import beowire

SPEC = places.source("packaging/rpm/beowire.spec")
DEBIAN = places.source("packaging/debian")
NAMES = {"libbeowire1": "libbeowire", "libbeowire-dev": "libbeowire-devel"}
"""Names that differ: Debian's, and rpm's."""
DKMS = f"-m beowire -v {__version__}-"
SHARED = re.compile(r"/mpi(run|exec)\.|/(libfabric|beowire)$")
"""What a wider pattern of another package covers, and directories of several packages."""
CONFIGS = {"beowired": "beowired.conf", "openmpi-beowire": "openmpi.conf"}


@pytest.fixture(scope="module")
def rpms(tmp_path_factory: pytest.TempPathFactory) -> list[Rpms]:
    """Two builds, of which the second is newer."""
    with pytest.MonkeyPatch.context() as patched:
        base = tmp_path_factory.mktemp("rpm")
        older = of_this_build(base / "1", "1", patched)
    with pytest.MonkeyPatch.context() as patched:
        return [older, of_this_build(base / "2", "2", patched)]


@pytest.fixture(scope="module")
def listed(rpms: list[Rpms]) -> dict[str, set[str]]:
    return {name: set(rpms[0].said(name, "--list")) for name in rpms[0].files}


def debian_names() -> set[str]:
    text = (DEBIAN / "control").read_text()
    return {NAMES.get(each, each) for each in re.findall(r"^Package: (.+)$", text, re.MULTILINE)}


def test_the_packages_are_those_of_debian(rpms: list[Rpms]) -> None:
    assert set(rpms[0].files) == debian_names()


def test_files_are_in_the_packages_that_have_them_in_debian(listed: dict[str, set[str]]) -> None:
    """By what debhelper is told; a pattern of a directory stands for all in it."""
    found = 0
    for file in DEBIAN.glob("*.install"):
        those = listed[NAMES.get(file.stem, file.stem)]
        # The second word of a line is a directory of Debian's alone.
        for line in (each.split()[0] for each in file.read_text().splitlines()):
            name = re.sub(r"^usr/lib/\*/", "usr/lib64/", line)
            name = re.sub(r"^lib/systemd", "usr/lib/systemd", name).replace("*", "[^/]*")
            pattern = re.compile(f"/{name}(/.*|\\.gz)?")
            assert any(pattern.fullmatch(each) for each in those), (file.name, line)
            others = {
                (package, each)
                for package, theirs in listed.items()
                for each in theirs - those
                if pattern.fullmatch(each) and not SHARED.search(each)
            }
            assert others == set(), line
            found += 1
    assert found > 15


def test_no_test_and_no_compiled_python_is_in_them(listed: dict[str, set[str]]) -> None:
    for name, files in listed.items():
        assert not [each for each in files if "__pycache__" in each or "/tests/" in each], name


def test_the_version_is_the_projects(rpms: list[Rpms]) -> None:
    assert re.search(rf"^Version: {re.escape(__version__)}$", SPEC.read_text(), re.MULTILINE)
    for name in rpms[1].files:
        assert rpms[1].said(name, "--queryformat", "%{VERSION}-%{RELEASE}") == [f"{__version__}-2"]


def test_rpmlint_finds_no_error(rpms: list[Rpms]) -> None:
    config = places.source("packaging/rpm/rpmlint.toml")
    words = ["rpmlint", "--config", str(config), str(SPEC), *map(str, rpms[0].files.values())]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert [line for line in said.stdout.splitlines() if ": E: " in line] == []
    assert re.search(r"8 packages and 1 specfiles checked; 0 errors", said.stdout), said.stdout


def test_nobody_takes_plug_ins_for_libraries_of_the_system(rpms: list[Rpms]) -> None:
    for name in ("libfabric-beowire", "beowire-sockets", "beowire"):
        provided = rpms[0].said(name, "--provides")
        assert not [each for each in provided if ".so" in each], name
    assert any("libbeowire.so.1" in each for each in rpms[0].said("libbeowire", "--provides"))
    assert "libfabric.so.1()(64bit)" in rpms[0].said("libfabric-beowire", "--requires")


def test_the_command_needs_the_python_that_built_it(rpms: list[Rpms]) -> None:
    version = "{}.{}".format(*sys.version_info)
    needed = rpms[0].said("beowire", "--requires")
    assert f"python(abi) = {version}" in needed
    assert f"/usr/bin/python{version}" in needed
    assert not [each for each in needed if each.startswith("/usr/bin/env")]


def test_settings_are_marked_as_such(rpms: list[Rpms]) -> None:
    for name, file in CONFIGS.items():
        assert rpms[0].said(name, "--configfiles") == [f"/etc/beowire/{file}"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Root:
    return Root(tmp_path_factory.mktemp("root") / "root")


def modules(calls: list[str]) -> list[str]:
    """What dkms was called for, questions left out."""
    return [each for each in calls if each.startswith("dkms") and "status" not in each]


def installed(root: Root) -> list[str]:
    return sorted(root.rpm("-qa", "--queryformat", "%{NAME} %{RELEASE}\\n").split("\n")[:-1])


def test_an_installation_starts_nothing(root: Root, rpms: list[Rpms]) -> None:
    root.rpm("-i", "--nodeps", *rpms[0].files.values())
    assert installed(root) == [f"{name} 1" for name in sorted(rpms[0].files)]
    for name in ("usr/bin/beowire", "usr/bin/mpiexec.beowire", "usr/lib64/libbeowire.so"):
        assert (root.directory / name).is_symlink(), name
    assert (root.directory / "usr/lib/systemd/system/beowired.service").is_file()
    calls = root.calls()
    assert [each for each in calls if each.startswith("systemctl")] == ["systemctl daemon-reload"]
    assert modules(calls) == [f"dkms add {DKMS}1", f"dkms install {DKMS}1"]
    assert [each.strip() for each in calls if each.startswith("ldconfig")] == ["ldconfig"]


def test_the_launcher_becomes_whichever_mpirun_is_found(root: Root, tmp_path: Path) -> None:
    fake = tmp_path / "mpirun"
    fake.write_text('#!/bin/sh\necho "mpirun $*"\n')
    fake.chmod(0o755)
    launcher = root.directory / "usr/bin/mpirun.beowire"
    words = [str(launcher), "-n", "2", "./program"]
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "mpirun -n 2 ./program\n"


def test_the_module_is_of_the_version_that_dkms_is_told(root: Root) -> None:
    conf = (root.directory / f"usr/src/beowire-{__version__}-1/dkms.conf").read_text()
    assert f'PACKAGE_VERSION="{__version__}-1"\n' in conf
    assert 'PACKAGE_NAME="beowire"\n' in conf


def test_an_upgrade_leaves_the_service_alone_and_settings_as_they_are(
    root: Root, rpms: list[Rpms]
) -> None:
    for file in CONFIGS.values():
        with (root.directory / "etc/beowire" / file).open("a") as stream:
            stream.write("# changed\n")
    root.rpm("-U", "--nodeps", *rpms[1].files.values())
    assert installed(root) == [f"{name} 2" for name in sorted(rpms[1].files)]
    for file in CONFIGS.values():
        assert "# changed" in (root.directory / "etc/beowire" / file).read_text()
    calls = root.calls()
    assert {each for each in calls if each.startswith("systemctl")} == {"systemctl daemon-reload"}
    assert modules(calls) == [
        f"dkms add {DKMS}2",
        f"dkms install {DKMS}2",
        f"dkms remove {DKMS}1 --all",
    ]
    assert not (root.directory / f"usr/src/beowire-{__version__}-1").exists()


def test_a_reinstallation_leaves_the_module(root: Root, rpms: list[Rpms]) -> None:
    root.rpm("-U", "--force", "--nodeps", rpms[1].files["beowire-dkms"])
    there = [f"dkms add {DKMS}2", f"dkms install {DKMS}2"]
    assert modules(root.calls()) == [*there, f"dkms remove {DKMS}2 --all", *there]


def test_a_removal_stops_the_service_and_leaves_nothing(root: Root, rpms: list[Rpms]) -> None:
    root.rpm("-e", "--nodeps", *rpms[1].files)
    calls = root.calls()
    assert "systemctl --no-reload disable --now beowired.service" in calls
    assert f"dkms remove {DKMS}2 --all" in calls
    assert installed(root) == []
    for file in CONFIGS.values():
        (root.directory / "etc/beowire" / f"{file}.rpmsave").unlink()
    (root.directory / "etc" / "beowire").rmdir()
    left = [root.directory / each for each in root.added()]
    assert [each for each in left if not each.is_dir()] == []
    assert [each for each in left if "beowire" in each.name or each.name == ".build-id"] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_the_whole_build_has_the_files_of_debians_packages(tmp_path: Path) -> None:
    done = beowire("package", "rpm", "--output", str(tmp_path / "rpm"))
    assert done.status == 0, done.errors
    assert "against its libraries" in done.errors
    built = by_name(sorted((tmp_path / "rpm").glob("*.rpm")))
    (tmp_path / "deb").mkdir()
    debs = build_debs(tmp_path / "deb", "1")
    differ: dict[str, set[str]] = {}
    for deb in debs:
        name = deb.name.split("_")[0]
        words = ["dpkg-deb", "--contents", str(deb)]
        told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        theirs = {told_file(line.split()[5]) for line in told.splitlines() if line[0] != "d"}
        form = ["--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\\n]"]
        listed = (line.split() for line in built.said(NAMES.get(name, name), *form))
        ours = {told_file(file) for mode, file in listed if mode[0] != "d"}
        differ[name] = comparable(theirs) ^ comparable(ours)
    assert not any(differ.values()), differ


def told_file(path: str) -> str:
    path = re.sub(r"/lib/[^/]+-linux-gnu/", "/lib64/", path.lstrip("."))
    path = re.sub(r"^/lib/systemd/", "/usr/lib/systemd/", path)
    path = re.sub(rf"^/usr/src/beowire-{re.escape(__version__)}(-1)?\b", "/usr/src/beowire", path)
    return path.removesuffix(".gz").rstrip("/")


def comparable(files: set[str]) -> set[str]:
    """Without what distributions put beside, and what only packages of rpm copy."""
    beside = re.compile(r"/(doc|lintian|licenses|\.build-id|vendored|runtime\.d)/")
    return {each for each in files if not beside.search(each)}
