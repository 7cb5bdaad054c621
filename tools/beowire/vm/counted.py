# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A static program run alone in a guest, beside nothing of the host's, and perhaps looked at.

An answer of the host would come at a time of its own; without any, and with a clock that counts
executed instructions, the same program prints the same to the last bit.
"""

import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread

from beowire.errors import BeowireError
from beowire.vm import machine

Watcher = Callable[[Path], None]
"""Follows a guest through the socket of its debugger, from before its first instruction on."""


def run(guest: machine.Guest, watcher: Watcher | None = None) -> str:
    """What the guest's command printed. Fails if the command does, or the guest's kernel complains.

    The guest is made a bare one.
    """
    with tempfile.TemporaryDirectory(prefix="beowire-counted-") as name:
        file = Path(name) / "output"
        output = os.open(file, os.O_WRONLY | os.O_CREAT)
        guest = replace(guest, bare=True)
        try:
            if watcher is None:
                outcome = machine.run(guest, output)
            else:
                outcome = _watched(guest, output, watcher, Path(name) / "debugger")
        finally:
            os.close(output)
        text = file.read_text(errors="replace")
    _check(guest, outcome, text)
    return text


def _watched(
    guest: machine.Guest, output: int, watcher: Watcher, debugger: Path
) -> machine.Outcome:
    failures: list[Exception] = []

    def watch() -> None:
        try:
            watcher(debugger)
        except (BeowireError, OSError) as error:
            failures.append(error)

    # Not waited for if the guest is interrupted, which ends what it waits for.
    watching = Thread(target=watch, daemon=True)
    watching.start()
    outcome = machine.run(replace(guest, debugger=debugger), output)
    watching.join()
    if failures and not outcome.exit_status:
        raise failures[0]
    return outcome


def _check(guest: machine.Guest, outcome: machine.Outcome, text: str) -> None:
    if outcome.complaints:
        raise BeowireError("In the guest:\n" + "\n".join(outcome.complaints))
    if outcome.exit_status:
        message = text[max(0, text.rfind(f"{Path(guest.command[0]).name}: ")) :]
        told = message or "\n".join(outcome.console.splitlines()[-15:])
        raise BeowireError(f"The program in the guest failed:\n{told[-2000:]}")
