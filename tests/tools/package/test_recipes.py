# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The recipes for Spack, EasyBuild and images: what they say is what the project says. None of the
programs that they are for is needed here."""

import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from beowire import __version__, places
from beowire.env import settings

SPACK = places.source("packaging/spack/packages/beowire/package.py")
EASYBUILD = places.source(f"packaging/easybuild/Beowire-{__version__}-GCC-13.2.0.eb")
CONTAINERFILE = places.source("packaging/container/Containerfile")
DEFINITION = places.source("packaging/container/beowire.def")
CONTROL = places.source("packaging/debian/control")
SETTINGS = settings.variables(Path("PREFIX/lib/libfabric"))


class Recorded:
    """What a recipe of Spack declares, in the place of Spack."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.declared: dict[str, list[tuple[str, ...]]] = {}
        package = types.ModuleType("spack.package")
        for name in ("version", "depends_on", "license"):
            setattr(package, name, lambda *words, _name=name, **_: self._note(_name, words))
        package.MesonPackage = type("MesonPackage", (), {})  # type: ignore[attr-defined]
        package.join_path = lambda *parts: "/".join(parts)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "spack", types.ModuleType("spack"))
        monkeypatch.setitem(sys.modules, "spack.package", package)
        names: dict[str, Any] = {}
        exec(compile(SPACK.read_text(), str(SPACK), "exec"), names)
        self.package = names["Beowire"]()
        self.package.prefix = "PREFIX"

    def _note(self, name: str, words: tuple[str, ...]) -> None:
        self.declared.setdefault(name, []).append(words)


@pytest.fixture
def spack(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


@pytest.fixture
def easybuild() -> dict[str, Any]:
    names: dict[str, Any] = {"SOURCELOWER_TAR_GZ": "%(namelower)s-%(version)s.tar.gz"}
    exec(compile(EASYBUILD.read_text(), str(EASYBUILD), "exec"), names)
    return names


def test_spacks_recipe_is_of_this_version(spack: Recorded) -> None:
    assert spack.declared["version"] == [(__version__,)]
    assert f"beowire@={__version__}" in SPACK.read_text()
    assert spack.declared["license"] == [("GPL-2.0-only OR BSD-2-Clause",)]


def test_spacks_recipe_needs_what_debian_does(spack: Recorded) -> None:
    """By the names of both; of compilers and makefiles none is asked for."""
    needed = {re.split("[@ ]", words[0])[0] for words in spack.declared["depends_on"]}
    assert needed == {"c", "meson", "ninja", "pkgconfig", "libfabric", "libsodium", "python"}
    build = CONTROL.read_text().partition("Build-Depends:")[2].partition("Standards-Version")[0]
    debian = {word.split()[0] for word in build.replace("\n", " ").split(",")}
    assert {"libfabric-dev", "libsodium-dev", "meson", "ninja-build", "pkg-config"} <= debian
    libraries = {each.removesuffix("-dev") for each in debian if each.endswith("-dev")}
    assert libraries - {"systemtap-sdt"} == {"libfabric", "libsodium"}


def test_options_of_the_build_exist(spack: Recorded, easybuild: dict[str, Any]) -> None:
    known = re.findall(r"option\(\s*'(\w+)'", places.source("meson_options.txt").read_text())
    rules = places.source("packaging/debian/rules").read_text()
    theirs = spack.package.meson_args()
    assert theirs == easybuild["configopts"].split()
    for each in theirs:
        name = each.removeprefix("-D").partition("=")[0]
        assert name in known or name in ("werror", "libdir")
        assert name == "libdir" or each in rules


def test_what_modules_set_is_what_the_command_prints(
    spack: Recorded, easybuild: dict[str, Any]
) -> None:
    made: dict[str, str] = {}
    recorder = types.SimpleNamespace(set=made.__setitem__)
    spack.package.setup_run_environment(recorder)
    assert made == SETTINGS
    paths = {name: f"PREFIX/{path}" for name, path in easybuild["modextrapaths"].items()}
    assert {**paths, **easybuild["modextravars"]} == SETTINGS


def test_easybuilds_file_is_of_this_version(easybuild: dict[str, Any]) -> None:
    chain = easybuild["toolchain"]
    assert EASYBUILD.name == f"Beowire-{easybuild['version']}-{chain['name']}-{chain['version']}.eb"
    assert easybuild["version"] == __version__
    assert f"--prefix=beowire-{__version__}/" in EASYBUILD.read_text()
    names = [each[0] for each in (*easybuild["builddependencies"], *easybuild["dependencies"])]
    assert names == ["Meson", "Ninja", "pkgconf", "libfabric", "libsodium", "Python"]
    for file in easybuild["sanity_check_paths"]["files"]:
        assert Path(file).name in INSTALLED


INSTALLED = ("beowire-info", "beowire.h", "libbeowire.so", "libbeowire-fi.so")


def ours(text: str) -> list[str]:
    return re.findall(r"/tmp/packages/(\S+?)_\*\.deb", text)


def test_images_have_packages_that_there_are() -> None:
    """And nothing that must have privileges, nor what compiles."""
    there = set(re.findall(r"^Package: (.+)$", CONTROL.read_text(), re.MULTILINE))
    named = ours(CONTAINERFILE.read_text())
    assert named == ours(DEFINITION.read_text())
    assert set(named) <= there
    assert there - set(named) == {"beowired", "beowire-dkms", "libbeowire-dev"}
    others = re.findall(r"^      ([a-z][\w-]*)(?: \\)?$", CONTAINERFILE.read_text(), re.MULTILINE)
    assert others == ["openssh-client"]
    assert all(each in CONTROL.read_text() for each in others)


def test_the_containerfile_can_be_read() -> None:
    lines = re.sub(r"\\\n", "", CONTAINERFILE.read_text()).splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert [word for word, _ in steps] == ["FROM", "COPY", "RUN", "RUN", "CMD"]
    for word, rest in steps:
        if word == "RUN":
            subprocess.run(["sh", "-n", "-c", rest], check=True)


def test_the_definition_can_be_read() -> None:
    head, *sections = re.split(r"^%(\w+)$", DEFINITION.read_text(), flags=re.MULTILINE)
    assert re.findall(r"^(\w+): (\S+)$", head, re.MULTILINE) == [
        ("Bootstrap", "docker"),
        ("From", "debian:12-slim"),
    ]
    texts = dict(zip(sections[::2], sections[1::2], strict=True))
    assert set(texts) == {"files", "post", "test", "runscript"}
    for name in ("post", "test", "runscript"):
        subprocess.run(["sh", "-n", "-c", texts[name]], check=True)
