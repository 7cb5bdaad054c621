# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A repository of packages: its index, its signature, its key, and what lies beside it."""

import os
import subprocess
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.package import repository
from beowire.progress import Progress


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a small package of ours and another one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    directory = tmp_path / "packages"
    for name in ("libbeowire1", "others"):
        control = tmp_path / name / "DEBIAN" / "control"
        control.parent.mkdir(parents=True)
        control.write_text(
            f"Package: {name}\nVersion: 1\nArchitecture: all\n"
            "Maintainer: nobody <nobody@beowire.invalid>\nDescription: a test\n"
        )
        directory.mkdir(exist_ok=True)
        made = directory / f"{name}_1_all.deb"
        command = ["dpkg-deb", "--root-owner-group", "--build", tmp_path / name, made]
        subprocess.run(command, check=True, capture_output=True)
    return directory


def make(directory: Path, packages: Path, key: str | None = None) -> repository.Made:
    return repository.make(directory, packages, key, Progress(repository.STEPS))


def verified(directory: Path, name: str = "InRelease") -> bool:
    words = ["gpgv", "--keyring", str(directory / repository.KEY), str(directory / name)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def test_the_index_is_signed_and_holds_ours_alone(packages: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "repository", packages)
    assert verified(made.directory)
    index = (made.directory / "Packages").read_text()
    assert index.count("Package: ") == 1
    assert "Filename: ./libbeowire1_1_all.deb" in index
    assert "Packages" in (made.directory / "InRelease").read_text()
    text = (made.directory / "InRelease").read_bytes().replace(b"Beowire", b"Another", 1)
    (made.directory / "InRelease").write_bytes(text)
    assert not verified(made.directory)


def test_the_key_is_made_once_and_is_nobody_elses(packages: Path, tmp_path: Path) -> None:
    first = make(tmp_path / "one", packages)
    second = make(tmp_path / "two", packages)
    assert first.fingerprint == second.fingerprint
    keys = tmp_path / "data" / "beowire" / "keys"
    assert keys.stat().st_mode & 0o077 == 0
    assert not list((tmp_path / "one").glob("*secret*"))
    keys.chmod(0o777)
    with pytest.raises(BeowireError, match="written to by others"):
        make(tmp_path / "one", packages)


def test_a_long_name_and_no_process_that_stays(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / ("long" * 40)
    monkeypatch.setenv("XDG_DATA_HOME", str(data))
    assert verified(make(tmp_path / "repository", packages).directory)
    left = [each.name for each in (data / "beowire" / "keys").iterdir() if each.is_socket()]
    assert left == []


def test_a_key_that_is_not_there(packages: Path, tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="no secret key nobody@nowhere"):
        make(tmp_path / "repository", packages, "nobody@nowhere")


def test_what_lies_beside_stays_unsigned_and_what_is_older_goes(
    packages: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "repository"
    directory.mkdir()
    (directory / "beowire_0_amd64.deb").touch()
    others = directory / "others_1_all.deb"
    others.write_bytes((packages / "others_1_all.deb").read_bytes())
    make(directory, packages)
    assert {each.name for each in directory.glob("*.deb")} == {"libbeowire1_1_all.deb", others.name}
    index = (directory / "Packages").read_text()
    assert index.count("Package: ") == 1
    assert "others" not in index


def test_the_lines_are_for_a_shell_and_for_apt(packages: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "with a blank", packages)
    assert made.lines[0].startswith("install -m 644 '")
    assert "with%20a%20blank ./" in made.lines[1]
    place = tmp_path / "root"
    for name in ("usr/share/keyrings", "etc/apt/sources.list.d"):
        (place / name).mkdir(parents=True)
    for line in made.lines:
        here = line.replace(" /usr", f" {place}/usr").replace(">/etc", f">{place}/etc")
        subprocess.run(["sh", "-c", here], check=True)
    assert (place / "usr/share/keyrings/beowire.gpg").read_bytes()
    assert (place / "etc/apt/sources.list.d/beowire.list").read_text().startswith("deb [signed-by=")


def test_no_packages(tmp_path: Path) -> None:
    with pytest.raises(BeowireError) as refused:
        make(tmp_path / "repository", tmp_path)
    assert "package deb" in refused.value.mend
    assert not os.path.lexists(tmp_path / "repository")
