# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire docs`: the documents as a site of static pages."""

import http.server
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from beowire import places
from beowire.errors import BeowireError
from beowire.terminal import note

_PORT = 8000


def docs(
    output: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Put the pages there. Default: build/site")
    ] = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Then serve them to this machine, until interrupted.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port of --serve; 0: any free one.")
    ] = _PORT,
) -> None:
    """Build the documents as one site, with search; broken links are an error."""
    directory = (output or places.build_dir() / "site").resolve()
    build(directory)
    print(f"{directory}/index.html")
    if serve:
        _serve(directory, port)


def build(directory: Path) -> None:
    """Writes the site into a directory that is empty, not there, or has an earlier site."""
    settings = places.source("docs/site/mkdocs.yml")
    if directory.is_dir() and any(directory.iterdir()) and not _is_site(directory):
        raise BeowireError(f"{directory} has something else in it.", "Name another directory.", 2)
    places.program("mandoc", "mandoc")
    places.make_output_dir(directory)
    command = [sys.executable, "-P", "-m", "mkdocs", "build", "--clean"]
    done = subprocess.run(
        [*command, "--config-file", str(settings), "--site-dir", str(directory)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},  # advertisements of the theme
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        wrong = [line for line in said if not line.startswith(("INFO", "  - "))]
        raise BeowireError("\n".join(["The site could not be built:", *wrong]), "Correct these.")


def _is_site(directory: Path) -> bool:
    return (directory / "search" / "search_index.json").is_file()


def _serve(directory: Path, port: int) -> None:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(directory))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise BeowireError(
            f"Port {port} cannot be listened on: {error.strerror}.", "Name another one: --port"
        ) from error
    with server:
        note(f"http://127.0.0.1:{server.server_address[1]}/ until Ctrl-C")
        server.serve_forever()
