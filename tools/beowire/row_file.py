# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file of lines of JSON, for measurements that take long: each line is on the disk as soon as its
run has ended. The first line says what all have in common; lines of another setting are not mixed
in. A last line that was cut off by a crash counts as not written.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError

FORMAT = 1


class RowFile:
    """Such a file, open for more. Not for several processes at once.

    `writer` is the command whose files these are; `setting` is what the first line must say. Raises
    BeowireError if the file cannot be read or is another's.
    """

    def __init__(self, path: Path, writer: str, setting: dict[str, Any]) -> None:
        places.check_replaceable(path)
        self.path = path
        self._head = {"format": FORMAT, **setting}
        first, *rest = self._lines() or [""]
        if first:
            self._check(first, writer, setting)
        self.rows = [self._read(index, line) for index, line in enumerate(rest)]
        """What the lines after the first say."""

    def begin(self, rows: Iterable[dict[str, Any]]) -> None:
        """Puts a file with these rows in the place of what is there, at once."""
        try:
            with places.replacing(self.path) as part, part.open("w") as stream:
                stream.writelines(json.dumps(row) + "\n" for row in (self._head, *rows))
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise self.unusable(error.strerror or str(error)) from error

    def add(self, row: dict[str, Any]) -> None:
        """Writes one row, to the disk."""
        with self.path.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
            stream.flush()
            os.fsync(stream.fileno())

    def unusable(self, why: str) -> BeowireError:
        """The error that says so, with the fix."""
        return BeowireError(
            f"Results cannot be kept in {self.path}: {why}.", "Name another file by --results."
        )

    def bad_row(self, index: int, error: Exception) -> BeowireError:
        """The error for one of `rows`, which does not say what it should."""
        return self.unusable(f"line {index + 2} is no result ({error!r})")

    def _lines(self) -> list[str]:
        try:
            text = self.path.read_text()
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            raise self.unusable(str(error)) from error
        return text[: text.rfind("\n") + 1].splitlines()

    def _check(self, line: str, writer: str, setting: dict[str, Any]) -> None:
        try:
            told = json.loads(line)
            found = {key: told[key] for key in setting}
            number = told["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise self.unusable(f"its first line is none of `{writer}` ({error!r})") from error
        if number != FORMAT:
            raise self.unusable(f"its format is {number}, not {FORMAT}")
        other = [
            f"{key} {found[key]}, not {setting[key]}" for key in found if found[key] != setting[key]
        ]
        if other:
            raise self.unusable(f"it has results of another setting: {'; '.join(other)}")

    def _read(self, index: int, line: str) -> dict[str, Any]:
        try:
            told = json.loads(line)
        except ValueError as error:
            raise self.bad_row(index, error) from error
        if not isinstance(told, dict):
            raise self.bad_row(index, TypeError("not an object"))
        return told
