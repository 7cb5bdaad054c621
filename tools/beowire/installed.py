# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where an installation has what a build has in its directory.

The installation wrote a file beside this one that names its directories; a checkout has none.
"""

import json
from functools import cache
from pathlib import Path

from beowire.errors import BeowireError

_FILE = Path(__file__).resolve().with_name("installed.json")
_PLACES = {
    "adapters/libfabric/": ("libdir", "libfabric/", "libfabric-beowire"),
    "adapters/replicate/libbeowire-replicate.so": ("libdir", "beowire/", "beowire"),
    "adapters/sockets/libbeowire-sockets.so": ("libdir", "beowire/", "beowire-sockets"),
    "adapters/stopwatch/libbeowire-stopwatch.so": ("libdir", "beowire/", "beowire"),
    "emulator/beowire-link": ("bindir", "", "beowire"),
    "hosts/kernel/server/beowire-server": ("bindir", "", "beowire"),
    "hosts/user/libbeowire.so": ("libdir", "", "libbeowire-dev"),
    "programs/beowire-activation": ("bindir", "", "beowire"),
    "programs/beowire-arrival": ("bindir", "", "beowire"),
    "programs/beowire-attach": ("sbindir", "", "beowire"),
    "programs/beowire-info": ("bindir", "", "beowire"),
    "programs/beowire-pingpong": ("bindir", "", "beowire"),
    "service/beowired": ("sbindir", "", "beowired"),
}
"""Of products of the build, or of directories of them: which directory of the installation, where
in it, and the package that has it."""


@cache
def directories() -> dict[str, Path] | None:
    """The directories by the names of the build's options; None: this is a checkout."""
    try:
        told = json.loads(_FILE.read_text())
    except FileNotFoundError:
        return None
    return {name: Path(where) for name, where in told.items()}


COMMAND = "./beowire" if directories() is None else "beowire"
"""How people call the tools here, for messages that name a command."""


def product(relative: str, where: dict[str, Path]) -> Path:
    """The installed file that is `relative` in a build; it may be missing."""
    for prefix, (directory, inside, _) in _PLACES.items():
        if relative == prefix:
            return where[directory] / inside / Path(relative).name
        if prefix.endswith("/") and relative.startswith(prefix):
            return where[directory] / inside / relative.removeprefix(prefix)
    raise checkout_only(relative)


def package(relative: str) -> str:
    """The package that has it."""
    found = (told for prefix, (*_, told) in _PLACES.items() if relative.startswith(prefix))
    return next(found, "beowire")


def checkout_only(relative: str) -> BeowireError:
    return BeowireError(
        f"{relative} is not part of an installation, and this needs it.",
        "Call ./beowire in a checkout of the sources.",
    )
