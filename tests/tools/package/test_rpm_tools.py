# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a build of packages of rpm is told, and what is said if there can be none."""

import fcntl
import re
import subprocess
from pathlib import Path

import pytest
from beowire import __version__, places
from beowire.errors import BeowireError
from beowire.package import rpm, stage, vendored
from beowire.progress import Progress

SPEC = places.source("packaging/rpm/beowire.spec")


@pytest.mark.parametrize(
    ("told", "native"),
    [
        pytest.param('ID="rocky"\nID_LIKE="rhel centos fedora"\n', True, id="rocky"),
        pytest.param("ID=fedora\n", True, id="fedora"),
        pytest.param('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', True, id="leap"),
        pytest.param("ID=debian\n", False, id="debian"),
        pytest.param("ID=ubuntu\nID_LIKE=debian\nNAME='fedora'\n", False, id="ubuntu"),
        pytest.param("", False, id="empty"),
    ],
)
def test_which_distributions_are_of_rpm(told: str, native: bool, tmp_path: Path) -> None:
    file = tmp_path / "os-release"
    file.write_text(told)
    assert rpm.native(file) is native
    assert rpm.native(tmp_path / "missing") is False


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEOWIRE_BUILD", str(tmp_path))
    monkeypatch.setattr(rpm, "_run", lambda *_: pytest.fail("rpmbuild was started"))
    work = tmp_path / "packages" / "work-rpm"
    work.mkdir(parents=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BeowireError, match="under way"):
            rpm.build(tmp_path / "out", "1", Progress(rpm.STEPS))
    assert not (work / "source").exists()


def test_why_a_build_failed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "error: Failed build dependencies:\n\tmeson >= 1.0 is needed by beowire-0.1.0-1.x86_64\n"
    )
    failed = rpm.failed(log)
    assert failed.what.endswith("that are not here: meson >= 1.0.")
    assert "dnf builddep" in failed.fix
    log.write_text("one\ntwo\n")
    assert "two" in rpm.failed(log).fix


def test_only_ours_are_replaced(tmp_path: Path) -> None:
    for name in ("beowire-1.x86_64.rpm", "mine-1.noarch.rpm", "beowire.txt", "beowire_1_all.deb"):
        (tmp_path / name).touch()
    assert [each.name for each in rpm.packages_in(tmp_path)] == ["beowire-1.x86_64.rpm"]


def test_the_copy_of_the_sources(tmp_path: Path) -> None:
    assert stage.lay_out_rpm(tmp_path / "source", "7~rc1") == f"{__version__}-7~rc1"
    rpm_dir = tmp_path / "source" / "rpm"
    for name in ("beowire.spec", "beowired.conf", "openmpi.conf", "mpirun.beowire"):
        assert (rpm_dir / name).is_file(), name
    assert not (tmp_path / "source" / "debian").exists()
    with pytest.raises(BeowireError, match="no revision"):
        stage.lay_out_rpm(tmp_path / "other", "1-2")


def test_copies_of_others_come_with_whole_licences(tmp_path: Path) -> None:
    stage.lay_out_rpm(tmp_path, "1")
    text = (tmp_path / "rpm" / "vendored-licences.txt").read_text()
    assert "common-licenses" not in text
    for name in vendored.FOR_RPM:
        assert (tmp_path / "tools" / "vendored" / name / "__init__.py").is_file()
        stanza = text.partition(f"Files: usr/lib/beowire/vendored/{name}/*\n")[2]
        licence = stanza.partition("License: ")[2].partition("\n\n")[0]
        assert len(licence.splitlines()) > 10, name


def test_the_spec_file_can_be_read(tmp_path: Path) -> None:
    macros = rpm.definitions(tmp_path, "3")
    words = [word for key, value in macros.items() for word in ("--define", f"{key} {value}")]
    form = "%{NAME} %{VERSION}-%{RELEASE}\\n"
    query = ["rpmspec", "-q", "--queryformat", form, *words, str(SPEC)]
    told = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    control = places.source("packaging/debian/control").read_text()
    debian = re.findall(r"^Package: (.+)$", control, re.MULTILINE)
    renamed = {"libbeowire1": "libbeowire", "libbeowire-dev": "libbeowire-devel"}
    assert {line.split()[0] for line in told.splitlines()} == {
        renamed.get(name, name) for name in debian
    }
    assert {line.split()[1] for line in told.splitlines()} == {f"{__version__}-3"}


def test_the_module_outlives_a_reinstallation() -> None:
    """The old %preun runs after the new %post, and is of the same version then."""
    text = SPEC.read_text()
    for section in ("%post", "%posttrans"):
        commands = text.partition(f"\n{section} dkms\n")[2].partition("\n\n")[0]
        for word in ("add", "install"):
            assert f"dkms {word} -m beowire -v %{{dkms_version}}" in commands, (section, word)


def test_no_remark_is_part_of_a_scriptlet_of_one_program() -> None:
    """Such a scriptlet's text, up to the next section, would be the program's to read."""
    for after in re.findall(
        r"^%post(?:un)? .*-p .*\n((?:(?!%).*\n)*)", SPEC.read_text(), re.MULTILINE
    ):
        assert after.strip() == ""
