# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire package`: packages of Debian and of rpm, a repository for apt."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar

import typer

from beowire import places
from beowire.package import deb, rpm
from beowire.package import repository as repositories
from beowire.progress import Progress
from beowire.terminal import note, out

app = typer.Typer(help="Make packages for Debian, Ubuntu and distributions of rpm.")

Json = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write what was made there.")
]

Output = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Put them there. Default: build/packages")
]
Revision = Annotated[
    str, typer.Option(metavar="TEXT", help="What follows the version: 0.1.0-TEXT.")
]


class _Told(Protocol):
    def as_json(self) -> dict[str, Any]: ...


_Made = TypeVar("_Made", bound=_Told)


def _make(steps: int, make: Callable[[Progress], _Made], json_file: Path | None) -> _Made:
    """Makes something of so many steps, which are shown; it is told to the file as well."""
    if json_file is not None:
        places.check_output(json_file)
    with Progress(steps).shown() as progress:
        made = make(progress)
    if json_file is not None:
        places.write_json(json_file, made.as_json())
    return made


@app.command("deb")
def deb_(
    output: Output = None,
    revision: Revision = "1",
    json_file: Json = None,
) -> None:
    """Build the packages for Debian and Ubuntu from this checkout."""
    to = output or deb.directory()
    built = _make(deb.STEPS, lambda progress: deb.build(to, revision, progress), json_file)
    _list(built.files)


@app.command("rpm")
def rpm_(
    output: Output = None,
    revision: Revision = "1",
    json_file: Json = None,
) -> None:
    """Build the packages for Enterprise Linux and openSUSE from this checkout."""
    to = output or deb.directory()
    built = _make(rpm.STEPS, lambda progress: rpm.build(to, revision, progress), json_file)
    _list(built.files)
    if not rpm.native():
        note(
            "This distribution is not one of rpm's: these packages were built against its "
            "libraries,\n  for a look at them. Build what is to be installed on the distribution "
            "itself."
        )


def _list(files: list[Path]) -> None:
    for file in files:
        out().print(str(file))


@app.command("repository")
def repository(
    directory: Annotated[Path, typer.Argument(metavar="DIR")],
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="Sign with this key of gpg's. Default: one made for it."),
    ] = None,
    packages: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The packages. Default: build/packages"),
    ] = None,
    json_file: Json = None,
) -> None:
    """Make a signed repository for apt, in this directory, of the packages that were built."""
    those = packages or deb.directory()
    made = _make(
        repositories.STEPS,
        lambda progress: repositories.make(directory, those, key, progress),
        json_file,
    )
    out().print("On each machine, as root, with DIR or a web server's address of it:")
    for line in made.lines:
        out().print(f"  {line}")
