# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python packages that the distribution lacks or has too old: copies lie beside the tools."""

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution
from pathlib import Path

from beowire.errors import BeowireError

NAMES = ("annotated_doc", "pyroute2", "shellingham", "tree_sitter", "tree_sitter_toml", "typer")
"""Debian 12: typer 0.7 knows no Annotated, pyroute2 is 0.7, the others are not there."""
FOR_RPM = (*NAMES, "ClusterShell", "markdown_it", "mdurl", "pygments", "rich")
"""Beside the Python 3.11 of Enterprise Linux 9 and openSUSE Leap these are missing as well."""
_DISTRIBUTIONS = {"markdown_it": "markdown-it-py"}
"""Those whose distribution has another name."""
_PYTHON = Path("/usr/bin/python3")
_LICENCES = ("LICENSE", "LICENCE", "COPYING")
_NOT_COPIED = ("__pycache__", "*.pyi", "*.pyx", ".*")
_COMMON = {
    "GNU GENERAL PUBLIC LICENSE": "the GNU General Public License, version 2, is in GPL-2",
    "Apache License": "the Apache License, version 2.0, is in Apache-2.0",
}
"""Licences that each Debian system has, by their first words; they are named, not repeated."""


@dataclass(frozen=True)
class Vendored:
    """A package as this Python has it."""

    name: str
    version: str
    directory: Path
    licences: tuple[str, ...]
    """Their texts."""


def python_version() -> str:
    """Of the Python that executes this: 3.11."""
    return "{}.{}".format(*sys.version_info)


def found(names: tuple[str, ...] = NAMES) -> list[Vendored]:
    """All of them, by the Python that executes this. Some are compiled for its version: it must be
    the one that the distribution's Python has, or one that lies beside it."""
    own = python_version()
    python = _PYTHON if names is NAMES else _PYTHON.with_name(f"python{own}")
    theirs = _version_of(python)
    if own != theirs:
        raise BeowireError(
            f"This environment has Python {own}, the distribution {theirs or 'none'}.",
            f"Make the environment anew with {python}: remove .venv, and put that first in PATH.",
        )
    return [_find(name) for name in names]


def _version_of(python: Path) -> str:
    words = [str(python), "-c", "import sys; print('{}.{}'.format(*sys.version_info))"]
    if not python.exists():
        return ""
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()


def copy(those: list[Vendored], to: Path) -> None:
    for each in those:
        ignored = shutil.ignore_patterns(*_NOT_COPIED)
        shutil.copytree(each.directory, to / each.name, ignore=ignored)


def stanzas(those: list[Vendored], *, named: bool = True) -> str:
    """What the file `copyright` says of them, in the form of Debian's copyright format 1.0. Of
    licences that each Debian system has only the names are told, if `named`."""
    return "\n".join(_stanza(each, named) for each in those)


def _stanza(one: Vendored, named: bool) -> str:
    lines = [f"Files: usr/lib/beowire/vendored/{one.name}/*"]
    lines += [f"Copyright: the authors of {one.name} {one.version}, named in the licence"]
    lines += [f"License: {one.name.replace('_', '-')}"]
    for text in map(_named, one.licences) if named else one.licences:
        lines += [f" {line}".rstrip() if line.strip() else " ." for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _named(text: str) -> str:
    first = text.strip().partition("\n")[0].strip()
    if first not in _COMMON:
        return text
    return f"On Debian systems the whole text of {_COMMON[first]}\nof /usr/share/common-licenses."


def _find(name: str) -> Vendored:
    spec = importlib.util.find_spec(name)
    try:
        distribution = importlib.metadata.distribution(_DISTRIBUTIONS.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        raise BeowireError(
            f"The Python package {name}, of which the packages hold a copy, is not here.",
            "Call ./beowire of the checkout: it sets up an environment that has it.",
        )
    licences = tuple(_licences(distribution))
    if not licences:
        raise BeowireError(f"The Python package {name} came without its licence.", "Fix it.")
    return Vendored(name, distribution.version, Path(spec.origin).parent, licences)


def _licences(distribution: Distribution) -> Iterator[str]:
    for file in sorted(distribution.files or [], key=str):
        if ".dist-info" in str(file) and file.name.startswith(_LICENCES):
            yield Path(str(file.locate())).read_text()
