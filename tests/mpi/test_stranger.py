# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A third node of the segment speaks to a running job to which it does not belong."""

import contextlib
import secrets
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.run.cluster import Cluster
from beowire.run.job import run
from beowire.run.launch import Job
from beowire.run.path import JobRecord
from mpi_lab import lab_behind, lab_of
from mpi_programs import HANG_S, MEBI, executable

FRAMES = 100_000
"""Hostile frames that jobs' ranks must have looked at."""
PARTS, PART_FRAMES = 10, 1_000_000
"""Of the long test: each part is a run of its own, with a seed of its own."""
LEAST = 1000
"""Frames that come to each job at the very least; else nobody speaks to it."""
ELSEWHERE = ("foreign", "overrun", "send_error")
"""Drops that no rank's engine saw: foreign frames, and what the kernel has no room for."""
RESIDENT_KIB = 128 * 1024
"""What a rank may have in memory at most, four times what it has without a stranger."""
SANITIZED_KIB = 1024 * 1024
"""The same of a rank whose every byte has a shadow, and whose freed memory is kept for a while."""
LOOK_S = 1.0
"""Between two looks at all processes, which cost more than the stranger where these are many."""
PROGRAM = "storm"


@dataclass(frozen=True)
class Build:
    """Of the provider: where it is, what its ranks need, and what they may have in memory."""

    provider_dir: str
    environment: dict[str, str]
    resident_kib: int
    rate: int
    """Hostile frames in a second, about as many as a rank can look at beside its work."""
    rounds: int
    """Of one job."""


def release() -> Build:
    """As it is installed."""
    return Build("", {}, RESIDENT_KIB, 60_000, 300)


def sanitized() -> Build:
    """With AddressSanitizer and UndefinedBehaviorSanitizer, which end a rank at their first
    complaint. Their libraries come first in a program that was built without them."""
    directory = places.build_dir() / "sanitized"
    if not (directory / "build.ninja").exists():
        command = [places.program("meson", "meson"), "setup", str(directory), str(places.root())]
        command += ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dshipped_lto=false"]
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
    return Build(str((directory / provider).parent), environment, SANITIZED_KIB, 20_000, 100)


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Three nodes, of which the last is the stranger's."""
    with lab_of(3) as made:
        yield made


class Memory(threading.Thread):
    """Looks at the most memory that the ranks of a program ever had, until it is told to stop."""

    def __init__(self, name: str) -> None:
        super().__init__(daemon=True)
        self.name_of_program = name
        self.most_kib = 0
        self.stop = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        while not self.stop.wait(LOOK_S):
            for status in Path("/proc").glob("[0-9]*/status"):
                with contextlib.suppress(OSError):
                    self._look(status.read_text(errors="replace"))

    def _look(self, status: str) -> None:
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        if fields.get("Name") == self.name_of_program and "VmHWM" in fields:
            self.most_kib = max(self.most_kib, int(fields["VmHWM"].split()[0]))


def run_loudly(cluster: Cluster, build: Build) -> tuple[JobRecord, str]:
    """Runs the program to its `ok`; all that it, its launcher and Beowire said."""
    job = Job(
        [str(executable(f"tests/mpi/{PROGRAM}", "openmpi")), "--rounds", str(build.rounds)],
        2,
        "beowire",
        mpi="openmpi",
        environment=build.environment,
        provider_dir=build.provider_dir,
    )
    with tempfile.TemporaryFile() as output:
        record = run(job, cluster, output=output, errors=output, announce=False, limit_s=HANG_S)
        output.seek(0)
        text = output.read().decode(errors="replace")
    assert record.exit_status == 0, text
    assert f"ok {PROGRAM}" in text.splitlines(), text
    assert record.sum("tx_payload", "packet", "udp") > MEBI
    return record, text


@dataclass
class Sum:
    """Of all jobs beside one stranger."""

    said: str = ""
    runs: int = 0
    seen: int = 0
    """Hostile frames that an engine looked at and dropped for a reason of its own."""
    overrun: int = 0
    """Frames, the job's own among them, that the kernel had no room for."""
    heard_by_udp: int = 0
    payload_by_udp: int = 0
    again: int = 0

    def add(self, record: JobRecord, text: str) -> None:
        """One more job."""
        drops = Counter[str]()
        for endpoint in record.endpoints:
            drops.update(endpoint.drops)
        dropped = sum(count for why, count in drops.items() if why not in ELSEWHERE)
        seen = dropped - record.retransmits  # what a rank sent twice is no stranger's
        assert seen > LEAST, f"{drops}\n{text}"
        self.said += text
        self.runs += 1
        self.seen += seen
        self.overrun += drops["overrun"]
        self.heard_by_udp += record.sum("rx_frames", "udp")
        self.payload_by_udp += record.sum("tx_payload", "udp")
        self.again += record.retransmits


def flood(cluster: Cluster, build: Build, frames: int) -> None:
    """Runs jobs until their ranks have looked at so many hostile frames: every byte is right, and
    nothing that is heard is believed."""
    lab = lab_behind(cluster)
    if lab.mode == "loopback":
        pytest.skip(f"no segment on which a stranger could be: {lab.reason}")
    first, _, last = lab.node_names()
    seed = secrets.randbelow(2**31) + 1
    where = [str(lab.namespace_path(first)), str(lab.namespace_path(last)), "eth0"]
    command = [str(places.product("tests/mpi/stranger")), *where, str(build.rate), str(seed)]
    memory = Memory(PROGRAM)
    memory.start()
    jobs, began_s = Sum(), time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as stranger:
        try:
            while jobs.seen < frames:
                jobs.add(*run_loudly(cluster, build))
        finally:
            stranger.send_signal(signal.SIGTERM)
            sent, _ = stranger.communicate()
            memory.stop.set()
            memory.join()
            print(
                f"seed {seed}: {sent.strip()} in {time.monotonic() - began_s:.0f} s; "
                f"{jobs.runs} runs, {jobs.seen} seen, {jobs.heard_by_udp} heard by UDP, "
                f"{jobs.overrun} without room, {jobs.again} sent again, {memory.most_kib} KiB, "
                f"{jobs.payload_by_udp} bytes by UDP"
            )
    assert stranger.returncode == 0
    raw, udp, challenges, answers = (int(word) for word in sent.split() if word.isdigit())
    assert min(raw, udp) > frames // 10
    assert min(challenges, answers) > frames // 1000  # it was made a peer
    assert jobs.heard_by_udp > frames // 10
    assert "\033" not in jobs.said
    assert "\007" not in jobs.said
    for word in ("stranger", "is gone", "install the same Beowire"):
        assert word not in jobs.said
    assert 0 < memory.most_kib < build.resident_kib


def test_a_stranger_does_no_harm(three: Cluster) -> None:
    """HELLOs of nobody with cookies and without, old frames once more, changed frames with right
    checksums, REFUSE and BYE in a peer's name."""
    flood(three, release(), FRAMES)


@pytest.mark.long
@pytest.mark.parametrize("part", range(1, PARTS + 1))
@pytest.mark.parametrize("build", [release, sanitized])
def test_a_stranger_for_long(build: Callable[[], Build], part: int, three: Cluster) -> None:
    """Part by part, as many as there is time for."""
    assert part
    flood(three, build(), PART_FRAMES)
