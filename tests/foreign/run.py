# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the test suites of others over Beowire and over TCP, each test over both in turn.

The suites' sources are not part of this project: whoever has them names where they are. They are
built in a directory of their own, and each test runs in a process and mount namespace of its own
with a limit of time. What passes over TCP has to pass over Beowire.

  .venv/bin/python tests/foreign/run.py --source mpich=~/src/mpich/test/mpi \\
      --source imb=~/src/mpi-benchmarks --build /var/tmp/foreign --mpi openmpi --network raw
  .venv/bin/python tests/foreign/run.py --build /var/tmp/foreign --write-docs
"""

import argparse
import datetime
import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import record
import sandbox
import table
from beowire import mpi, places
from beowire.cluster import Cluster
from beowire.errors import BeowireError
from beowire.terminal import note
from case import Case, Verdict
from network import NETWORKS, lab
from record import CONTROL, TRANSPORTS, Outcome, differs
from suites import fabtests, imb, mpi4py, mpich

Finder = Callable[[Path, Path, str, bool], list[Case]]
"""Source, where to build, the compiler (or the prefix of libfabric), the long form."""
SUITES: dict[str, Finder] = {
    "fabtests": fabtests.cases,
    "mpich": mpich.cases,
    "imb": imb.cases,
    "mpi4py": mpi4py.cases,
}
PROVIDERS = {"beowire": "beowire", "tcp": "tcp;ofi_rxm"}
_LINES_KEPT = 15
_PRODUCT = ("engine", "hosts", "adapters", "tools/beowire")
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
        help="where the libfabric for fabtests is installed (default: /usr)",
    )
    add("--network", action="append", choices=list(NETWORKS), help="(default: all)")
    add("--match", action="append", metavar="PATTERN", help="only tests with such names")
    add("--long", action="store_true", help="more sizes and ranks")
    add("--again", action="store_true", help="also what has run at this commit already")
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
        with lab(network) as cluster:
            for suite, source in sources.items():
                libraries = [""] if suite == "fabtests" else options.mpi or ["openmpi"]
                for library in libraries:
                    try:
                        good &= _run_suite(
                            suite, source, library, network, cluster, options, results
                        )
                    except BeowireError as error:
                        note(f"{suite}, {library or 'libfabric'}: left out. {error}")
                        good = False
    return good


def _run_suite(
    suite: str,
    source: Path,
    library: str,
    network: str,
    cluster: Cluster,
    options: argparse.Namespace,
    results: Path,
) -> bool:
    if not source.is_dir():
        raise BeowireError(f"There is no directory {source}.", f"Fetch the source of {suite}.")
    version = mpi.find(library).name if library else fabtests.version(options.libfabric)
    if library:
        family: str = mpi.find(library).family
        compiler = f"mpicc.{family}"
        if shutil.which(compiler) is None:
            raise BeowireError(f"There is no {compiler}.", "Install it: ./beowire test does.")
    else:
        family, compiler = version.replace(" ", "-"), str(options.libfabric.absolute())
    note(f"building {suite} with {compiler}")
    cases = SUITES[suite](source, options.build / f"{suite}-{family}", compiler, options.long)
    record.set_size(results, suite, version, len(cases))
    commit, date = _commit(), datetime.date.today().isoformat()
    done = set() if options.again else {each.key for each in record.read(results)}
    good = True
    for case in cases:
        if options.match and not any(fnmatch.fnmatch(case.name, each) for each in options.match):
            continue
        if (commit, suite, version, network, case.name) in done:
            continue
        verdicts, output = _run_case(case, library, cluster)
        outcome = Outcome(commit, date, suite, version, network, case.name, verdicts, output)
        record.append(results, [outcome])
        good &= not outcome.differs
        print(
            f"{suite}, {version}, {network}: {case.name}: "
            + ", ".join(f"{key} {value}" for key, value in verdicts.items()),
            flush=True,
        )
    return good


def _run_case(
    case: Case, library: str, cluster: Cluster
) -> tuple[dict[str, Verdict], dict[str, str]]:
    """The verdicts by transport, and the last lines where it did not pass."""
    if case.memory_bytes > sandbox.memory_bytes() // 2:
        needed = f"It needs {case.memory_bytes >> 20} MiB, more than half of what is free here."
        return dict.fromkeys(TRANSPORTS, "not run"), {"memory": needed}
    if case.make:
        built = subprocess.run(
            case.make, cwd=case.directory, capture_output=True, text=True, check=False
        )
        if built.returncode != 0:
            return dict.fromkeys(TRANSPORTS, "not built"), {"make": _last(built.stderr)}
    verdicts: dict[str, Verdict] = {}
    output = {}
    limit_s = case.limit_s
    for transport in reversed(TRANSPORTS):
        command = (
            _mpi_command(case, library, cluster, transport)
            if library
            else _pair_command(case, cluster, transport)
        )
        began = time.monotonic()
        status, text = sandbox.run(command, limit_s, case.directory, case.environment)
        verdicts[transport] = "hung" if status is None else case.judge(status, text)
        if verdicts[transport] not in ("passed", "not run"):
            output[transport] = _last(text)
        if transport == "tcp":
            limit_s = limit_after(case.limit_s, time.monotonic() - began)
    if library and differs(verdicts):
        # The same way through the MPI and libfabric, with another provider under it.
        command = _mpi_command(case, library, cluster, "tcp", "--tcp-stack", "ofi")
        status, text = sandbox.run(command, limit_s, case.directory, case.environment)
        verdicts[CONTROL] = "hung" if status is None else case.judge(status, text)
    return {key: verdicts[key] for key in (*TRANSPORTS, CONTROL) if key in verdicts}, output


def limit_after(limit_s: float, tcp_s: float) -> float:
    """The limit over Beowire of a test that took so long over TCP just before: what hangs shall not
    cost its whole limit, and what is merely slower on a busy machine shall end."""
    return min(limit_s, 60 + 20 * tcp_s)


def _mpi_command(
    case: Case, library: str, cluster: Cluster, transport: str, *more: str
) -> list[str]:
    assert cluster.lab is not None
    head = [sys.executable, "-P", "-m", "beowire", "run", "--lab", cluster.lab.name]
    options = ["-n", str(case.ranks), "--transport", transport, "--mpi", library, *more, "--"]
    return [*head, *options, *case.arguments]


def _pair_command(case: Case, cluster: Cluster, transport: str) -> list[str]:
    """A shell that starts the server on the first node and the client on the second; both must
    end well, and whichever fails gives its status."""
    made = cluster.lab
    assert made is not None
    first, second = made.node_names()[:2]
    program, *arguments = case.arguments
    options = [*arguments, "-p", PROVIDERS[transport]]
    address = {node: made.address(node) for node in (first, second)}
    server = [
        "sh",
        str(made.enter_path(first)),
        program,
        *options,
        "-s",
        address[first],
    ]
    client = [
        "sh",
        str(made.enter_path(second)),
        program,
        *options,
        "-s",
        address[second],
    ]
    script = (
        '"$@" & server=$!; sleep 1; eval "$CLIENT"; status=$?; '
        'wait $server || { mine=$?; [ $status -ne 0 ] || status=$mine; }; exit "$status"'
    )
    words = " ".join("'" + each.replace("'", "'\\''") + "'" for each in [*client, address[first]])
    environment = [f"CLIENT={words}", f"FI_PROVIDER_PATH={places.provider_dir()}"]
    return ["env", *environment, "sh", "-c", script, "sh", *server]


def _last(text: str) -> str:
    return "\n".join(text.splitlines()[-_LINES_KEPT:])


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
