# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where an installation has what a build has; what it lacks is named with its package."""

import ast
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire import __version__, installed, places
from beowire.errors import BeowireError


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The tools believe that they are installed there."""
    file = tmp_path / "installed.json"
    file.write_text(
        f'{{"bindir": "{tmp_path}/b", "sbindir": "{tmp_path}/s", "libdir": "{tmp_path}/l"}}'
    )
    monkeypatch.setattr(installed, "_FILE", file)
    installed.directories.cache_clear()
    yield tmp_path
    installed.directories.cache_clear()


@pytest.mark.parametrize(
    ("of_the_build", "of_the_installation"),
    [
        ("programs/beowire-info", "b/beowire-info"),
        ("programs/beowire-attach", "s/beowire-attach"),
        ("service/beowired", "s/beowired"),
        ("emulator/beowire-link", "b/beowire-link"),
        ("adapters/libfabric/libbeowire-fi.so", "l/libfabric/libbeowire-fi.so"),
        ("adapters/libfabric/alone/libfabric.so.1", "l/libfabric/alone/libfabric.so.1"),
        ("adapters/sockets/libbeowire-sockets.so", "l/beowire/libbeowire-sockets.so"),
    ],
)
def test_where_it_is(prefix: Path, of_the_build: str, of_the_installation: str) -> None:
    file = prefix / of_the_installation
    with pytest.raises(BeowireError, match="is not installed"):
        places.product(of_the_build)
    file.parent.mkdir(parents=True)
    file.touch()
    assert places.product(of_the_build) == file


@pytest.mark.parametrize(
    ("product", "package"),
    [
        ("service/beowired", "beowired"),
        ("adapters/sockets/libbeowire-sockets.so", "beowire-sockets"),
        ("adapters/libfabric/libbeowire-fi.so", "libfabric-beowire"),
        ("programs/beowire-info", "beowire"),
    ],
)
@pytest.mark.usefixtures("prefix")
def test_which_package_has_it(product: str, package: str) -> None:
    with pytest.raises(BeowireError) as refused:
        places.product(product)
    assert refused.value.fix.endswith(f"apt-get install {package}")


@pytest.mark.usefixtures("prefix")
def test_what_only_a_checkout_has() -> None:
    for ask in (places.product, places.source):
        with pytest.raises(BeowireError, match="examples/pi is not part of an installation"):
            ask("examples/pi")


def test_the_command_is_its_own_module(prefix: Path) -> None:
    assert places.command() == prefix / "b" / "beowire"
    assert places.module("beowire") == [str(prefix / "b" / "beowire")]


OWN = str(Path(places.__file__).parents[1])


@pytest.mark.parametrize(
    ("users", "then"),
    [
        (None, OWN),
        ("", OWN),
        ("/theirs", f"{OWN}:/theirs"),
        ("/theirs:/too", f"{OWN}:/theirs:/too"),
        # One that was started by another: it does not grow.
        (OWN, OWN),
        (f"{OWN}:/theirs", f"{OWN}:/theirs"),
        (f"{OWN}-other", f"{OWN}:{OWN}-other"),
    ],
    ids=["none", "empty", "theirs", "two", "started", "started-theirs", "like-ours"],
)
@pytest.mark.usefixtures("prefix")
def test_modules_are_found_before_what_the_user_has(
    users: str | None, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if users is None:
        monkeypatch.delenv("PYTHONPATH", raising=False)
    else:
        monkeypatch.setenv("PYTHONPATH", users)
    first, path, *_, name = places.module("beowire.status")
    assert (first, name) == ("env", "beowire.status")
    assert path == f"PYTHONPATH={then}"


def test_whether_a_product_is_there_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BEOWIRE_BUILD", str(tmp_path))
    for name in ("examples/pi", "examples/stencil"):
        with pytest.raises(BeowireError, match="has not been built"):
            places.product(name)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "pi").touch()
    asked, exists = [], Path.exists
    monkeypatch.setattr(Path, "exists", lambda path: asked.append(path) or exists(path))
    assert places.product("examples/pi") == tmp_path / "examples" / "pi"
    assert len(asked) == 1


def test_a_checkout_is_none() -> None:
    assert installed.directories() is None
    assert places.command() == places.root() / "beowire"
    assert places.source("engine") == places.root() / "engine"
    assert places.product_path("examples/pi") == places.build_dir() / "examples" / "pi"
    assert "env" not in places.module("beowire.status")


def test_a_checkout_tells_its_version() -> None:
    """Python finds its package by nothing else but this file's place."""
    start = str(places.package_file("start.py"))
    done = subprocess.run(
        [sys.executable, "-P", "-S", start, "--version"], capture_output=True, text=True, env={}
    )
    assert (done.returncode, done.stdout) == (0, f"beowire {__version__}\n"), done.stderr


NEED_A_CHECKOUT = {
    "demo/cli.py",
    "evidence/gallery.py",
    "installed.py",
    "package/repository.py",
    "package/vendored.py",
    "places.py",
    "run/mpi.py",
    "suggested.py",
}
"""Their messages name commands that an installation does not have."""


@pytest.mark.parametrize("is_installed", [False, True])
def test_messages_name_the_command_as_people_call_it(tmp_path: Path, is_installed: bool) -> None:
    copy = tmp_path / "installed.py"
    shutil.copy(installed.__file__, copy)
    if is_installed:
        (tmp_path / "installed.json").write_text("{}")
    spec = importlib.util.spec_from_file_location("copy", copy)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert ("beowire" if is_installed else "./beowire") == module.COMMAND


def test_no_message_names_a_checkout() -> None:
    tools = places.root() / "tools" / "beowire"
    found = set()
    for file in tools.rglob("*.py"):
        tree = ast.parse(file.read_text())
        about = {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        names = {
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and "./beowire" in str(node.value)
        }
        if names - about:
            found.add(str(file.relative_to(tools)))
    assert found == NEED_A_CHECKOUT
