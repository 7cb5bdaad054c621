# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of foreign suites in docs/conformance.md, made from what was recorded. What it
says of runs whose records are gone stays, until more tests have run instead."""

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from beowire.errors import BeowireError
from case import Verdict
from network import NETWORKS
from record import CONTROL, TRANSPORTS, Outcome

BEGIN = "<!-- foreign suites: made by tests/foreign/run.py -->"
END = "<!-- end of foreign suites -->"
EXPLAINED = Path(__file__).with_name("explained.toml")
Sizes = dict[tuple[str, str], int]
"""How many tests a suite has, by suite and version."""
Group = tuple[str, str, str]
"""Suite, version, network."""
_COUNTED: tuple[Verdict, ...] = (
    "passed",
    "failed",
    "hung",
    "not run",
    "not built",
    "not launched",
    "cut short",
)
_HEAD = """\
| suite | with | network | tried | over Beowire | over TCP | date | commit |
|---|---|---|---|---|---|---|---|"""
_DIFFERENT = "Passed over TCP and not over Beowire:"
_BOTH = "Passed over neither:"
_UNKNOWN = "not explained"
_CUT = "it was not given its time"


@dataclass(frozen=True)
class Why:
    """A reason, and for which tests it holds."""

    tests: list[str]
    reason: str
    version: str = ""
    network: str = ""

    def fits(self, outcome: Outcome) -> bool:
        return (
            outcome.name.startswith(tuple(self.tests))
            and outcome.version.startswith(self.version)
            and self.network in ("", outcome.network)
        )


def write(document: Path, outcomes: list[Outcome], sizes: Sizes) -> None:
    """Replaces the table in the document."""
    text = document.read_text()
    if BEGIN not in text or END not in text:
        raise BeowireError(f"{document} has no place for the table.", f"Add {BEGIN} and {END}.")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    made = table(outcomes, explanations(), sizes, old)
    document.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{after}")


def explanations() -> list[Why]:
    """The reasons that are known."""
    held = tomllib.loads(EXPLAINED.read_text())["why"] if EXPLAINED.exists() else []
    return [
        Why(each["tests"], each["reason"], each.get("with", ""), each.get("network", ""))
        for each in held
    ]


def table(outcomes: list[Outcome], why: list[Why], sizes: Sizes, old: str = "") -> str:
    """A row for each suite, library and network, also where nothing ran; below it what does not
    pass. The newest outcome of each test counts; `old` is the table before."""
    newest = {each.key[1:]: each for each in outcomes}
    groups: dict[Group, list[Outcome]] = {
        (suite, version, network): [] for suite, version in sizes for network in NETWORKS
    }
    for each in newest.values():
        groups.setdefault((each.suite, each.version, each.network), []).append(each)
    rows = {group: [_row(group, groups[group], sizes)] for group in groups}
    kept = []
    old_rows: dict[Group, list[str]] = {}
    for group, tried, line in _rows(old):
        members = groups.get(group, [])
        if tried <= len(members):
            continue
        kept += [_places(group, commit) for commit in _commits_of(line)]
        old_rows.setdefault(group, []).append(line)
    for group, before in old_rows.items():
        rows[group] = [*before, *(rows.get(group, []) if groups.get(group) else [])]
    lines = [_HEAD, *(line for group in sorted(rows) for line in rows[group])]
    for title, chosen in (
        (_DIFFERENT, [each for each in newest.values() if each.differs]),
        (_BOTH, [each for each in newest.values() if each.fails_over_both]),
    ):
        found = _list(chosen, why)
        found += [line for line in _listed(old, title) if line.startswith(tuple(kept))]
        if found:
            lines += ["", title, "", *sorted(found)]
    return "\n".join([*lines, ""])


def _row(group: Group, members: list[Outcome], sizes: Sizes) -> str:
    suite, version, network = group
    size = sizes.get((suite, version))
    tried = f"{len(members)} of {size}" if size else str(len(members))
    head = f"| {suite} | {version} | {NETWORKS[network][0]} | {tried} |"
    if not members:
        return f"{head} | | | |"
    counts = [_counts(members, transport) for transport in TRANSPORTS]
    date = max(each.date for each in members)
    return f"{head} {counts[0]} | {counts[1]} | {date} | {_commits(members)} |"


def _counts(members: list[Outcome], transport: str) -> str:
    count = Counter(each.verdicts.get(transport) for each in members)
    return ", ".join(f"{count[each]} {each}" for each in _COUNTED if count[each])


def _commits(members: list[Outcome]) -> str:
    """The commit, or how many tests ran at each."""
    count = Counter(each.commit for each in members)
    if len(count) == 1:
        return next(iter(count))
    return ", ".join(f"{commit} ({tests})" for commit, tests in sorted(count.items()))


def _places(group: Group, commit: str) -> str:
    """How the lines begin that tell of tests there."""
    return f"- {', '.join(group)}, {commit}: "


def _list(outcomes: list[Outcome], why: list[Why]) -> list[str]:
    """Where tests do not pass, how they ended there, what the control says, and why: a line for
    those of which all this is the same."""
    names: dict[tuple[str, str], list[str]] = {}
    for each in outcomes:
        head = _places((each.suite, each.version, each.network), each.commit)
        ended: str = each.verdicts["beowire"]
        if CONTROL in each.verdicts:
            ended += f" ({CONTROL}: {each.verdicts[CONTROL]})"
        elif each.verdicts["tcp"] not in ("passed", ended):
            ended += f" (TCP: {each.verdicts['tcp']})"
        unknown = _CUT if each.verdicts["beowire"] == "cut short" else _UNKNOWN
        reason = next((one.reason for one in why if one.fits(each)), unknown)
        names.setdefault((head, f"{ended}: {reason}"), []).append(f"`{each.name}`")
    return [f"{head}{', '.join(sorted(found))} {told}" for (head, told), found in names.items()]


def _rows(old: str) -> list[tuple[Group, int, str]]:
    """The rows of a table, each with its group and how many tests had run."""
    named = {title: network for network, (title, _) in NETWORKS.items()}
    found = []
    for line in old.splitlines():
        cells = [each.strip() for each in line.strip("|").split("|")]
        tried = re.match(r"[1-9]\d*", cells[3]) if len(cells) == 8 else None
        if tried and cells[2] in named:
            found.append(((cells[0], cells[1], named[cells[2]]), int(tried[0]), line))
    return found


def _commits_of(row: str) -> list[str]:
    """What `_commits` has written there."""
    return [each.split()[0] for each in row.strip("| ").rpartition("|")[2].split(", ")]


def _listed(old: str, title: str) -> list[str]:
    """The lines of the list below this title."""
    lines = old.partition(f"\n{title}\n")[2].lstrip("\n").splitlines()
    end = next((at for at, line in enumerate(lines) if not line.startswith("- ")), len(lines))
    return lines[:end]
