# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two examinations beside each other: recorded trees, or what --json kept of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from beowire.doctor import privacy
from beowire.errors import BeowireError

_WRONG_USE = 2
_FILE_MAX = 64 << 20
"""Bytes of an examination as JSON."""
_BAD = "bad"
_PARAMETERS = "kernel parameters"
Kind = Literal["fact", "setting", "finding"]


@dataclass(frozen=True)
class Examined:
    """What is compared of a node."""

    path: Path
    host: str
    goal: str
    facts: dict[str, str]
    settings: dict[str, str]
    findings: dict[str, str]
    """What was read, by check and interface."""
    states: dict[str, str]
    """Of all checks."""

    recorded: bool = False
    """Without the values that a record leaves out."""

    def told_of(self) -> dict[str, str]:
        return {"path": str(self.path), "host": self.host}


@dataclass(frozen=True)
class Difference:
    """One thing that is not alike; None: there is none."""

    kind: Kind
    name: str
    a: str | None
    b: str | None


def read(path: Path, goal: str) -> Examined:
    """A recorded tree, which is examined for this goal, or a file of --json."""
    told = _examined(path, goal) if path.is_dir() else _loaded(path)
    try:
        outcomes = {_subject(each): each for each in told["outcomes"]}
        return Examined(
            path,
            str(told["host"]),
            str(told["goal"]),
            _texts(told["facts"]),
            _texts(told["settings"]),
            {name: str(each["read"]) for name, each in outcomes.items() if each["state"] == _BAD},
            {name: str(each["state"]) for name, each in outcomes.items()},
            recorded=path.is_dir(),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise BeowireError(
            f"{path} is no examination: {error!r}.",
            "Name a folder that beowire doctor --record made, or a file of doctor --json.",
            _WRONG_USE,
        ) from error


def _examined(path: Path, goal: str) -> dict[str, Any]:
    from beowire.doctor import report
    from beowire.doctor.examine import examine
    from beowire.doctor.options import checks, make_node

    done = examine(make_node(goal, None, "", path), checks(None))
    if not done.outcomes or done.troubles:
        why = done.troubles[0] if done.troubles else "nothing could be looked at"
        raise BeowireError(f"{path} cannot be examined: {why}", "", _WRONG_USE)
    return report.as_json(done)


def _loaded(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _FILE_MAX:
            raise BeowireError(f"{path} has more than {_FILE_MAX >> 20} MiB.", "", _WRONG_USE)
        told = json.loads(path.read_bytes())
    except OSError as error:
        raise BeowireError(
            f"{path} cannot be read: {error.strerror}.", "Name another.", _WRONG_USE
        ) from error
    except (ValueError, RecursionError) as error:
        raise BeowireError(
            f"{path} is no JSON.", "Name a file of beowire doctor --json.", _WRONG_USE
        ) from error
    return told if isinstance(told, dict) else {}


def _subject(outcome: Mapping[str, Any]) -> str:
    return f"{outcome['check']} {outcome['interface']}".strip()


def _texts(told: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in told.items()}


def between(first: Examined, second: Examined) -> list[Difference]:
    """What differs: facts, then settings, then findings. A check that one of them could not judge
    is a difference if the other has a finding by it."""
    if first.goal != second.goal:
        raise BeowireError(
            f"{first.path} was examined for {first.goal}, {second.path} for {second.goal}.",
            "Compare examinations of one goal.",
            _WRONG_USE,
        )
    if first.recorded != second.recorded:
        first, second = _limited(first), _limited(second)
    found = _unlike("fact", first.facts, second.facts)
    found += _unlike("setting", first.settings, second.settings, both=True)
    for name in sorted({*first.findings, *second.findings}):
        a, b = _finding(first, name), _finding(second, name)
        if a != b:
            found.append(Difference("finding", name, a, b))
    return found


def _limited(node: Examined) -> Examined:
    """With the kernel's parameters as a record has them."""
    facts = dict(node.facts)
    if _PARAMETERS in facts:
        facts[_PARAMETERS] = privacy.limited("/proc/cmdline", facts[_PARAMETERS]).strip()
    return replace(node, facts=facts)


def _finding(node: Examined, name: str) -> str | None:
    return node.findings.get(name, node.states.get(name))


def _unlike(
    kind: Kind, first: Mapping[str, str], second: Mapping[str, str], *, both: bool = False
) -> list[Difference]:
    """`both`: only what both have, as settings are told where they are good, and else a finding."""
    return [
        Difference(kind, name, first.get(name), second.get(name))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
        and not (both and not (name in first and name in second))
    ]


def rows(found: list[Difference]) -> list[dict[str, str | None]]:
    return [{"kind": each.kind, "name": each.name, "a": each.a, "b": each.b} for each in found]


def text(first: Examined, second: Examined, found: list[Difference]) -> str:
    """For people."""
    lines = [f"A: {first.host} ({first.path})", f"B: {second.host} ({second.path})"]
    for kind, title in (("fact", "Facts"), ("setting", "Settings"), ("finding", "Findings")):
        own = [each for each in found if each.kind == kind]
        if own:
            lines += ["", title]
        for each in own:
            lines += [f"  {each.name}", f"    A: {each.a or '-'}", f"    B: {each.b or '-'}"]
    if not found:
        lines.append("No fact, setting or finding differs.")
    return "\n".join(lines)
