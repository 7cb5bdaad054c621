# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python packages that some commands need and the others do not: an installation may lack them."""

import contextlib
import importlib.util
from collections.abc import Iterator

from beowire import installed
from beowire.errors import BeowireError

NAMES = ("matplotlib", "networkx", "pydot", "scipy")
"""Debian has each as python3-NAME. They are imported where they are used."""


def there(name: str) -> bool:
    """Whether this Python has the package; it is not loaded."""
    return importlib.util.find_spec(name) is not None


def lacking(name: str) -> BeowireError:
    if installed.directories() is None:
        fix = "Call ./beowire of the checkout: it sets up an environment that has it."
    else:
        fix = f"Install it: apt-get install python3-{name}"
    return BeowireError(f"The Python package {name}, which this needs, is not here.", fix)


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Around a command: if one of these packages is what it lacks, that is said."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in NAMES:
            raise
        raise lacking(name) from error
