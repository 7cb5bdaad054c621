# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire test`."""

from typing import Annotated

import typer

from beowire.errors import BeowireError
from beowire.terminal import note


def run_tests(
    paths: Annotated[
        list[str] | None, typer.Argument(help="Only these files or folders of tests in Python.")
    ] = None,
    long: Annotated[bool, typer.Option("--long", help="Also the tests that take hours.")] = False,
    part: Annotated[
        str,
        typer.Option(metavar="K/N", help="Only the K-th of N parts, which together are all tests."),
    ] = "1/1",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on where a run of the same tests was ended: without what passed in it.",
        ),
    ] = False,
    require_all: Annotated[
        bool,
        typer.Option(
            "--require-all",
            help="A skipped test is a failure, unless tests/allowed-skips.toml allows it.",
        ),
    ] = False,
) -> None:
    """Run all tests; the last line says how many passed, failed and were skipped."""
    from beowire import places
    from beowire.selftest import reports, run, skips, times

    places.source("tests")
    allowed = skips.load() if require_all else []
    chosen = run.Chosen(long, *run.part(part), resume)
    if resume and paths:
        raise BeowireError("--resume is for a run of all tests or of a part.", "Name no paths.")
    cases = run.run_some(chosen, paths) if paths else run.run_all(chosen)
    print()
    if require_all:
        cases = skips.refused(cases, allowed)
    print(*times.table(times.by_folder(run.logs()), times.until_now()), sep="\n")
    if not paths and chosen.parts == 1:
        for each in skips.unused(cases, allowed):
            note(f"tests/allowed-skips.toml: nothing that is skipped matches {each.test}")
    for verdict in ("skipped", "failed"):  # failures last: ends of logs are what is kept and read
        for case in cases:
            if case.verdict == verdict:
                print(f"{case.verdict}: {case.name}: {case.reason}")
    print(reports.summary(cases), flush=True)
    failed = any(case.verdict == "failed" for case in cases)
    none_ran = not any(case.verdict == "passed" for case in cases)
    raise typer.Exit(1 if failed or none_ran else 0)
