# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire test`."""

from typing import Annotated

import typer

from beowire import selftest
from beowire.errors import BeowireError
from beowire.terminal import note


def run_tests(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Only these files or folders of tests in Python.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Also the tests that take hours.")] = False,
    require_raw: Annotated[
        bool,
        typer.Option(help="Fail if tests over raw frames are skipped where raw frames work."),
    ] = False,
) -> None:
    """Run all tests; the last line says how many passed, failed and were skipped."""
    cases = [] if paths else selftest.run_meson(long)
    cases += selftest.run_pytest(long, paths or [])
    problem = ""
    if require_raw:
        try:
            selftest.check_raw_frames(cases)
        except BeowireError as error:
            problem = str(error)
    print()
    for case in cases:
        if case.verdict != "passed":
            print(f"{case.verdict}: {case.name}: {case.reason}")
    if problem:
        note(problem)
    print(selftest.summary(cases), flush=True)
    failed = any(case.verdict == "failed" for case in cases)
    none_ran = not any(case.verdict == "passed" for case in cases)
    raise typer.Exit(1 if failed or none_ran or problem else 0)
