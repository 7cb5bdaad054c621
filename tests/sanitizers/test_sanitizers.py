# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The compiled tests of the user-space libraries once more, built with sanitizers.

Libraries and test programs are built with the same sanitizer, in a build directory of their own
beside the ordinary one, so that libfabric loads a provider whose run-time library is there already.
Only what these tests need is built, and without optimization across files, which takes longer than
all else. That a sanitizer's complaint fails a test is shown by planted faults.
"""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places

PROVIDER = "adapters/libfabric/libbeowire-fi.so"
SOCKETS = "adapters/sockets/libbeowire-sockets.so"
ALONE = "adapters/libfabric/alone/libfabric.so.1"


@dataclass(frozen=True)
class Build:
    """One way to build, what runs there, and what its planted faults are called in reports."""

    name: str
    sanitizers: str
    suites: tuple[str, ...]
    tests: tuple[str, ...]
    """Beginnings of the names of what runs; empty: all of the suites."""
    left_out: tuple[str, ...]
    loaded: tuple[str, ...]
    """Libraries that what runs there loads, beside those that it is linked with."""
    faults: dict[str, str]
    optimization: str = "1"


# Left out are storms between processes, long under a sanitizer: they look for lost wake-ups, not
# for bytes.
ADDRESS = Build(
    "address",
    "address,undefined",
    ("local", "libfabric", "user", "sockets"),
    (),
    ("test_local_process", "test_local_sleep"),
    (PROVIDER, ALONE, SOCKETS),
    {
        "leak": r"LeakSanitizer: detected memory leaks",
        "overrun": r"AddressSanitizer: heap-buffer-overflow[\s\S]*bw_ep_addr",
        "overflow": "runtime error: signed integer overflow",
    },
    # Each program runs for a second or so: compiling takes longer than what it saves. Threads run
    # three times as long without it.
    optimization="0",
)
# What has threads: those of a test, or an endpoint's helper.
THREAD = Build(
    "thread",
    "thread",
    ("libfabric", "user"),
    ("test_threads", "test_helper", "test_look", "test_wait", "test_waiting local", "test_memory"),
    (),
    (PROVIDER,),
    {"race": r"ThreadSanitizer: data race[\s\S]*(bw_wait|bw_progress|bw_ep_round)"},
)
THREAD_LONG = Build(
    "thread",
    "thread",
    ("local", "libfabric", "user"),
    (),
    ("test_local_process",),
    (PROVIDER, ALONE),
    {},
)

OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:quarantine_size_mb=16",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    # children of fork() open endpoints of their own
    "TSAN_OPTIONS": "halt_on_error=1:die_after_fork=0",
}


def configured(of: Build) -> Path:
    """The build directory."""
    build = places.build_dir() / "sanitized" / of.name
    if not (build / "build.ninja").exists():
        command = [places.program("meson", "meson"), "setup", str(build), str(places.root())]
        command += [f"-Db_sanitize={of.sanitizers}", "-Db_lto=false", "-Db_lundef=false"]
        # Reports name functions and lines; nobody looks at variables.
        run([*command, "-Dshipped_lto=false", f"-Doptimization={of.optimization}", "-Dc_args=-g1"])
    return build


def run(command: list[str]) -> str:
    """Run a command that must not fail; what it printed."""
    done = subprocess.run(
        command,
        env={**os.environ, **OPTIONS},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout[-20000:]
    return done.stdout


def chosen(of: Build, build: Path) -> tuple[list[str], list[str]]:
    """The tests, and what is to be built for them and for the planted faults."""
    listed = run([places.program("meson", "meson"), "introspect", "--tests", str(build)])
    tests, targets = [], {*of.loaded, "tests/sanitizers/planted"}
    for each in json.loads(listed):
        program = Path(each["cmd"][0])
        suites = {suite.partition(":")[2] for suite in each["suite"]}
        if suites.isdisjoint(of.suites) or program.name in of.left_out:
            continue
        if of.tests and not each["name"].startswith(of.tests):
            continue
        tests.append(each["name"])
        targets.add(str(program.relative_to(build)))
    return tests, sorted(targets)


def tried(build: Path, *tests: str) -> str:
    """What these tests printed; none may fail or complain.

    Addresses are not random: ThreadSanitizer's run-time library of gcc 12 finds no room for its
    shadow where the kernel takes more than 28 random bits.
    """
    command = ["setarch", "-R", places.program("meson", "meson"), "test", "-C", str(build)]
    command += ["--no-rebuild", "--print-errorlogs", "--timeout-multiplier", "10"]
    return run([*command, *tests])


def all_pass(of: Build, least: int) -> None:
    build = configured(of)
    tests, targets = chosen(of, build)
    assert len(tests) >= least
    run([places.program("ninja", "ninja-build"), "-C", str(build), *targets])
    for fault, report in of.faults.items():
        with pytest.raises(AssertionError, match=report):
            tried(build, f"planted {fault}")
    output = tried(build, *tests)
    assert f"{len(tests)}/{len(tests)} beowire:" in output
    assert "Skipped:            0" in output


def test_address_and_undefined() -> None:
    """No complaint of a sanitizer, and no test fails."""
    all_pass(ADDRESS, 30)


def test_threads() -> None:
    """No race between threads that ThreadSanitizer sees."""
    all_pass(THREAD, 9)


@pytest.mark.long
def test_all_threads() -> None:
    """Nor in any other test, as most endpoints have a helper thread."""
    all_pass(THREAD_LONG, 30)
