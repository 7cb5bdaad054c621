# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A repository of packages: its index, its signature, its key, and what lies beside it."""

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.package import repository
from beowire.progress import Progress
from beowire_cli import beowire


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


def test_what_was_made_is_told(packages: Path, tmp_path: Path) -> None:
    directory, file = tmp_path / "repository", tmp_path / "made.json"
    words = ["package", "repository", str(directory), "--packages", str(packages), "--json"]
    refused = beowire(*words, str(tmp_path / "absent" / "made.json"))
    assert refused.status == 1
    assert "cannot be written" in refused.errors
    assert not directory.exists()
    done = beowire(*words, str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    assert set(told) == {"directory", "key", "lines"}
    assert told["directory"] == str(directory)
    assert re.fullmatch("[0-9A-F]{40}", told["key"])
    assert [line.strip() for line in done.output.splitlines()[1:]] == told["lines"]


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


def test_an_agent_that_is_slow_to_end_leaves_nothing_either(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = tmp_path / "gpgconf"
    late.write_text(
        f'#!/bin/sh\n{{ sleep 1; {shutil.which("gpgconf")} "$@"; }} >/dev/null 2>&1 &\n'
    )
    late.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    test_a_long_name_and_no_process_that_stays(packages, tmp_path, monkeypatch)


def contents(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in directory.iterdir()}


def newer(packages: Path) -> None:
    """The package is of another version from now on."""
    (packages / "libbeowire1_1_all.deb").rename(packages / "libbeowire1_2_all.deb")


def test_a_signature_that_fails_leaves_the_repository_as_it_was(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make(tmp_path / "repository", packages).directory
    before = contents(directory)
    newer(packages)
    program = tmp_path / "gpg"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--clearsign*) echo no pinentry >&2; exit 2 ;; esac\n'
        f'exec {shutil.which("gpg")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(BeowireError, match="gpg failed: no pinentry"):
        make(directory, packages)
    assert contents(directory) == before
    assert verified(directory)


def test_the_signature_is_put_in_place_last_and_older_packages_go_after_it(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make(tmp_path / "repository", packages).directory
    signed = (directory / "InRelease").read_bytes()
    newer(packages)
    placed, replacing = [], places.replacing

    def until_the_signature(file: Path) -> contextlib.AbstractContextManager[Path]:
        placed.append(file.name)
        if file.name == "InRelease":
            raise OSError(errno.EIO, "the disk is gone")
        return replacing(file)

    monkeypatch.setattr(places, "replacing", until_the_signature)
    with pytest.raises(BeowireError, match=r"is not finished: .*the disk is gone"):
        make(directory, packages)
    assert set(placed[:-1]) == {
        *("libbeowire1_2_all.deb", "Packages", "Packages.gz", "Release", repository.KEY)
    }
    assert (directory / "libbeowire1_1_all.deb").is_file()
    assert (directory / "InRelease").read_bytes() == signed
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    make(directory, packages)
    assert [each.name for each in directory.glob("*.deb")] == ["libbeowire1_2_all.deb"]
    assert verified(directory)


def test_what_is_no_file_is_not_replaced_nor_is_anything_else(
    packages: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "repository"
    (directory / "InRelease").mkdir(parents=True)
    with pytest.raises(BeowireError, match="InRelease is no regular file"):
        make(directory, packages)
    assert [each.name for each in directory.iterdir()] == ["InRelease"]


def test_all_may_read_it_whatever_the_umask_is(packages: Path, tmp_path: Path) -> None:
    (packages / "libbeowire1_1_all.deb").chmod(0o600)
    before = os.umask(0o077)
    try:
        made = make(tmp_path / "new" / "repository", packages)
    finally:
        os.umask(before)
    modes = {each.name: each.stat().st_mode & 0o777 for each in made.directory.iterdir()}
    assert set(modes.values()) == {0o644}, modes
    for each in (made.directory, made.directory.parent):
        assert each.stat().st_mode & 0o777 == 0o755, each
    made.directory.chmod(0o750)
    make(made.directory, packages)
    assert made.directory.stat().st_mode & 0o777 == 0o750


def gpg(home: Path, *words: str) -> str:
    command = ["gpg", f"--homedir={home}", "--batch", "--yes", "--quiet", "--no-tty", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def keys() -> Iterator[Path]:
    """A directory of gpg's own, by a name that is short enough for its sockets."""
    with tempfile.TemporaryDirectory(prefix="bw-", dir="/tmp") as home:
        yield Path(home)
        words = ["gpgconf", "--homedir", home, "--kill", "gpg-agent"]
        subprocess.run(words, check=True, capture_output=True)


def revoke(home: Path, fingerprint: str) -> None:
    """By the certificate that gpg made with the key, without the colon that stands in its way."""
    certificate = home / "openpgp-revocs.d" / f"{fingerprint}.rev"
    text = certificate.read_text().replace(":-----BEGIN", "-----BEGIN")
    certificate.write_text(text)
    gpg(home, "--import", str(certificate))


@pytest.mark.parametrize("how", ["expired", "revoked"])
def test_a_key_that_can_sign_no_more_is_not_taken(
    how: str, keys: Path, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "packager@beowire.invalid"
    new = ["--passphrase", "", "--quick-generate-key", name, "ed25519", "sign"]
    if how == "expired":
        gpg(keys, "--faked-system-time", "20240101T000000", *new, "1d")
    else:
        gpg(keys, *new, "never")
        revoke(keys, next((keys / "openpgp-revocs.d").glob("*.rev")).stem)
    monkeypatch.setenv("GNUPGHOME", str(keys))
    with pytest.raises(BeowireError, match=r"no secret key .* that can sign now"):
        make(tmp_path / "repository", packages, name)
    gpg(keys, *new, "never")
    assert verified(make(tmp_path / "repository", packages, name).directory)


def test_another_key_is_made_when_the_first_is_revoked(packages: Path, tmp_path: Path) -> None:
    first = make(tmp_path / "repository", packages).fingerprint
    with repository._own_home() as home:
        revoke(home, first)
    made = make(tmp_path / "repository", packages)
    assert made.fingerprint != first
    assert verified(made.directory)


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


def test_what_a_killed_command_has_left_goes(packages: Path, tmp_path: Path) -> None:
    directory = tmp_path / "repository"
    left = directory / ".beowire-left"
    left.mkdir(parents=True)
    (left / "Packages").write_text("half of it")
    (directory / ".beowire-link").symlink_to(packages)
    make(directory, packages)
    assert not left.exists()
    assert list(packages.iterdir())


def test_two_at_a_time(packages: Path, tmp_path: Path) -> None:
    directory = tmp_path / "repository"
    make(directory, packages)
    before = contents(directory)
    other = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(BeowireError, match="Another command is making the repository"):
            make(directory, packages)
    finally:
        os.close(other)
    assert contents(directory) == before
    make(directory, packages)


def test_no_packages(tmp_path: Path) -> None:
    with pytest.raises(BeowireError) as refused:
        make(tmp_path / "repository", tmp_path)
    assert "package deb" in refused.value.fix
    assert not os.path.lexists(tmp_path / "repository")
