# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the test suites of others over Beowire, and over TCP what does not pass there.

The suites' sources are not part of this project: whoever has them names where they are. They are
built in a directory of their own, and each test runs in a process and mount namespace of its own
with a limit of time, several at once, each in a lab of its own. What passes over TCP has to pass
over Beowire.

  .venv/bin/python tests/foreign/run.py --source mpich=~/src/mpich/test/mpi \\
      --source imb=~/src/mpi-benchmarks --build /var/tmp/foreign --mpi openmpi --network raw
  .venv/bin/python tests/foreign/run.py --build /var/tmp/foreign --write-docs
"""

import argparse
import contextlib
import datetime
import fnmatch
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from threading import Event

import record
import sandbox
import table
import trial
from beowire import places
from beowire.errors import BeowireError
from beowire.run import mpi
from beowire.terminal import note
from case import Case
from command import Bench
from network import NETWORKS, lab
from record import Outcome
from suites import fabtests, imb, mpi4py, mpich, nccl, postgres

Finder = Callable[[Path, Path, str, bool], list[Case]]
"""Source, where to build, the compiler (or the prefix of libfabric), the long form."""
SUITES: dict[str, Finder] = {
    "fabtests": fabtests.cases,
    "mpich": mpich.cases,
    "imb": imb.cases,
    "mpi4py": mpi4py.cases,
    "aws-ofi-nccl": nccl.cases,
    "postgres": postgres.cases,
}
_WITHOUT_MPI = ("fabtests", "aws-ofi-nccl", "postgres")
"""They run without an MPI."""
_PRODUCT = ("engine", "common", "hosts", "adapters", "tools/beowire")
"""What a change must touch for the tests to run again."""


def main() -> int:
    options = _options()
    results = options.build / "results.jsonl"
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        if options.write_docs:
            document = places.root() / "docs" / "conformance.md"
            table.write(document, record.read(results), record.sizes(results))
            return 0
        sources = dict(_source(each) for each in options.source)
        if not sources:
            raise BeowireError("No suite is named.", "Give --source SUITE=DIR at least once.")
        return 0 if _run_all(sources, options, results) else 1
    except BeowireError as error:
        note(str(error))
        return 2
    except KeyboardInterrupt:
        note(f"interrupted; what has ended is in {results}, and the same command goes on there")
        return 130


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--source",
        action="append",
        default=[],
        metavar="SUITE=DIR",
        help=f"{', '.join(SUITES)}",
    )
    add(
        "--build",
        type=Path,
        required=True,
        help="where suites are built and results are kept",
    )
    add(
        "--mpi",
        action="append",
        metavar="MPI",
        help="as of ./beowire run (default: openmpi)",
    )
    add(
        "--libfabric",
        type=Path,
        default=Path("/usr"),
        metavar="DIR",
        help="where the libfabric for fabtests and aws-ofi-nccl is (default: /usr)",
    )
    add("--network", action="append", choices=list(NETWORKS), help="(default: all)")
    add("--match", action="append", metavar="PATTERN", help="only tests with such names")
    add("--long", action="store_true", help="more sizes and ranks")
    add(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="in an order that the seed makes: what has run when it is interrupted is a sample",
    )
    add("--jobs", type=int, default=1, metavar="N", help="tests at once, each in its own lab")
    add("--both", action="store_true", help="over TCP also what passes over Beowire")
    add("--limit", type=float, default=0, metavar="S", help="no test gets more seconds than these")
    add("--again", action="store_true", help="also what has run at this commit already")
    add(
        "--keep",
        action="append",
        default=[],
        metavar="COMMIT",
        help="what has run at this commit of the product counts as run; the table names it",
    )
    add(
        "--write-docs",
        action="store_true",
        help="write the results to docs/conformance.md",
    )
    return parser.parse_args()


def _source(text: str) -> tuple[str, Path]:
    suite, equals, directory = text.partition("=")
    if suite not in SUITES or not equals:
        raise BeowireError(f"--source {text} names no suite.", f"Write one of {', '.join(SUITES)}.")
    return suite, Path(directory).expanduser().absolute()


def _run_all(sources: dict[str, Path], options: argparse.Namespace, results: Path) -> bool:
    """Whether every suite could be built, and passed over Beowire what it passed over TCP."""
    good = True
    for network in options.network or NETWORKS:
        with contextlib.ExitStack() as labs:
            benches: Queue[Bench] = Queue()
            for number in range(max(1, options.jobs)):
                benches.put(Bench(labs.enter_context(lab(network, number))))
            for suite, source in sources.items():
                for library in [""] if suite in _WITHOUT_MPI else options.mpi or ["openmpi"]:
                    try:
                        found = _find(suite, source, library, options)
                        size = sum(len(each.recorded) for each in found.cases)
                        record.set_size(results, suite, found.version, size)
                        good &= run_suite(found, network, benches, options, results)
                    except BeowireError as error:
                        note(f"{suite}, {library or 'libfabric'}: left out. {error}")
                        good = False
    return good


@dataclass(frozen=True)
class Suite:
    """A suite that is built."""

    name: str
    library: str
    """The MPI, as of ./beowire run; empty: none."""
    version: str
    cases: list[Case]


def _find(suite: str, source: Path, library: str, options: argparse.Namespace) -> Suite:
    if not source.is_dir():
        raise BeowireError(f"There is no directory {source}.", f"Fetch the source of {suite}.")
    if library:
        version = mpi.find(library).name
        family: str = mpi.find(library).family
        compiler = f"mpicc.{family}"
        if shutil.which(compiler) is None:
            raise BeowireError(f"There is no {compiler}.", "Install it: ./beowire test does.")
    elif suite == "postgres":
        version, compiler = postgres.version(source), "gcc"
        family = version.replace(" ", "-")
    else:
        version, compiler = fabtests.version(options.libfabric), str(options.libfabric.absolute())
        family = version.replace(" ", "-")
    note(f"building {suite} with {compiler}")
    directory = options.build / f"{suite}-{family}"
    directory.mkdir(parents=True, exist_ok=True)
    return Suite(suite, library, version, SUITES[suite](source, directory, compiler, options.long))


def run_suite(
    suite: Suite,
    network: str,
    benches: "Queue[Bench]",
    options: argparse.Namespace,
    results: Path,
) -> bool:
    """Runs what has not run yet, as many at once as there are benches."""
    commits = [_commit(), *options.keep]
    done: set[tuple[str, ...]] = set()
    if not options.again:
        done = {each.key for each in record.read(results) if each.settled}
    waiting = [
        case for case in _ordered(suite.cases, options.shuffle) if _wanted(case.name, options.match)
    ]
    waiting = [
        case
        for case in waiting
        if not any(
            all((each, suite.name, suite.version, network, name) in done for name in case.recorded)
            for each in commits
        )
    ]
    stop = Event()
    date = datetime.date.today().isoformat()

    def run_one(case: Case) -> bool:
        bench = benches.get()
        try:
            if stop.is_set():
                return False
            made = trial.run(case, suite.library, bench, options.limit, options.both)
            if stop.is_set():  # it was killed
                return False
        finally:
            benches.put(bench)
        outcomes = [
            Outcome(
                commits[0],
                date,
                suite.name,
                suite.version,
                network,
                name,
                each.verdicts,
                each.output,
            )
            for name, each in made.by_name(case).items()
        ]
        record.append(results, outcomes)
        for each in outcomes:
            shown = ", ".join(f"{key} {value}" for key, value in each.verdicts.items())
            print(f"{suite.name}, {suite.version}, {network}: {each.name}: {shown}", flush=True)
        return all(each.settled and not each.differs for each in outcomes)

    with ThreadPoolExecutor(benches.qsize()) as pool:
        under_way = [pool.submit(run_one, case) for case in waiting]
        try:
            ended_well = [each.result() for each in under_way]
            return all(ended_well)
        finally:  # interrupted, or one of them failed by itself: the others end as well
            if not all(each.done() for each in under_way):
                stop.set()
                sandbox.end_all()


def _ordered(cases: list[Case], seed: int | None) -> list[Case]:
    """As the suite has them, or as the seed says, whichever of them have run already."""
    return cases if seed is None else random.Random(seed).sample(cases, len(cases))


def _wanted(name: str, patterns: list[str] | None) -> bool:
    return not patterns or any(fnmatch.fnmatch(name, each) for each in patterns)


def _commit() -> str:
    """The last that changed the product; with `+` if it has changed since."""
    git = ["git", "-C", str(places.root())]
    head = subprocess.run(
        [*git, "log", "-1", "--format=%h", "--", *_PRODUCT],
        capture_output=True,
        text=True,
        check=False,
    )
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *_PRODUCT], check=False)
    return (head.stdout.strip() or "unknown") + ("+" if changed.returncode else "")


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
