# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Jobs beside a hostile program on their segment: what they go through, and what is counted."""

import contextlib
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from beowire import places
from beowire.lab.lab import Lab
from beowire.run.cluster import Cluster
from beowire.run.job import run
from beowire.run.launch import Job
from beowire.run.path import JobRecord
from mpi_lab import lab_behind
from mpi_programs import HANG_S, MEBI, executable

LEAST = 1000
"""Frames that come to a job at the very least, on the average of all of them; else nobody speaks to
them. A single one may be over before the hostile program has had the processor."""
IN_VAIN = 10
"""Jobs after which this is looked at first: without such frames there never are enough jobs."""
ELSEWHERE = ("foreign", "overrun", "send_error")
"""Drops that no rank's engine saw: foreign frames, and what the kernel has no room for."""
RESIDENT_KIB = 128 * 1024
"""What a rank may have in memory at most."""
ALONE_KIB = 48 * 1024
"""The same without a stranger: far below, so that the bound means something."""
SANITIZED_KIB = 1024 * 1024
"""What a rank may have whose every byte has a shadow, and whose freed memory is kept for a
while."""
SANITIZED_ALONE_KIB = 160 * 1024
LOOK_S = 0.2
"""Between two looks at the processes of the lab. A job may take no longer than a second."""
PROGRAM = "storm"
BETWEEN = ("packet", "udp", "kernel")
"""Links between nodes."""


@dataclass(frozen=True)
class Way:
    """How the ranks speak with one another."""

    name: str
    links: str = ""
    """Those between nodes; empty: all."""
    key: str = ""
    """Of the cluster: a file. Empty: none."""
    encrypt: bool = False

    def environment(self) -> dict[str, str]:
        """What the ranks need for that."""
        found = {"BEOWIRE_LINKS": f"{self.links},local"} if self.links else {}
        if self.key:
            found["BEOWIRE_KEY"] = self.key
        if self.encrypt:
            found["BEOWIRE_ENCRYPT"] = "1"
        return found


@dataclass(frozen=True)
class Build:
    """Of the provider: where it is, what its ranks need, and what they may have in memory."""

    provider_dir: str
    environment: dict[str, str]
    alone_kib: int
    resident_kib: int
    """Beside a hostile program."""
    rate: int
    """Hostile frames in a second, about as many as a rank can look at beside its work."""
    rounds: int
    """Of one job."""
    payload_bytes: int = MEBI
    """That its ranks send each other at least."""
    least: int = LEAST


def release() -> Build:
    """As it is installed."""
    return Build("", {}, ALONE_KIB, RESIDENT_KIB, 60_000, 300)


def sanitized() -> Build:
    """With AddressSanitizer and UndefinedBehaviorSanitizer, which end a rank at their first
    complaint. Their libraries come first in a program that was built without them."""
    directory = places.build_dir() / "sanitized"
    if not (directory / "build.ninja").exists():
        command = [
            places.program("meson", "meson"),
            "setup",
            str(directory),
            str(places.root()),
        ]
        command += [
            "-Db_sanitize=address,undefined",
            "-Db_lundef=false",
            "-Dshipped_lto=false",
        ]
        subprocess.run([*command, "-Doptimization=1"], check=True)
    provider = "adapters/libfabric/libbeowire-fi.so"
    ninja = places.program("ninja", "ninja-build")
    subprocess.run([ninja, "-C", str(directory), provider], check=True)
    names = ("libasan.so", "libubsan.so")
    found = [subprocess.check_output(["gcc", f"-print-file-name={name}"]) for name in names]
    environment = {
        "LD_PRELOAD": ":".join(each.decode().strip() for each in found),
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1",
    }
    where = str((directory / provider).parent)
    return Build(where, environment, SANITIZED_ALONE_KIB, SANITIZED_KIB, 20_000, 100)


class Memory(threading.Thread):
    """Looks at the most memory that the ranks of a program in a lab ever had, until it is told to
    stop."""

    def __init__(self, name: str, lab: Lab, look_s: float) -> None:
        super().__init__(daemon=True)
        nodes = map(lab.namespace_path, lab.node_names())
        self.namespaces = [node.stat().st_ino for node in nodes]
        self.look_s = look_s
        self.name_of_program = name
        self.most_kib = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self.stop.wait(self.look_s):
            for process in Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    if (process / "ns" / "net").stat().st_ino in self.namespaces:
                        self._look((process / "status").read_text(errors="replace"))

    def _look(self, status: str) -> None:
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if fields.get("Name") == self.name_of_program and "VmHWM" in fields:
            self.most_kib = max(self.most_kib, int(fields["VmHWM"].split()[0]))


def run_loudly(cluster: Cluster, build: Build, way: Way) -> tuple[JobRecord, str]:
    """Runs the program to its `ok`; all that it, its launcher and Beowire said."""
    job = Job(
        [
            str(executable(f"tests/mpi/{PROGRAM}", "openmpi")),
            "--rounds",
            str(build.rounds),
        ],
        2,
        "beowire",
        mpi="openmpi",
        environment=build.environment | way.environment(),
        provider_dir=build.provider_dir,
    )
    with tempfile.TemporaryFile() as output:
        record = run(job, cluster, output=output, errors=output, announce=False, limit_s=HANG_S)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert record.exit_status == 0, text
    assert f"ok {PROGRAM}" in text.splitlines(), text
    assert record.sum("tx_payload", *BETWEEN) > build.payload_bytes
    assert all(each.keyed == bool(way.key) for each in record.endpoints)
    assert all(each.encrypted == way.encrypt for each in record.endpoints)
    return record, text


@dataclass
class Sum:
    """Of all jobs beside one hostile program."""

    said: str = ""
    runs: int = 0
    seen: int = 0
    """Hostile frames that an engine looked at and dropped for a reason of its own."""
    overrun: int = 0
    """Frames, the job's own among them, that the kernel had no room for."""
    heard: int = 0
    """Hostile frames that an engine was given, those that it took as well."""
    heard_by_udp: int = 0
    payload_by_udp: int = 0
    again: int = 0
    drops: Counter[str] = field(default_factory=Counter)

    def add(self, record: JobRecord, text: str) -> None:
        """One more job."""
        drops = Counter[str]()
        for endpoint in record.endpoints:
            drops.update(endpoint.drops)
        dropped = sum(count for why, count in drops.items() if why not in ELSEWHERE)
        self.said += text
        self.runs += 1
        self.seen += dropped - record.retransmits  # what a rank sent twice is no stranger's
        self.drops += drops
        self.heard += record.sum("rx_frames", *BETWEEN) - record.sum("tx_frames", *BETWEEN)
        self.overrun += drops["overrun"]
        self.heard_by_udp += record.sum("rx_frames", "udp")
        self.payload_by_udp += record.sum("tx_payload", "udp")
        self.again += record.retransmits


def most_memory(run_all: Callable[[], None], name: str, lab: Lab, look_s: float) -> int:
    """The most memory in KiB that a rank had meanwhile."""
    memory = Memory(name, lab, look_s)
    memory.start()
    try:
        run_all()
    finally:
        memory.stop.set()
        memory.join()
    return memory.most_kib


def member(seed: int, way: Way, *words: str) -> tuple[str, ...]:
    """The hostile program that is an engine of the job's cluster."""
    links = "udp" if way.links == "udp" else "raw"
    key = [f"key={way.key}"] if way.key else []
    encrypt = ["encrypt"] if way.encrypt else []
    return ("member", str(seed), links, *key, *encrypt, *words)


def beside(
    cluster: Cluster,
    build: Build,
    way: Way,
    program: Callable[[int], Sequence[str]],
    enough: Callable[[Sum], bool],
    *,
    job: Callable[[Cluster, Build, Way], tuple[JobRecord, str]] = run_loudly,
    name: str = PROGRAM,
) -> tuple[Sum, list[int]]:
    """Runs jobs beside a hostile program, whose words are made of a seed, until there were enough.
    What the jobs went through, and the numbers that the program said of itself. `job` runs one of
    them, whose ranks' program has the name `name`."""
    lab = lab_behind(cluster)
    if lab.mode == "loopback":
        pytest.skip(f"no segment on which anybody else could be: {lab.reason}")
    first, _, last = lab.node_names()
    seed = secrets.randbelow(2**31) + 1
    hostile_name, *arguments = program(seed)
    where = [str(lab.namespace_path(first)), str(lab.namespace_path(last)), "eth0"]
    command = [
        str(places.product(f"tests/mpi/{hostile_name}")),
        *where,
        str(build.rate),
        *arguments,
    ]

    def run_one() -> None:
        job(cluster, build, way)

    alone_kib = 0
    while not alone_kib:  # a job that was over before anybody had looked tells nothing
        alone_kib = most_memory(run_one, name, lab, LOOK_S)
    jobs, began_s, said = Sum(), time.monotonic(), ""

    def run_all() -> None:
        while not enough(jobs):
            jobs.add(*job(cluster, build, way))
            assert hostile.poll() is None
            assert jobs.runs < IN_VAIN or jobs.seen > build.least * jobs.runs

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as hostile:
        try:
            most_kib = most_memory(run_all, name, lab, LOOK_S)
        finally:
            hostile.send_signal(signal.SIGTERM)
            said, _ = hostile.communicate()
            print(
                f"{way.name}, seed {seed}: {said.strip()} in {time.monotonic() - began_s:.0f} s; "
                f"{jobs.runs} runs, {jobs.seen} dropped, {jobs.heard} heard, "
                f"{jobs.heard_by_udp} heard by UDP, {jobs.overrun} without room, "
                f"{jobs.again} sent again, {jobs.payload_by_udp} bytes by UDP, {dict(jobs.drops)}"
            )
    print(f"memory of a rank: {alone_kib} KiB alone, {most_kib} KiB")
    assert hostile.returncode == 0
    assert jobs.seen > build.least * jobs.runs
    assert 0 < alone_kib < build.alone_kib
    assert 0 < most_kib < build.resident_kib
    return jobs, [int(word) for word in said.split() if word.isdigit()]
