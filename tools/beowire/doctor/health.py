# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Whether a node is fit for jobs, in one line for a batch system, and for Prometheus."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from beowire import exposition
from beowire.doctor.check import Weight
from beowire.doctor.examine import Examination, Outcome, State
from beowire.doctor.words import counted
from beowire.errors import BeowireError
from beowire.terminal import printable

LINE_MAX = 240
"""Characters: batch systems keep the line as a node's reason."""
TROUBLE = 2


def unfit(done: Examination, least: Weight) -> list[Outcome]:
    """The findings that cost so much or more, the worst first."""
    return [each for each in done.findings() if each.weight >= least]


def line(done: Examination, least: Weight) -> str:
    """The verdict in one line, without control characters."""
    found = unfit(done, least)
    if done.troubles:
        text = f"not examined: {done.troubles[0]}"
    elif found:
        told = ", ".join(f"{each.subject} ({each.said})" for each in found)
        text = f"{counted(len(found), 'finding')}: {told}"
    else:
        text = f"fit: {len(done.outcomes)} looked at"
        if others := len(done.findings()):
            text += f", {counted(others, 'finding')} of less weight"
    text = printable(f"beowire doctor: {text}".replace("\n", " "))
    return text if len(text) <= LINE_MAX else f"{text[: LINE_MAX - 3]}..."


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What is done inside ends with BeowireError after so many seconds; 0: it has all time."""

    def late(_signal: int, _frame: FrameType | None) -> None:
        raise BeowireError(f"The node could not be examined within {seconds:g} s.", "", TROUBLE)

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def textfile(done: Examination, now: float) -> str:
    """What was found, for the textfile collector of Prometheus' node_exporter."""
    findings = done.findings()
    goal = {"goal": str(done.node.goal)}
    told = [
        *exposition.head("beowire_doctor_examined", "gauge", "1: the node was examined as asked."),
        exposition.sample("beowire_doctor_examined", goal, not done.troubles),
        *exposition.head("beowire_doctor_time_seconds", "gauge", "When, in Unix time."),
        exposition.sample("beowire_doctor_time_seconds", goal, int(now)),
        *exposition.head("beowire_doctor_outcomes", "gauge", "Checks by what became of them."),
    ]
    for state in State:
        labels = {**goal, "state": str(state)}
        told.append(exposition.sample("beowire_doctor_outcomes", labels, len(done.of(state))))
    told += exposition.head("beowire_doctor_findings", "gauge", "Findings by what they cost.")
    for weight in Weight:
        count = sum(each.weight == weight for each in findings)
        labels = {**goal, "weight": weight.name.lower()}
        told.append(exposition.sample("beowire_doctor_findings", labels, count))
    told += exposition.head("beowire_doctor_finding", "gauge", "1 for each finding.")
    for each in findings:
        labels = {**goal, "check": each.check.name, "interface": each.interface}
        labels["weight"] = each.weight.name.lower()
        told.append(exposition.sample("beowire_doctor_finding", labels, 1))
    return "\n".join(told) + "\n"


def write_textfile(file: Path, done: Examination) -> None:
    """Puts the file in its place at once, for all to read. What is being written has a name that
    the collector does not read (it takes all that end in .prom), and follows no link."""
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    text = textfile(done, time.time()).encode()
    try:
        part.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(part, flags, 0o644), "wb") as opened:
                opened.write(text)
                os.fchmod(opened.fileno(), 0o644)
                opened.flush()
                os.fsync(opened.fileno())
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise BeowireError(
            f"{file} cannot be written: {error.strerror}.", "Name another file.", TROUBLE
        ) from error
