# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire env`."""

import sys
from typing import Annotated

import typer

from beowire import places
from beowire.env import settings


def env(
    shell: Annotated[
        str,
        typer.Option(metavar="|".join(settings.KINDS), help="For which shell or module file."),
    ] = "sh",
) -> None:
    """Print the settings by which a plain mpirun goes over Beowire."""
    sys.stdout.write(settings.text(shell, settings.variables(places.provider_dir())))
