# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""All that is compiled, compiled for arm64 by Debian's cross compiler, and its unit tests executed
by qemu-user; two processes of arm64 exchange messages, and one of them with one of this machine;
MPI programs of arm64, with Debian's Open MPI for it, run between the nodes of a lab.

The emulator knows no other page size, no weaker order of memory than this machine has, neither raw
frames nor reads of another process's memory: what needs these is not executed.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import package_roots
import pytest
from beowire import places
from beowire.lab import up
from beowire.lab.lab import MTU_DEFAULT_BYTES
from beowire.run import cluster, path
from beowire.run.cluster import Cluster
from beowire.run.job import run_captured
from beowire.run.launch import Job

pytestmark = [pytest.mark.long, pytest.mark.timeout(4 * 3600)]

NEEDED = {
    "mmdebstrap": "mmdebstrap",
    "aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu",
    "qemu-aarch64-static": "qemu-user-static",
}
SUITES = ("engine", "local", "user")
MPI_PROGRAMS = {
    "pi": ("examples/pi", "--precision", "1e-6"),
    "collectives": ("tests/mpi/collectives",),
    "matching": ("tests/mpi/matching",),
    "onesided": ("tests/mpi/onesided",),
    "storm": ("tests/mpi/storm",),
}
MPI_LIMIT_S = 600.0
NOT_EXECUTED = ("engine-sanitized", "test_keeper", "test_discard")
"""Of these suites: sanitizers for arm64 are not among what is unpacked, the emulator knows no
groups of packet sockets, and has threads of its own where threads are counted."""
BEYOND_IT = {
    "local/test_local_message cma on": {
        "envelope__fetched_ones_count_when_there_is_room",
        "envelope__is_pulled_whole",
        "envelope__with_a_hole_is_an_error",
    },
    "local/test_local_lies cma on": {"hostile__data_that_changed_hands_while_it_was_read"},
    "local/test_local_handshake cma on": {"hostile__handshakes"},
    "local/test_local_handshake cma off": {"hostile__handshakes"},
    "user/test_board": {"board__tells_of_overruns"},
    "user/test_home": {
        "endpoint__without_a_policy_takes_plain_memory",
        "endpoint__lies_where_its_policy_says",
        "endpoint__leaves_a_policy_of_the_process_alone",
        "node__that_is_not_there_is_refused_by_name",
        "pools__take_transparent_pages_where_none_are_reserved",
    },
    "user/test_udp": {"overruns__are_counted_once"},
    "user/test_udp_rows": {"row__loses_no_more_than_the_frame_at_fault"},
    "user/test_setting": {"secure__hears_nothing_from_its_caller"},
}
"""Cases that the emulator fails: it has no process_vm_readv() and no policies of memory, hands on
no counts of overruns, keeps descriptors that did not fit, sends rows with a bad address in part and
executes no program anew."""


@pytest.fixture(scope="module")
def root() -> Path:
    if lacking := [package for program, package in NEEDED.items() if not shutil.which(program)]:
        pytest.skip(f"a build for arm64 needs: apt-get install {' '.join(lacking)}")
    return package_roots.for_arm64()


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the build, in which warnings were errors."""
    directory = places.build_dir() / "arm64"
    named = tmp_path_factory.mktemp("arm64") / "root.ini"
    named.write_text(f"[constants]\nroot = '{root}'\n")
    if not (directory / "build.ninja").exists():
        cross = places.source("packaging/cross/aarch64.ini")
        words = ["meson", "setup", str(directory), str(places.root())]
        words += [f"--cross-file={cross}", f"--cross-file={named}"]
        subprocess.run(words, check=True)
    ninja = ["ninja", "-C", str(directory)]
    subprocess.run([*ninja, *_wanted(ninja)], check=True)
    return directory


def _wanted(ninja: list[str]) -> list[str]:
    """What is installed, and the tests of the suites."""
    told = subprocess.run(
        [*ninja, "-t", "targets", "all"], capture_output=True, text=True, check=True
    )
    rows = (line.rpartition(": ") for line in told.stdout.splitlines())
    made = [name for name, _, rule in rows if rule in ("c_LINKER", "STATIC_LINKER")]
    tests = tuple(f"tests/{each}/" for each in SUITES)
    return [
        name
        for name in made
        if not name.startswith(("tests/", "examples/", "hosts/sim", "hosts/kernel/bench"))
        or (name.startswith(tests) and "sanitized" not in name)
        or name in [words[0] for words in MPI_PROGRAMS.values()]
    ]


def test_all_is_of_arm64(built: Path) -> None:
    made = (
        *("hosts/user/libbeowire.so.0.1.0", "adapters/libfabric/libbeowire-fi.so"),
        *("adapters/sockets/libbeowire-sockets.so", "service/beowired", "emulator/beowire-link"),
        *("programs/beowire-info", "adapters/replicate/libbeowire-replicate.so"),
    )
    for name in made:
        with (built / name).open("rb") as file:
            head = file.read(20)
        assert head[:4] == b"\x7fELF"
        assert int.from_bytes(head[18:20], "little") == 183, name  # EM_AARCH64 of elf(5)


def listed(built: Path) -> list[str]:
    words = ["meson", "test", "-C", str(built), "--no-rebuild", "--list"]
    words += [f"--suite={each}" for each in SUITES]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    names = [line.rpartition(" / ")[2] for line in told.splitlines() if " / " in line]
    apart = {each.partition("/")[2] for each in BEYOND_IT}
    return [name for name in names if name not in NOT_EXECUTED and name not in apart]


def test_unit_tests_pass(built: Path) -> None:
    names = listed(built)
    assert len(names) > 80
    words = ["meson", "test", "-C", str(built), "--no-rebuild", "--print-errorlogs"]
    words += ["--timeout-multiplier=20", *names]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-20000:]


@pytest.mark.parametrize("name", BEYOND_IT)
def test_what_the_emulator_lacks_fails_alone(root: Path, built: Path, name: str) -> None:
    program, _, way = name.partition(" cma ")
    words = ["qemu-aarch64-static", "-L", str(root), str(built / "tests" / program)]
    variables = {**os.environ, **({"BEOWIRE_LOCAL_CMA": way} if way else {})}
    done = subprocess.run(
        words, env=variables, capture_output=True, text=True, errors="replace", check=False
    )
    said = done.stdout + done.stderr
    assert re.search(r"\[  PASSED  \] [1-9]", said), said
    assert set(re.findall(r"^\[  FAILED  \] (\w+__\w+)", said, re.MULTILINE)) <= BEYOND_IT[name]


def pair(root: Path, waiting: Path, calling: Path, links: str) -> subprocess.CompletedProcess[str]:
    """What the one that calls says: its own program, or by the emulator that of arm64."""
    variables = {**os.environ, "BEOWIRE_LINKS": links, "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    first = [*_by(root, waiting), "--once", "--port", port]
    with subprocess.Popen(first, env=variables, stdout=subprocess.DEVNULL) as waits:
        _await_listener(int(port), waits)
        words = [*_by(root, calling), "--transport=beowire", "--size=8,1400,100K"]
        words += ["--rounds=2", "--iterations=50", "--port", port, "127.0.0.1"]
        done = subprocess.run(words, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            waits.kill()
    assert done.returncode == 0, done.stdout + done.stderr
    assert waits.returncode == 0
    return done


def _by(root: Path, build: Path) -> list[str]:
    program = str(build / "programs" / "beowire-pingpong")
    native = build == places.build_dir()
    return [program] if native else ["qemu-aarch64-static", "-L", str(root), program]


def _await_listener(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Until it listens: its entry is there, and no connection is made."""
    wanted = f"0100007F:{port:04X} 00000000:0000 0A", f"00000000:{port:04X} 00000000:0000 0A"
    until = time.monotonic() + 60
    while not any(each in Path("/proc/net/tcp").read_text() for each in wanted):
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("links", ["udp", "local"])
def test_two_processes_of_arm64_exchange_messages(root: Path, built: Path, links: str) -> None:
    assert "beowire" in pair(root, built, built, links).stdout


def test_one_of_arm64_and_one_of_this_machine_do(root: Path, built: Path) -> None:
    assert "beowire" in pair(root, built, places.build_dir(), "udp").stdout
    assert "beowire" in pair(root, places.build_dir(), built, "udp").stdout


@pytest.fixture(scope="module")
def pair_of_nodes() -> Iterator[Cluster]:
    name = f"test-arm64-{os.getpid()}"
    up.up(name, 2, MTU_DEFAULT_BYTES)
    try:
        yield cluster.of_lab(name)
    finally:
        up.down(name)


@pytest.mark.parametrize("name", MPI_PROGRAMS)
def test_mpi_programs_of_arm64_between_two_nodes(
    name: str, root: Path, built: Path, pair_of_nodes: Cluster
) -> None:
    """The launcher is this machine's, of the same release; it does not share memory with them."""
    program, *arguments = MPI_PROGRAMS[name]
    job = Job(
        ["qemu-aarch64-static", "-L", str(root), str(built / program), *arguments],
        2,
        "beowire",
        mpi="openmpi",
        provider_dir=str(built / "adapters" / "libfabric"),
        environment={"BEOWIRE_LINKS": "udp", "PMIX_MCA_gds": "hash"},
    )
    record, output = run_captured(job, pair_of_nodes, MPI_LIMIT_S)
    assert name == "pi" or f"ok {name}" in output.splitlines(), output
    path.prove(record, 1)
