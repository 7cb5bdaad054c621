# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the runners of tests report, counted in real test cases.

Meson runs what is compiled and pytest what drives it; both write JUnit files, and those are read.
"""

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Verdict = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Case:
    """One test case and how it went."""

    name: str
    verdict: Verdict
    reason: str = ""
    """Why it was skipped or failed, in one line."""


def read_junit(path: Path) -> list[Case]:
    """The cases of a JUnit file; a program built on CMocka counts as the cases that it ran."""
    cases = []
    for element in ElementTree.parse(path).iter("testcase"):
        owner = element.get("classname", "")
        name = element.get("name", "")
        if owner and not name.startswith(owner):
            name = f"{owner}: {name}"
        outcome = _outcome(name, element)
        inner = cmocka_cases(
            name, element.findtext("system-out") or "", element.findtext("system-err") or ""
        )
        cases += inner
        # A program may fail beside its cases: by a crash, a leak, or a time limit.
        if not inner or (
            outcome.verdict == "failed" and all(case.verdict != "failed" for case in inner)
        ):
            cases.append(outcome)
    return cases


NO_END = "did not end"
"""The reason of a case that began, and of which nothing more was told."""

_CMOCKA_LINE = re.compile(r"^\[\s*(RUN|OK|SKIPPED)\s*\] (\S+)$")


def cmocka_cases(program: str, output: str, errors: str) -> list[Case]:
    """The cases in the output of a program built on CMocka: a name when a case begins, again when
    it passes or is skipped, and between the two what the case itself said. Failures are told among
    the errors; a case that began and did not end has failed too."""
    cases: dict[str, Case] = {}
    said = ""
    for line in output.splitlines():
        match = _CMOCKA_LINE.match(line)
        if match is None:
            said = line.strip() or said
            continue
        event, name = match.groups()
        full = f"{program}: {name}"
        if event == "RUN":
            said = ""
            cases[name] = Case(full, "failed", _cmocka_complaint(name, errors))
        elif event == "OK":
            cases[name] = Case(full, "passed")
        else:
            cases[name] = _skipped(full, said)
    return list(cases.values())


def _cmocka_complaint(name: str, errors: str) -> str:
    """The first error that CMocka tells above the line that says this case failed."""
    complaint = ""
    for line in errors.splitlines():
        if line.startswith("[  ERROR   ]") and not complaint:
            complaint = line.removeprefix("[  ERROR   ] --- ").strip()
        if line.strip() == f"[  FAILED  ] {name}":
            return complaint or "failed"
        if line.startswith("[  FAILED  ]"):
            complaint = ""
    return NO_END


def _outcome(name: str, element: ElementTree.Element) -> Case:
    """The case as its runner reports it."""
    for tag in ("failure", "error"):
        child = element.find(tag)
        if child is not None:
            why = _line(child.get("message") or child.text or "") or _last_words(element)
            return Case(name, "failed", why)
    child = element.find("skipped")
    if child is not None:
        return _skipped(name, _line(child.get("message") or child.text or _last_words(element)))
    return Case(name, "passed")


def _skipped(name: str, reason: str) -> Case:
    """A skipped case; without a reason nobody could judge it, which is a failure of the test."""
    if not reason:
        return Case(name, "failed", "it was skipped without a reason")
    return Case(name, "skipped", reason)


def _last_words(element: ElementTree.Element) -> str:
    """The last line that a program printed: why it skipped itself, or failed."""
    text = f"{element.findtext('system-out') or ''}\n{element.findtext('system-err') or ''}"
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _line(text: str) -> str:
    """The first line that says something."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def summary(cases: list[Case]) -> str:
    """The last line of a test run."""
    counts = dict.fromkeys(("passed", "failed", "skipped"), 0)
    for case in cases:
        counts[case.verdict] += 1
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
