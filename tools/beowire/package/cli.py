# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire package`: Debian packages, and a repository of them."""

from pathlib import Path
from typing import Annotated

import typer

from beowire import places
from beowire.package import deb
from beowire.package import repository as repositories
from beowire.progress import Progress
from beowire.terminal import out

app = typer.Typer(help="Make packages for Debian and Ubuntu, and a repository of them.")


@app.command("deb")
def deb_(
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Put them there. Default: build/packages"),
    ] = None,
    revision: Annotated[
        str, typer.Option(metavar="TEXT", help="What follows the version: 0.1.0-TEXT.")
    ] = "1",
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what was made there.")
    ] = None,
) -> None:
    """Build the packages from this checkout."""
    if json_file is not None:
        places.check_output(json_file)
    with Progress(deb.STEPS).shown() as progress:
        built = deb.build(output or deb.directory(), revision, progress)
    for file in built.files:
        out().print(str(file), soft_wrap=True)
    if json_file is not None:
        told = {"version": built.version, "files": [str(each) for each in built.files]}
        places.write_json(json_file, told)


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
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write what was made there.")
    ] = None,
) -> None:
    """Make a signed repository for apt, in this directory, of the packages that were built."""
    if json_file is not None:
        places.check_output(json_file)
    with Progress(repositories.STEPS).shown() as progress:
        made = repositories.make(directory, packages or deb.directory(), key, progress)
    out().print("On each machine, as root, with DIR or a web server's address of it:")
    for line in made.lines:
        out().print(f"  {line}", soft_wrap=True)
    if json_file is not None:
        told = {"directory": str(made.directory), "key": made.fingerprint, "lines": made.lines}
        places.write_json(json_file, told)
