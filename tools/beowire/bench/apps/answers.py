# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares what a program computed over both transports."""

import math

from beowire.bench.apps.application import Application, Outcome
from beowire.errors import BeowireError


def check_whole(application: Application, outcome: Outcome) -> None:
    """Fails unless a run told all figures and answers, and each of them is a number."""
    wanted = {each.name for each in application.figures}
    if set(outcome.times) != wanted or set(outcome.answers) != set(application.tolerances):
        raise BeowireError(
            f"{application.name} told {sorted({*outcome.times, *outcome.answers})}, "
            f"not {sorted({*wanted, *application.tolerances})}."
        )
    for name, value in outcome.times.items():
        if not (value > 0 and math.isfinite(value)):
            raise BeowireError(f"{application.name} took {value:g} ({name}): that is no time.")
    for name, value in outcome.answers.items():
        if not math.isfinite(value):
            raise BeowireError(f"{application.name} computed {value:g} ({name}).")


def check_agree(application: Application, tcp: Outcome, beowire: Outcome) -> None:
    """Fails, with both values, if an answer is further apart than the application allows."""
    apart = []
    for name, allowed in application.tolerances.items():
        one, other = tcp.answers[name], beowire.answers[name]
        distance = abs(one - other)
        if distance > allowed * max(abs(one), abs(other)):
            apart.append(f"{name} {one!r} over TCP, {other!r} over Beowire (allowed {allowed:g})")
    if apart:
        raise BeowireError(
            f"{application.name} computes different answers: {'; '.join(apart)}.", code=4
        )
