# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What has run: a line of JSON for each test, written when it has ended, so that nothing is lost
when a run of hours is interrupted, and the next one goes on behind it."""

import fcntl
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from beowire.errors import BeowireError
from case import Verdict

TRANSPORTS = ("beowire", "tcp")
CONTROL = "tcp;ofi_rxm"
"""What passes over TCP and not over Beowire runs over this provider of libfabric, too."""


def differs(verdicts: dict[str, Verdict]) -> bool:
    """It passes over TCP and not over Beowire; what passes there may not have run over TCP."""
    return verdicts.get("tcp") == "passed" and verdicts["beowire"] != "passed"


@dataclass(frozen=True)
class Outcome:
    """How one test ended."""

    commit: str
    date: str
    suite: str
    version: str
    """Of the MPI or libfabric under which it ran."""
    network: str
    name: str
    verdicts: dict[str, Verdict]
    """By transport."""
    output: dict[str, str] = field(default_factory=dict)
    """The last lines of what did not pass, by transport."""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes it the same test, run again."""
        return self.commit, self.suite, self.version, self.network, self.name

    @property
    def differs(self) -> bool:
        """It passes over TCP and not over Beowire."""
        return differs(self.verdicts)

    @property
    def fails_over_both(self) -> bool:
        """It ran over both transports, and passed over neither."""
        return all(
            self.verdicts.get(each) in ("failed", "hung", "cut short") for each in TRANSPORTS
        )

    @property
    def settled(self) -> bool:
        """It is known how it ends."""
        return not {"not launched", "cut short"} & set(self.verdicts.values())


def read(path: Path) -> list[Outcome]:
    """What the file holds; a last line that was cut short is left out."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines()
    found = []
    for number, line in enumerate(lines):
        try:
            found.append(Outcome(**json.loads(line)))
        except (ValueError, TypeError) as error:
            if number + 1 < len(lines):
                raise BeowireError(
                    f"{path}, line {number + 1} cannot be read: {error}.",
                    "Remove that line.",
                ) from error
    return found


def append(path: Path, outcomes: Iterable[Outcome]) -> None:
    """Adds them to the file, into which several runs may write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        held = stream.read()
        stream.truncate(held.rfind(b"\n") + 1)
        for each in outcomes:
            stream.write(json.dumps(asdict(each)).encode() + b"\n")


def sizes(path: Path) -> dict[tuple[str, str], int]:
    """How many tests a suite has with an MPI or libfabric, whether or not they ran."""
    file = path.with_name("sizes.json")
    held = json.loads(file.read_text()) if file.exists() else []
    return {(suite, version): tests for suite, version, tests in held}


def set_size(path: Path, suite: str, version: str, tests: int) -> None:
    """Keeps it beside the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_name("sizes.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = {**sizes(path), (suite, version): tests}
        text = json.dumps([[*key, count] for key, count in sorted(held.items())])
        path.with_name("sizes.json").write_text(text + "\n")
