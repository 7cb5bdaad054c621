# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One case, run over the transports: how it ended over each."""

import subprocess
from dataclasses import dataclass, field
from threading import Lock

import sandbox
from case import Case, Verdict
from command import Bench, all_begun
from record import CONTROL, differs

_LINES_KEPT = 15
_LARGE_BYTES = 1 << 30
_one_large = Lock()
_one_make = Lock()


@dataclass
class Trial:
    """What came of a case."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """By transport."""
    output: dict[str, str] = field(default_factory=dict)
    """The last lines of what did not pass, by transport."""
    parts: dict[str, "Trial"] = field(default_factory=dict)
    """The same of each part, if it has any and they ran."""

    def by_name(self, case: Case) -> "dict[str, Trial]":
        """What is recorded, by name."""
        return {name: self.parts.get(name, self) for name in case.recorded}

    def add_parts(self, case: Case, transport: str, verdict: Verdict, text: str) -> None:
        """What became of each part, also where the whole came to no end."""
        for name in case.parts:
            assert case.judge_part is not None
            ended = case.judge_part(name, text)
            if ended != "passed" and verdict not in ("passed", "failed"):
                ended = verdict
            self.parts.setdefault(name, Trial()).add(transport, ended, text)

    def add(self, transport: str, verdict: Verdict, text: str) -> None:
        self.verdicts[transport] = verdict
        if verdict not in ("passed", "not run"):
            self.output[transport] = "\n".join(text.splitlines()[-_LINES_KEPT:])


def run(case: Case, library: str, bench: Bench, limit_s: float, both: bool) -> Trial:
    """Over Beowire, and then over TCP what does not pass there, or with `both` everything."""
    trial = Trial()
    if case.memory_bytes > sandbox.memory_bytes() // 2:
        needed = f"It needs {case.memory_bytes >> 20} MiB, more than half of what is free here."
        trial.add("beowire", "not run", "")
        trial.output["memory"] = needed
        return trial
    if case.make:
        with _one_make:  # programs of one folder share what they are made of
            built = subprocess.run(
                case.make, cwd=case.directory, capture_output=True, text=True, check=False
            )
        if built.returncode != 0:
            trial.add("beowire", "not built", built.stderr)
            return trial
    if case.memory_bytes >= _LARGE_BYTES:
        with _one_large:
            _over_all(trial, case, library, bench, limit_s, both)
    else:
        _over_all(trial, case, library, bench, limit_s, both)
    return trial


def _over_all(
    trial: Trial, case: Case, library: str, bench: Bench, limit_s: float, both: bool
) -> None:
    def over(transport: str) -> None:
        verdict, text = _once(case, library, bench, transport, limit_s)
        trial.add(transport, verdict, text)
        trial.add_parts(case, transport, verdict, text)

    over("beowire")
    if both or trial.verdicts["beowire"] not in ("passed", "not launched"):
        over("tcp")
    if library and differs(trial.verdicts):
        over(CONTROL)


def _once(
    case: Case, library: str, bench: Bench, transport: str, limit_s: float
) -> tuple[Verdict, str]:
    """The verdict and all that was printed."""
    bench.cleared()
    command = bench.command(case, library, transport)
    given_s = min(limit_s or case.limit_s, case.limit_s)
    status, text = sandbox.run(command.arguments, given_s, case.directory, command.environment)
    if not all_begun(bench, case, library):
        return "not launched", text
    if status is None:
        return ("hung" if given_s == case.limit_s else "cut short"), text
    return case.judge(status, text), text
