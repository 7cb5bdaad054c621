# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs the cases of a book that are missing: an unmodified MPI program on one site and on both.

The program is timed from outside, by a library that is preloaded (adapters/stopwatch). A run
proves which way its payload went; one during which the emulator came late is repeated.
"""

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from beowire import places
from beowire.bench import pingpong
from beowire.errors import BeowireError
from beowire.lab import up
from beowire.run import launch, mpi, path
from beowire.run.cluster import Cluster, of_hosts
from beowire.run.job import run_captured
from beowire.run.launch import Job
from beowire.wan import sites
from beowire.wan.profile import Book, Case, Place, Run, Setting
from beowire.wan.results import Verdict
from beowire.wan.run import ATTEMPTS, BEOWIRE_LINKS, duration
from beowire.wan.sites import WanLab

Tell = Callable[[str], None]


def stopwatch() -> Path:
    """The library that times a program."""
    return places.product("adapters/stopwatch/libbeowire-stopwatch.so")


def setting(
    program: list[str], nodes: int, ranks_per_node: int, cpus: float, mpi_name: str
) -> Setting:
    """What is measured, and on what. Fails if the program or a tool is not there."""
    stopwatch()
    places.provider_dir()
    places.product("emulator/beowire-link")
    if ranks_per_node < 1:
        raise BeowireError(f"--ppn {ranks_per_node}?", "Give 1 or more ranks for each node.")
    sites.chosen(sites.topology(cpus), nodes)
    processors = os.cpu_count() or 1
    told = pingpong.machine()
    return Setting(
        program=placed(program),
        digest=digest(program),
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        cpus=cpus or sites.default_cpus(nodes, processors),
        processors=processors,
        machine=f"{told['architecture']}, Linux {told['kernel']}",
        mpi=mpi_name,
        library=mpi.find(mpi_name).name,
    )


def hosts(names: str | None, ssh: str, network: str, nodes: int) -> Cluster | None:
    """Real hosts, as many as there are nodes in the lab; None where none are named."""
    if names is None:
        return None
    found = of_hosts([names], ssh, network)
    if len(found.hosts) != nodes:
        raise BeowireError(
            f"--hosts {names} are {len(found.hosts)}, and the lab has {nodes} nodes.",
            f"Give --nodes {len(found.hosts)}, or {nodes} hosts; half of them stand for a site.",
        )
    return found


def placed(program: list[str]) -> tuple[str, ...]:
    """Its words, so that they mean the same from everywhere."""
    name, *arguments = program
    return (str(Path(name).absolute()) if "/" in name else name, *arguments)


def digest(program: list[str]) -> str:
    """Of the executable's bytes, by which another program is told."""
    launch.check_program(
        Job(program, 1, "tcp"), Cluster(hosts=["here"], agent=[], shares_cores=True)
    )
    found = Path(shutil.which(program[0]) or program[0])
    try:
        return hashlib.sha256(found.read_bytes()).hexdigest()
    except OSError as error:
        raise BeowireError(
            f"{found} cannot be read: {error.strerror}.",
            "A profile keeps a check sum of its program; make it readable.",
        ) from error


def fill(book: Book, limit_s: float, tell: Tell, hosts: Cluster | None = None) -> None:
    """Runs what the book lacks: over lines in a lab that is gone afterwards, and on real hosts."""
    missing = book.missing()
    if not missing:
        return
    in_lab = [each for each in missing if each[1].place == "lab"]
    on_hosts = [each for each in missing if each[1].place == "hosts"]
    if on_hosts and hosts is None:
        raise BeowireError(
            f"{book.path} lacks {len(on_hosts)} runs on {', '.join(book.plan.hosts)}.",
            "Name these hosts by --hosts again, and how to reach them.",
        )
    began_s = time.monotonic()
    with up.termination_raises(), _kept(book, tell):
        if in_lab:
            with sites.made(book.setting.nodes, book.setting.cpus) as lab:
                for number, case in _told(book, in_lab, tell):
                    book.add(_in_lab(lab, book.setting, number, case, limit_s))
        for number, case in _told(book, on_hosts, tell):
            assert hosts is not None
            book.add(_on_hosts(hosts, book.setting, number, case, limit_s))
    tell(f"{len(missing)} runs in {duration(time.monotonic() - began_s)}")


@contextlib.contextmanager
def _kept(book: Book, tell: Tell) -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        tell(f"what is measured stands in {book.path}; the same command goes on from there")
        raise


def _told(book: Book, cases: list[tuple[int, Case]], tell: Tell) -> Iterator[tuple[int, Case]]:
    """The cases, each told before it is run."""
    for step, (number, case) in enumerate(cases):
        left = _left(book, len(cases) - step, case.place)
        tell(f"{step + 1}/{len(cases)} {case}{left}")
        yield number, case


def _left(book: Book, count: int, place: Place) -> str:
    """The time left, as the runs went so far: those of a line that was not yet run take as long as
    the others did."""
    taken_s = [run.run_s * run.attempts for run in book.runs if run.case.place == place]
    if len(taken_s) < 4:
        return ""
    return f", about {duration(sum(taken_s) / len(taken_s) * count)} left"


def _in_lab(lab: WanLab, setting: Setting, number: int, case: Case, limit_s: float) -> Run:
    """Repeated while the emulator is late."""
    lab.set_line(case.line)
    where = lab.site() if case.sites == "one" else lab.cluster
    for attempt in range(1, ATTEMPTS + 1):
        before = lab.crossed_bytes()
        lab.begin()
        time_s, run_s = _once(setting, case, where, limit_s)
        crossed = lab.crossed_bytes() - before
        run = Run(number, case, time_s, crossed, run_s, lab.verdict(), attempt)
        if run.verdict.valid is not False:
            break
    return run


def _on_hosts(hosts: Cluster, setting: Setting, number: int, case: Case, limit_s: float) -> Run:
    """Nobody counts there what crosses between one half of the hosts and the other."""
    half = hosts.hosts[: len(hosts.hosts) // 2]
    where = replace(hosts, hosts=half) if case.sites == "one" else hosts
    time_s, run_s = _once(setting, case, where, limit_s)
    return Run(number, case, time_s, 0, run_s, Verdict("hosts", None))


def _once(setting: Setting, case: Case, where: Cluster, limit_s: float) -> tuple[float, float]:
    """What the program took, and the whole run."""
    environment = {"LD_PRELOAD": str(stopwatch())}
    if case.transport == "beowire":
        environment["BEOWIRE_LINKS"] = BEOWIRE_LINKS
    job = Job(
        list(setting.program),
        len(where.hosts) * setting.ranks_per_node,
        case.transport,
        mpi=setting.mpi,
        per_node=setting.ranks_per_node,
        environment=environment,
    )
    with tempfile.TemporaryDirectory() as directory:
        record, _ = run_captured(job, where, limit_s, Path(directory))
        path.prove(record)
        return read_times(Path(directory), job.ranks), record.elapsed_ns / 1e9


def read_times(directory: Path, ranks: int) -> float:
    """What the stopwatch wrote of the slowest rank, in seconds."""
    times_ns = [int(file.read_text()) for file in directory.glob("*.stopwatch")]
    if len(times_ns) != ranks:
        raise BeowireError(
            f"{len(times_ns)} of {ranks} ranks told when they called MPI_Init and MPI_Finalize.",
            "The program must be linked with a shared library of its MPI, and end by MPI_Finalize; "
            "a script must end with the program.",
        )
    return max(times_ns) / 1e9


def again(book: Book) -> Setting:
    """The setting of a profile, to be measured in again; fails if this is another machine or the
    program has changed."""
    ours = book.setting
    now = setting(list(ours.program), ours.nodes, ours.ranks_per_node, ours.cpus, ours.mpi)
    book.check_same(now)
    return now


def check_program(book: Book, program: list[str]) -> None:
    """Fails unless the profile is of this program with these arguments."""
    ours = book.setting
    book.check_same(replace(ours, program=placed(program), digest=digest(program)))
