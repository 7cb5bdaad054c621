# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that run from copies of their text do what they do without: output, status, signals,
threads, children. Nothing of their files' text is executed any more."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import replicated
from beowire import places
from beowire.replicate import command
from beowire_cli import beowire
from replicated import SOON_S, of, run, subject, text_of_files, waiting

SCRIPT = """
import hashlib, json, os, re, signal, threading
def work(n):
    found.append(hashlib.sha256(str(n).encode() * 5000).hexdigest())
found = []
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for each in threads: each.start()
for each in threads: each.join()
signal.signal(signal.SIGUSR1, lambda *_: found.append("signal"))
os.kill(os.getpid(), signal.SIGUSR1)
child = os.fork()
if not child:
    os._exit(len(json.dumps(found)) % 100)
found.append(str(os.waitpid(child, 0)[1]))
try:
    1 / 0
except ZeroDivisionError as error:
    found.append(repr(error))
print(sorted(found), re.sub("a+", "b", "caaat"))
"""


def test_python_prints_the_same() -> None:
    words = [sys.executable, "-c", SCRIPT]
    plain = subprocess.run(words, capture_output=True, text=True, check=True)
    for pages in command.PAGES:
        copied = run(words, pages=pages)
        assert (copied.returncode, copied.stdout, copied.stderr) == (0, plain.stdout, "")


@pytest.mark.parametrize("pages", command.PAGES)
def test_no_text_of_files_is_left(pages: str) -> None:
    with waiting(command.line([subject(), "wait"], pages)) as child:
        found = of(child.pid)
    assert not text_of_files(found)
    copies = [each for each in found if each.name.startswith("/memfd:beowire-node")]
    assert {each.rights for each in copies} == {"r--p", "r-xp"}
    assert any("libc.so" in each.name for each in copies)
    assert any("subject" in each.name for each in copies)
    assert not [each for each in found if "w" in each.rights and "x" in each.rights]


def test_without_the_library_it_is_the_files_text() -> None:
    """What the test before this one looks for is there otherwise."""
    with waiting([subject(), "wait"]) as child:
        assert subject() in text_of_files(of(child.pid))
    with waiting(command.line([subject(), "wait"], BEOWIRE_REPLICATE="off")) as child:
        assert subject() in text_of_files(of(child.pid))


def test_large_pages_where_they_fit() -> None:
    """The text of this program holds at least one, at any address."""
    if "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        pytest.skip("large pages are switched off here")
    program = str(places.product("programs/beowire-activation"))
    words = [program, "threads", "--count", "1", "--warm", "600", "--interval", "100000"]
    with subprocess.Popen(command.line(words, "huge"), stdout=subprocess.DEVNULL) as child:
        try:
            kib = huge_kib(child.pid)
        finally:
            child.kill()
    assert kib >= 2048


def huge_kib(pid: int) -> int:
    """Of executable memory, once the program has begun."""
    until = time.monotonic() + SOON_S
    while time.monotonic() < until:
        executable, found = False, 0
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            words = line.split()
            if "-" in words[0] and not words[0].endswith(":"):
                executable = "x" in words[1]
            elif executable and words[0] == "AnonHugePages:":
                found += int(words[1])
        if found:
            return found
        time.sleep(0.05)
    return 0


@pytest.mark.parametrize(("word", "status"), [("0", 0), ("7", 7), ("die", 128 + signal.SIGTERM)])
def test_the_status_is_the_programs(word: str, status: int) -> None:
    done = beowire("replicate", "--", subject(), word)
    assert done.status == status
    assert done.output.startswith("4 ")


def test_a_signal_to_the_command_ends_the_program() -> None:
    words = [str(places.command()), "replicate", "--", subject(), "wait"]
    with waiting(words) as child:
        child.terminate()
        assert child.wait(SOON_S) == 128 + signal.SIGTERM


def test_a_dry_run_runs_nothing(tmp_path: Path) -> None:
    made = tmp_path / "made"
    done = beowire("replicate", "--dry-run", "--", "/usr/bin/touch", str(made))
    assert done.status == 0
    assert "would copy" in done.errors
    assert "libc.so" in done.errors
    assert not made.exists()


def test_it_explains_what_became_of_each_file() -> None:
    done = beowire("replicate", "--explain", "--", subject())
    lines = [each for each in done.errors.splitlines() if each.startswith("beowire-replicate: ")]
    told = {line.split(": ")[1]: line for line in lines}
    assert "KiB of text" in told[subject()]
    assert " 0 elsewhere" in told[subject()]
    loader = next(line for name, line in told.items() if "/ld-" in name)
    assert "left alone: the dynamic loader" in loader


def test_more_than_the_bound_is_left_alone() -> None:
    done = run([subject()], BEOWIRE_REPLICATE_MAX="1", BEOWIRE_REPLICATE_EXPLAIN="on")
    assert done.returncode == 0
    assert "libc.so.6: left alone: more than BEOWIRE_REPLICATE_MAX" in done.stderr
    assert f"{subject()}: 4 KiB of text" in done.stderr
    done = run([subject()], BEOWIRE_REPLICATE_MAX="much")
    assert done.returncode == 0
    assert "no number of MiB" in done.stderr


def test_programs_that_cannot_be_served_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copy(subject(), other)
    other.chmod(0o4755)
    done = beowire("replicate", "--", str(other))
    assert done.status == 1
    assert "rights of its owner" in done.errors
    static = tmp_path / "static"
    static.write_bytes(without_interpreter(Path(subject()).read_bytes()))
    static.chmod(0o755)
    done = beowire("replicate", "--", str(static))
    assert done.status == 1
    assert "linked statically" in done.errors
    assert beowire("replicate", "--", str(tmp_path / "none")).status == 127


def without_interpreter(program: bytes) -> bytes:
    """Its program headers name no dynamic loader any more."""
    changed = bytearray(program)
    (where,) = struct.unpack_from("<Q", program, 32)
    (count,) = struct.unpack_from("<H", program, 56)
    for at in range(where, where + 56 * count, 56):
        if struct.unpack_from("<I", program, at) == (3,):
            struct.pack_into("<I", changed, at, 0)
    return bytes(changed)


def test_what_names_its_interpreter(tmp_path: Path) -> None:
    assert "/ld-" in (command.interpreter(Path(subject())) or "")
    head = Path(subject()).read_bytes()
    for length in (0, 10, 63):
        (tmp_path / "cut").write_bytes(head[:length])
        assert command.interpreter(tmp_path / "cut") is None
    # the table of program headers lies behind the end, or has the size of others
    for at, value in ((32, b"\xff" * 8), (54, b"\x01\x00"), (56, b"\xff\xff")):
        (tmp_path / "odd").write_bytes(head[:at] + value + head[at + len(value) :])
        assert not command.interpreter(tmp_path / "odd")


def test_redis_serves_from_copies(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is missing: apt-get install redis-server")
    at = tmp_path / "redis"
    words = ["redis-server", "--port", "0", "--unixsocket", str(at), "--save", ""]
    with subprocess.Popen(command.line(words), stdout=subprocess.DEVNULL) as server:
        try:
            until = time.monotonic() + SOON_S
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(SOON_S)
                # The name is there before anybody listens.
                while client.connect_ex(str(at)) and time.monotonic() < until:
                    time.sleep(0.02)
                client.sendall(b"SET a 1\r\nINCR a\r\nEVAL 'return 6*7' 0\r\n")
                said = b""
                while len(said) < len(b"+OK\r\n:2\r\n:42\r\n") and (some := client.recv(1000)):
                    said += some
                assert said == b"+OK\r\n:2\r\n:42\r\n"
                assert not text_of_files(of(server.pid))
                client.sendall(b"SHUTDOWN NOSAVE\r\n")
            assert server.wait(SOON_S) == 0
        finally:
            server.kill()


def test_ranks_of_mpirun_share_copies() -> None:
    if shutil.which("mpirun.openmpi") is None:
        pytest.skip("Open MPI is missing: apt-get install openmpi-bin")
    mpirun = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    mpirun += ["--mca", "btl", "self,vader", str(places.example("pi"))]
    plain = subprocess.run(mpirun, capture_output=True, text=True, check=True, timeout=SOON_S)
    done = beowire("replicate", "--explain", "--", *mpirun)
    assert done.status == 0, done.errors
    assert answer(done.output) == answer(plain.stdout)
    lines = [each for each in done.errors.splitlines() if "/examples/pi: " in each]
    assert len(lines) == 2
    assert all("(shared)" in each for each in lines)


def answer(text: str) -> list[str]:
    """What does not depend on time."""
    return [line for line in text.splitlines() if "pi" in line and "second" not in line][:1]


def test_libraries_that_are_opened_later_are_left_alone() -> None:
    script = "import _ctypes; print(open('/proc/self/maps').read())"
    done = run([sys.executable, "-c", script])
    left = text_of_files(replicated.areas(done.stdout))
    assert any("_ctypes" in each for each in left)
    assert not [each for each in left if "libc.so" in each or each == os.path.realpath("python3")]
