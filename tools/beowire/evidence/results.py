# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The results of a run as JSON: written by `--json`, read by `--gallery`.

Files of parts of a run may be put together, if one machine and one version measured them.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from beowire import __version__
from beowire.errors import BeowireError
from beowire.evidence import outcome
from beowire.evidence.entry import Entry
from beowire.evidence.outcome import Outcome
from beowire.evidence.registry import ENTRIES, WRONG_USE

FORMAT = 1
_WRITER = "beowire evidence"
_LARGEST_BYTES = 8 << 20


@dataclass(frozen=True)
class Results:
    """Outcomes, and what they were measured on."""

    run: str
    """quick or full."""
    commit: str
    host: dict[str, Any]
    load: tuple[float, float]
    """The least and the largest load of the machine between experiments."""
    outcomes: tuple[Outcome, ...]

    def as_json(self) -> dict[str, Any]:
        known = {each.id: each for each in ENTRIES}
        return {
            "writer": _WRITER,
            "format": FORMAT,
            "version": __version__,
            "commit": self.commit,
            "run": self.run,
            "host": self.host,
            "load": list(self.load),
            "entries": [each.as_json(known[each.id]) for each in self.outcomes],
        }


def read(files: list[Path]) -> Results:
    """Of one file or several, in the order of the entries. Raises BeowireError for what is none of
    ours, of another version, or does not belong together."""
    first, *others = [(file, _read(file)) for file in files]
    found = {each.id: each for each in first[1].outcomes}
    for file, more in others:
        for name in ("host", "commit", "run"):
            mine, its = getattr(first[1], name), getattr(more, name)
            if mine != its:
                raise _refused(
                    f"{first[0]} and {file} do not belong together: {name} {_short(mine)} and "
                    f"{_short(its)}."
                )
        for each in more.outcomes:
            if each.id in found:
                raise _refused(f"{each.id} is in {file} and in a file before it.")
            found[each.id] = each
    loads = [each.load for _, each in (first, *others)]
    return Results(
        first[1].run,
        first[1].commit,
        first[1].host,
        (min(low for low, _ in loads), max(high for _, high in loads)),
        tuple(found[each.id] for each in ENTRIES if each.id in found),
    )


def updated(file: Path, found: Results) -> Results:
    """What a file has, with these outcomes in the place of its own of the same entries; each of
    them tells when it was measured. Raises BeowireError if another machine, or another kind of run,
    measured what the file has."""
    kept = read([file])
    _check_same(file, kept, found.host, found.run)
    anew = (replace(each, commit=found.commit, load=found.load) for each in found.outcomes)
    both = {each.id: each for each in (*kept.outcomes, *anew)}
    return replace(kept, outcomes=tuple(both[each.id] for each in ENTRIES if each.id in both))


def check_updatable(file: Path, host: dict[str, Any], run: str) -> None:
    """Raises BeowireError if what this machine measures in such a run cannot go into the file."""
    _check_same(file, read([file]), host, run)


def _check_same(file: Path, kept: Results, host: dict[str, Any], run: str) -> None:
    mine, its = {**kept.host, "run": kept.run}, {**host, "run": run}
    other = [name for name in {**mine, **its} if mine.get(name) != its.get(name)]
    if other:
        told = ", ".join(f"{name} {mine.get(name)!r}, not {its.get(name)!r}" for name in other)
        raise _refused(f"{file} was measured otherwise: {told}.")


def _short(value: Any) -> str:
    return str(value.get("mark", value)) if isinstance(value, dict) else repr(value)


def _refused(why: str) -> BeowireError:
    return BeowireError(why, "Give files of `beowire evidence --json` of one run.", WRONG_USE)


def _read(file: Path) -> Results:
    try:
        if file.stat().st_size > _LARGEST_BYTES:
            raise _refused(f"{file} is larger than any results are.")
        told = json.loads(file.read_text())
    except OSError as error:
        raise _refused(f"{file} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise _refused(f"{file} is no whole JSON: {error}.") from error
    if not isinstance(told, dict) or told.get("writer") != _WRITER:
        raise _refused(f"{file} is no file of `{_WRITER}`.")
    for name, mine in (("format", FORMAT), ("version", __version__)):
        if told.get(name) != mine:
            raise _refused(f"{file} is of another version: its {name} is {told.get(name)!r}.")
    try:
        return _decoded(file, told)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _refused(f"{file} is damaged: {error!r}.") from error


def _decoded(file: Path, told: dict[str, Any]) -> Results:
    known = {each.id: each for each in ENTRIES}
    outcomes = []
    for each in told["entries"]:
        found = outcome.read(each)
        if found.id not in known:
            raise _refused(f"{file} has an entry {found.id}, which this version does not know.")
        if each["criterion"] != known[found.id].criterion.text():
            raise _refused(f"{file} judged {found.id} by another criterion than this version.")
        outcomes.append(found)
    if len({each.id for each in outcomes}) != len(outcomes):
        raise _refused(f"{file} has an entry twice.")
    low, high = told["load"]
    if not isinstance(told["host"], dict) or told["run"] not in ("quick", "full"):
        raise TypeError("host or run")
    return Results(
        told["run"], str(told["commit"]), told["host"], (float(low), float(high)), tuple(outcomes)
    )


def entry_of(found: Outcome) -> Entry:
    """What an outcome is of."""
    return next(each for each in ENTRIES if each.id == found.id)
