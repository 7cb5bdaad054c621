# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a run of all tests or of a part has done so far, for one that goes on where it was ended;
and what tests took, for the next run to tell how long it will take.

tests/conftest.py appends a line for each test in Python as it ends; Meson has a log of its own.
"""

import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError


@dataclass(frozen=True)
class Journal:
    """The files of it, in a directory, and which choice of tests it is about."""

    place: Path
    choice: str

    @property
    def lines(self) -> Path:
        """The choice and its sources, then each test that ended: its name, seconds, whether it
        passed."""
        return self.place / "test-journal.jsonl"

    @property
    def done(self) -> Path:
        """The names of tests that need not run again, a line each."""
        return self.place / "test-done"

    @property
    def times(self) -> Path:
        """Seconds by name, of all tests that ever ran here."""
        return self.place / "test-times.json"

    def begin(self, resume: bool, compiled: dict[str, float]) -> list[str]:
        """Begins anew, or goes on with what was begun: the names of the tests that passed.
        `compiled` are those of Meson's that passed when it ran last, and their seconds."""
        self.keep_times(compiled)
        head = {"tests": self.choice, "sources": _sources()}
        passed = self._passed(head) | compiled if resume else {}
        rows = [
            {"test": name, "seconds": seconds, "passed": True, "before": True}
            for name, seconds in sorted(passed.items())
        ]
        self.done.write_text("".join(f"{row['test']}\n" for row in rows))
        self.lines.write_text("".join(f"{json.dumps(row)}\n" for row in (head, *rows)))
        return sorted(passed)

    def _passed(self, head: dict[str, str]) -> dict[str, float]:
        """What passed in the run that began so, and its seconds; the last that is told counts."""
        rows = self._rows()
        if not rows or not head["sources"]:
            raise BeowireError("No run of tests was begun here that could go on.", _ANEW)
        changed = [key for key in head if rows[0].get(key) != head[key]]
        if changed:
            raise BeowireError(f"The run that was begun here had other {changed[0]}.", _ANEW)
        last = {row["test"]: row for row in rows[1:]}
        return {name: row["seconds"] for name, row in last.items() if row["passed"]}

    def ran(self) -> set[str]:
        """The tests in Python that ended since it was begun, or went on."""
        return {row["test"] for row in self._rows()[1:] if not row.get("before")}

    def keep_times(self, more: dict[str, float]) -> None:
        """Also those of tests that are in the journal."""
        known = json.loads(self.times.read_text()) if self.times.exists() else {}
        known |= {row["test"]: row["seconds"] for row in self._rows()[1:]} | more
        self.times.write_text(json.dumps(known))

    def environment(self) -> dict[str, str]:
        """For tests/conftest.py."""
        return {
            "BEOWIRE_TEST_JOURNAL": str(self.lines),
            "BEOWIRE_TEST_DONE": str(self.done),
            "BEOWIRE_TEST_TIMES": str(self.times),
        }

    def _rows(self) -> list[dict[str, Any]]:
        """Without a last line that was begun only."""
        text = self.lines.read_text() if self.lines.exists() else ""
        return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


_ANEW = "Leave out --resume."


def _sources() -> str:
    """Tells apart what git has, what was changed since, and files that it does not know; empty
    outside of a repository."""
    told = hashlib.sha256()
    for words in (["rev-parse", "HEAD"], ["diff", "HEAD", "--binary"]):
        done = subprocess.run(["git", *words], cwd=places.root(), capture_output=True, check=False)
        if done.returncode:
            return ""
        told.update(done.stdout)
    words = ["git", "ls-files", "-z", "--others", "--exclude-standard"]
    for name in subprocess.check_output(words, cwd=places.root()).split(b"\0"):
        file = places.root() / name.decode(errors="surrogateescape")
        told.update(name + (file.read_bytes() if name and file.is_file() else b""))
    return told.hexdigest()
