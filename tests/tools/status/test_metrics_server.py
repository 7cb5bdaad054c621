# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What `status --serve` answers, to whom, and what bad callers cost."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.status import metrics_server
from beowire_cli import COMMAND

PATIENCE_S = 60.0
GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def called(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(PATIENCE_S)
        caller.connect(str(path))
        yield caller


def all_of(caller: socket.socket) -> bytes:
    """Until the other end closes."""
    said = b""
    try:
        while part := caller.recv(65536):
            said += part
    except ConnectionResetError:
        pass
    return said


def asked(path: Path, request: bytes = GET) -> bytes:
    with called(path) as caller:
        caller.sendall(request)
        return all_of(caller)


class Served:
    """A server in a thread; each look is counted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.looks = 0

    def look(self) -> str:
        self.looks += 1
        return f"beowire_up{{}} {self.looks}\n"


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(metrics_server, "REQUEST_S", PATIENCE_S)  # whoever asks here may be slow
    one = Served(tmp_path / "sock")
    loop = asyncio.new_event_loop()
    monkeypatch.setattr(loop, "add_signal_handler", lambda *_: None)  # not of the main thread

    async def until_cancelled() -> None:
        with metrics_server.listening(str(one.path)) as listener:
            ready.set()
            await metrics_server.Server(one.look).serve(listener)

    ready = threading.Event()
    task = loop.create_task(until_cancelled())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(PATIENCE_S)
    yield one
    loop.call_soon_threadsafe(task.cancel)
    thread.join(PATIENCE_S)
    loop.close()
    assert not one.path.exists()


def test_the_text_is_told(served: Served) -> None:
    head, _, body = asked(served.path).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"version=0.0.4" in head
    assert f"Content-Length: {len(body)}".encode() in head
    assert body == b"beowire_up{} 1\n"


def test_who_asks_soon_after_gets_the_same_look(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics_server, "AGE_S", 1e9)
    assert len({asked(served.path).partition(b"\r\n\r\n")[2] for _ in range(20)}) == 1
    assert served.looks == 1
    monkeypatch.setattr(metrics_server, "AGE_S", -1.0)
    asked(served.path)
    assert served.looks == 2


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"GET /metrics SSH-2.0\r\n\r\n", b"400"),
        (b"\x00\xff\r\n\r\n", b"400"),
    ],
)
def test_nothing_else_is_told(served: Served, request_: bytes, status: bytes) -> None:
    assert asked(served.path, request_).split()[1] == status
    assert served.looks == 0


def test_a_request_without_end_is_not_kept(served: Served) -> None:
    with called(served.path) as caller:
        caller.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        try:
            for _ in range(64):
                caller.sendall(b"x" * 1024)
        except OSError:
            pass  # it has been closed
        assert all_of(caller) == b""
    assert asked(served.path).startswith(b"HTTP/1.1 200")


def test_a_slow_caller_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """And keeps nobody waiting before."""
    with called(served.path) as caller:
        caller.sendall(b"GET /met")
        assert asked(served.path).startswith(b"HTTP/1.1 200")
    monkeypatch.setattr(metrics_server, "REQUEST_S", 0.5)
    with called(served.path) as caller:
        caller.sendall(b"GET /met")
        assert all_of(caller) == b""


def test_many_callers_are_counted(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those beyond are closed at once; when the others have been given up there is room again."""
    monkeypatch.setattr(metrics_server, "REQUEST_S", 1e9)
    callers = []
    for _ in range(metrics_server.CONNECTIONS):
        caller = socket.socket(socket.AF_UNIX)
        caller.settimeout(PATIENCE_S)
        caller.connect(str(served.path))
        callers.append(caller)
    with called(served.path) as one_more:
        assert all_of(one_more) == b""
    for caller in callers:
        caller.close()
    until = time.monotonic() + PATIENCE_S
    while not asked_or_closed(served.path).startswith(b"HTTP/1.1 200"):
        assert time.monotonic() < until


def asked_or_closed(path: Path) -> bytes:
    try:
        return asked(path)
    except OSError:
        return b""


@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:1", "192.0.2.1:80", "[::]:1", ":80", "localhost:80", "80", "127.0.0.1:x", "x/y",
     "127.0.0.1:65536", "127.0.0.1"],
)  # fmt: skip
def test_no_address_that_others_reach_is_taken(address: str) -> None:
    with (
        pytest.raises(BeowireError, match="no address of this node alone"),
        metrics_server.listening(address),
    ):
        pass


def test_a_socket_is_the_users_and_the_groups(tmp_path: Path) -> None:
    path = tmp_path / "sock"
    with metrics_server.listening(str(path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with pytest.raises(BeowireError, match="in use"), metrics_server.listening(str(path)):
            pass
    assert not path.exists()


def test_only_a_socket_that_nobody_answers_at_gives_way(tmp_path: Path) -> None:
    left, file = tmp_path / "left", tmp_path / "file"
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(left))
    with metrics_server.listening(str(left)):
        pass
    file.write_text("kept")
    with pytest.raises(BeowireError), metrics_server.listening(str(file)):
        pass
    assert file.read_text() == "kept"


def test_the_command_serves_until_a_signal(tmp_path: Path) -> None:
    variables = os.environ | {"BEOWIRE_STATUS": str(tmp_path)}
    words = [*COMMAND, "status", "--serve", "127.0.0.1:0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        port = int(said.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as caller:
            caller.sendall(GET)
            told = all_of(caller)
        assert b"# TYPE beowire_up gauge" in told
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
