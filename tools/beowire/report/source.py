# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file that was handed in: what it holds, before anybody says what that means. It may come from
anywhere, and is not believed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from beowire.bench.compare_rows import FILE_MAX
from beowire.errors import BeowireError
from beowire.tabular import flat

WRONG_USE = 2
_MACHINE = ("architecture", "cores", "kernel", "mark", "memory_gib", "nodes", "processor")
"""Names of what tells one machine from another."""
_INTEGER_MOST = 1 << 63
_DEEPEST = 32
_WORDS_MOST = 60
"""Characters of a value that a sentence has."""


@dataclass(frozen=True)
class Source:
    """What a file holds."""

    path: Path
    told: dict[str, Any]
    writer: str = ""
    remarks: list[str] = field(default_factory=list)

    def machine(self) -> dict[str, str]:
        """What it says of the machine that measured, by name."""
        found: dict[str, str] = {}
        for part in ("machine", "host", "setting", "kernel"):
            inside = self.told.get(part)
            if part == "kernel" and isinstance(inside, str):
                inside = {"kernel": inside}
            if isinstance(inside, Mapping):
                found |= {name: str(inside[name]) for name in _MACHINE if name in inside}
        return found


def read(path: Path) -> Source:
    """Raises BeowireError, which names what is wrong, for what holds no results at all."""
    try:
        if not path.is_file():
            raise _refused(f"{path} is no file." if path.exists() else f"{path} is not there.")
        if path.stat().st_size > FILE_MAX:
            raise _refused(f"{path} has more than {FILE_MAX >> 20} MiB.")
        text = path.read_text()
    except OSError as error:
        raise _refused(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise _refused(f"{path} is no text.") from error
    if not text.strip():
        raise _refused(f"{path} is empty: whatever was to write it did not come to its end.")
    try:
        told, remarks = _parsed(path, text)
        _check_depth(told)
    except (ValueError, RecursionError) as error:
        raise _refused(f"{path} is no whole JSON, cut off or damaged: {error}.") from error
    if isinstance(told, list) and told:
        told = {"rows": told}
    if not isinstance(told, dict) or not told:
        raise _refused(f"{path} holds no results.")
    return Source(path, told, str(told.get("writer", "")), remarks)


def _parsed(path: Path, text: str) -> tuple[Any, list[str]]:
    """JSON; or lines of JSON, of which a crash may have cut the last one off."""
    first, _, rest = text.partition("\n")
    try:
        return _value(text), []
    except ValueError:
        if not rest:
            raise
    head = _value(first)
    lines = rest.splitlines()
    remarks = []
    if not text.endswith("\n"):
        lines.pop()
        remarks.append(f"The last line of {path} was cut off, and is left out.")
    rows = [_value(each) for each in lines]
    if not isinstance(head, dict):
        raise ValueError("the first line is no object")
    return {**head, "rows": rows}, remarks


def _value(text: str) -> Any:
    """What is no finite number is none."""
    return json.loads(text, parse_constant=lambda _: None, parse_int=_integer)


def _integer(digits: str) -> int | str:
    value = int(digits)
    return value if abs(value) < _INTEGER_MOST else digits


def _check_depth(told: Any, left: int = _DEEPEST) -> None:
    if not left:
        raise ValueError(f"more than {_DEEPEST} levels")
    inside = told.values() if isinstance(told, dict) else told if isinstance(told, list) else ()
    for each in inside:
        _check_depth(each, left - 1)


def mixed(sources: list[Source]) -> list[str]:
    """What differs in the machines that measured; nothing where one did, as far as is known."""
    found = []
    for first, other in ((sources[0], each) for each in sources[1:]):
        mine, its = first.machine(), other.machine()
        differ = [name for name in mine if name in its and mine[name] != its[name]]
        if differ:
            told = "; ".join(f"{each} {_short(mine[each])}, {_short(its[each])}" for each in differ)
            found.append(
                f"{first.path} and {other.path} were measured on different machines ({told}): what "
                "differs in their numbers need not be Beowire's doing."
            )
        elif bool(mine) != bool(its):
            silent = other if mine else first
            found.append(f"{silent.path} does not say which machine measured.")
    return found


def facts(told: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What belongs to a file as a whole, by name."""
    plain = {name: value for name, value in told.items() if not isinstance(value, list)}
    return [(name, _short(str(value))) for name, value in flat(plain).items() if value is not None]


def _short(words: str) -> str:
    return words if len(words) <= _WORDS_MOST else f"{words[: _WORDS_MOST - 1]}…"


def _refused(why: str) -> BeowireError:
    return BeowireError(why, "Give files that commands wrote by --json.", WRONG_USE)
