# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire completion`."""

import sys
from typing import Annotated

import typer

from beowire import places
from beowire.completion.scripts import SCRIPTS
from beowire.errors import BeowireError


def completion(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="bash|zsh|fish", help="The shell.")
    ] = None,
    answer: Annotated[
        bool,
        typer.Option("--answer", help="For the scripts: what the last of these words can become."),
    ] = False,
) -> None:
    """Print a script that makes a shell complete this command's options and arguments."""
    given = words or []
    if answer:
        from beowire.completion.answer import answers

        sys.stdout.write("".join(each.line() for each in answers(given)))
        return
    for shell, file in SCRIPTS.items():
        if given == [shell]:
            sys.stdout.write(places.package_file(f"completion/{file}").read_text())
            return
    raise BeowireError(
        f"No script for {' '.join(given) or 'no shell'}.", f"Name one of {', '.join(SCRIPTS)}.", 2
    )
