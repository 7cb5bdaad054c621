# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The table of foreign suites in docs/conformance.md, made from what was recorded."""

import tomllib
from collections import Counter
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
_COUNTED: tuple[Verdict, ...] = ("passed", "failed", "hung", "not run", "not built")


def write(document: Path, outcomes: list[Outcome], sizes: Sizes) -> None:
    """Replaces the table in the document."""
    text = document.read_text()
    if BEGIN not in text or END not in text:
        raise BeowireError(f"{document} has no place for the table.", f"Add {BEGIN} and {END}.")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    document.write_text(
        f"{before}{BEGIN}\n\n{table(outcomes, explanations(), sizes)}\n{END}{after}"
    )


def explanations() -> dict[str, str]:
    """Why a test differs, by its name or by the first part of it."""
    return tomllib.loads(EXPLAINED.read_text())["why"] if EXPLAINED.exists() else {}


def table(outcomes: list[Outcome], why: dict[str, str], sizes: Sizes) -> str:
    """A row for each suite, library and network, also where nothing ran; below it what passes over
    TCP alone."""
    newest = {each.key[1:]: each for each in outcomes}
    groups: dict[tuple[str, ...], list[Outcome]] = {}
    for each in newest.values():
        groups.setdefault((each.suite, each.version, each.network), []).append(each)
    lines = [
        "| suite | with | network | tried | over Beowire | over TCP | date | commit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for suite, version in sizes:
        for network in NETWORKS:
            groups.setdefault((suite, version, network), [])
    for (suite, version, network), members in sorted(groups.items()):
        size = sizes.get((suite, version))
        tried = f"{len(members)} of {size}" if size else str(len(members))
        if not members:
            lines.append(f"| {suite} | {version} | {NETWORKS[network][0]} | {tried} | | | | |")
            continue
        counts = [_counts(members, transport) for transport in TRANSPORTS]
        last = max(members, key=lambda each: each.date)
        named = NETWORKS[network][0]
        lines.append(
            f"| {suite} | {version} | {named} | {tried} | {counts[0]} | {counts[1]} "
            f"| {last.date} | {last.commit} |"
        )
    different: dict[tuple[str, str], list[Outcome]] = {}
    for each in newest.values():
        if each.differs:
            different.setdefault((each.suite, each.name), []).append(each)
    if different:
        lines += ["", "Passed over TCP and not over Beowire:", ""]
        lines += [
            f"- {suite}, `{name}`: {_places(members)}; {_reason(name, why)}"
            for (suite, name), members in sorted(different.items())
        ]
    return "\n".join([*lines, ""])


def _counts(members: list[Outcome], transport: str) -> str:
    count = Counter(each.verdicts[transport] for each in members)
    return ", ".join(f"{count[each]} {each}" for each in _COUNTED if count[each])


def _places(members: list[Outcome]) -> str:
    """Where a test differs, how it ended there, and what the control says."""
    shown = []
    for each in sorted(members, key=lambda each: each.key):
        control = each.verdicts.get(CONTROL)
        told = f" ({CONTROL}: {control})" if control else ""
        shown.append(f"{each.version}, {each.network}: {each.verdicts['beowire']}{told}")
    return "; ".join(shown)


def _reason(name: str, why: dict[str, str]) -> str:
    fitting = [key for key in why if name.startswith(key)]
    return why[max(fitting, key=len)] if fitting else "not explained"
