# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python packages that only some commands need: what is told where one is missing, and which these
are."""

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import beowire
import pytest
from beowire import installed, places, suggested
from beowire.package import vendored
from beowire_cli import Answer
from beowire_cli import beowire as execute

RUNS = "N,time\n" + "\n".join(f"{n},{10 / n + 0.5 + 0.01 * n * n!r}" for n in (1, 2, 3, 4, 6, 8))
DEPENDS = {"ClusterShell", "numpy", "rich"}
PACKAGE = Path(beowire.__file__).parent


def without(place: Path, names: tuple[str, ...], *words: str) -> Answer:
    """The command, by a Python that has none of these packages."""
    (place / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({names}))\n"
    )
    path = f"{place}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    return execute(*words, PYTHONPATH=path.removesuffix(os.pathsep))


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    texts = {
        "runs.csv": RUNS,
        "graph.json": '{"tasks": [{"name": "a", "cost": 1}], "edges": []}',
        "graph.dot": "digraph g { a [cost=1]; }",
        "drawn.svg": "",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in texts}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scipy", ("fit", "runs.csv")),
        ("networkx", ("graph", "graph.json")),
        ("pydot", ("graph", "graph.dot")),
        ("matplotlib", ("fit", "runs.csv", "--plot", "drawn.svg")),
    ],
)
def test_a_package_that_is_missing_is_named(
    name: str, words: tuple[str, ...], files: dict[str, str], tmp_path: Path
) -> None:
    words = tuple(files.get(each, each) for each in words)
    told = without(tmp_path, (name,), "model", *words)
    assert told.status == 1
    assert told.output == ""
    assert told.errors == f"beowire: {suggested.lacking(name)}\n"


def test_a_graph_wants_no_other(files: dict[str, str], tmp_path: Path) -> None:
    others = ("matplotlib", "pydot", "scipy")
    told = without(tmp_path, others, "model", "graph", files["graph.json"])
    assert told.status == 0, told.errors
    assert "Critical path: a" in told.output


def test_a_report_does_without_a_drawing(files: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    words = ("--report", str(file), "model", "fit", files["runs.csv"])
    told = without(tmp_path, ("matplotlib",), *words)
    assert told.status == 0, told.errors
    assert "The report has no drawing. The Python package matplotlib" in told.errors
    page = file.read_text()
    assert "nodes of the best speedup" in page
    assert "<img" not in page
    told = without(tmp_path, ("scipy",), *words)
    assert told.status == 1
    assert "The Python package scipy, which this needs, is not here." in file.read_text()


def test_all_commands_load_without_them(tmp_path: Path) -> None:
    told = without(tmp_path, suggested.NAMES, "--help")
    assert told.status == 0, told.errors


def test_an_installation_names_the_distributions_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "directories", lambda: {"bindir": Path("/usr/bin")})
    assert suggested.lacking("scipy").fix == "Install it: apt-get install python3-scipy"


def test_another_module_that_is_missing_is_a_defect() -> None:
    for name in ("scipyx", "beowire.scipy", None):
        with pytest.raises(ModuleNotFoundError), suggested.named():
            raise ModuleNotFoundError("none", name=name)


def imported(within: ast.AST) -> Iterator[str]:
    """The packages of others that are imported there."""
    for node in ast.walk(within):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        for each in names:
            name = each.partition(".")[0]
            if name not in {"beowire", "run"} | sys.stdlib_module_names:
                yield name


def test_the_tools_import_what_the_package_has_needs_or_suggests() -> None:
    sources = {file: ast.parse(file.read_text()) for file in PACKAGE.rglob("*.py")}
    used = {file: set(imported(text)) for file, text in sources.items()}
    every = set[str]().union(*used.values())
    assert every - set(vendored.NAMES) == {*DEPENDS, *suggested.NAMES}
    for file, text in sources.items():
        whenever = (each for each in text.body if isinstance(each, ast.Import | ast.ImportFrom))
        loaded = {name for each in whenever for name in imported(each)}
        assert not loaded & set(suggested.NAMES), file


def test_who_needs_them_is_as_the_documents_say() -> None:
    """docs/install.md: measurements want none of them, but for drawings and bench compare."""
    rooms: dict[str, set[str]] = {name: set() for name in suggested.NAMES}
    for file in PACKAGE.rglob("*.py"):
        inside = file.relative_to(PACKAGE).parts
        for name in imported(ast.parse(file.read_text())):
            if name in rooms:
                rooms[name].add(inside[0])
    del rooms["matplotlib"]
    assert rooms == {
        "scipy": {"bench", "model", "wan"},
        "networkx": {"model"},
        "pydot": {"model"},
    }


def test_the_distribution_is_told_of_them() -> None:
    text = places.source("packaging/debian/control").read_text()
    stanza = next(each for each in text.split("\n\n") if each.startswith("Package: beowire\n"))
    suggests = re.search(r"^Suggests:(.*?)^\S", stanza, re.MULTILINE | re.DOTALL)
    depends = re.search(r"^Depends:(.*?)^\S", stanza, re.MULTILINE | re.DOTALL)
    assert suggests is not None
    assert depends is not None
    asked = set(re.findall(r"python3-(\w+)", suggests[1]))
    assert asked == set(suggested.NAMES)
    needed = set(re.findall(r"python3-(\w+)", depends[1]))
    assert needed == {each.lower() for each in DEPENDS}
