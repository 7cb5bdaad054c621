# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file of results that a measurement writes anew after each step, in one go, and goes on with
when it is started again. What belongs to the measurement as a whole, its setting, has to be the
same then."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError

FORMAT = 1
"""Of what commands write in one go, by stamped()."""


def stamped(command: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """A result of `beowire bench COMMAND`, with who wrote it and in which format."""
    return {"writer": f"beowire bench {command}", "format": FORMAT, **told}


def check(path: Path) -> None:
    """Fails unless the file can be written, so that nothing is measured in vain."""
    places.check_replaceable(path)
    places.check_output(path)


def save(path: Path, text: str) -> None:
    """Puts this text in the place of the file, at once."""
    try:
        with places.replacing(path) as part:
            places.write_output(part, text)
    except OSError as error:
        raise BeowireError(
            f"{path} cannot be written: {error.strerror or error}.", "Name another file."
        ) from error


def read(
    path: Path, writer: str, version: int, setting: Mapping[str, Any], rows: str
) -> dict[str, Any]:
    """What the file holds; {} if there is none, or an empty one. `rows` is what it keeps, to be
    told. Raises BeowireError unless it was written by `writer`, in this format and setting."""
    if not path.exists() or not path.stat().st_size:
        return {}
    other = BeowireError(
        f"{path} is no file of `{writer}`.", "Name another file by --json, or remove it."
    )
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise other from error
    if not isinstance(told, dict) or told.get("writer") != writer:
        raise other
    if told.get("format") != version:
        raise BeowireError(
            f"{path} has format {told.get('format')}, not {version}.", "Name another file."
        )
    _check_setting(path, told.get("setting"), setting, rows)
    return told


def unreadable(path: Path, row: str, error: Exception) -> BeowireError:
    """The error of a row that is not as its writer would have written it."""
    return BeowireError(f"{path} has a {row} that cannot be read: {error!r}.", "Name another file.")


def _check_setting(path: Path, told: Any, setting: Mapping[str, Any], rows: str) -> None:
    told = told if isinstance(told, dict) else {}
    # As the file would have it: a tuple is a list there.
    differ = [
        f"{name} {told.get(name)}, not {value}"
        for name, value in json.loads(json.dumps(setting)).items()
        if told.get(name) != value
    ]
    if differ:
        raise BeowireError(
            f"{path} has {rows} of another setting: {'; '.join(differ)}.",
            "Name another file by --json, or measure with that setting.",
        )
