# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tests that may be skipped where nothing else may: tests/allowed-skips.toml."""

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from beowire import places
from beowire.errors import BeowireError
from beowire.selftest.reports import Case


@dataclass(frozen=True)
class Allowed:
    """Skips that are right. Two regular expressions, each of the whole of what it is held against:
    `test` is the name of a case as it is printed, `reason` what the case says."""

    test: str
    reason: str
    why: str

    def covers(self, case: Case) -> bool:
        """May this case be skipped?"""
        return bool(re.fullmatch(self.test, case.name) and re.fullmatch(self.reason, case.reason))


def load(path: Path | None = None) -> list[Allowed]:
    """The entries of the list."""
    path = path or places.root() / "tests" / "allowed-skips.toml"
    try:
        rows = tomllib.loads(path.read_text()).get("skip", [])
        found = [Allowed(**row) for row in rows]
        for each in found:
            re.compile(each.test)
            re.compile(each.reason)
    except (OSError, ValueError, TypeError, re.error) as error:
        raise BeowireError(f"{path} cannot be read: {error}") from None
    return found


def refused(cases: Iterable[Case], allowed: Iterable[Allowed]) -> list[Case]:
    """The same cases, those that were skipped without leave turned into failures."""
    entries = list(allowed)
    return [
        replace(case, verdict="failed", reason=f"skipped, which it may not be: {case.reason}")
        if case.verdict == "skipped" and not any(each.covers(case) for each in entries)
        else case
        for case in cases
    ]


def unused(cases: Iterable[Case], allowed: Iterable[Allowed]) -> list[Allowed]:
    """The entries that no skipped case needs."""
    skipped = [case for case in cases if case.verdict == "skipped"]
    return [each for each in allowed if not any(each.covers(case) for case in skipped)]
