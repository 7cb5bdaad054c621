# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Conversations by UDP on the loopback device: second.py, and echo.c, a program on libbeowire."""

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from beowire import places
from second import WAIT_S, C, Received, Second
from wire_frames import Frame
from wire_layout import ROOT

ECHO, LONG, ENVELOPE = 1, 2, 0x80
ACK_NOW = C["BW_HDR_ACK_NOW"]


@pytest.fixture(scope="session")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled program."""
    binary = tmp_path_factory.mktemp("echo") / "echo"
    library = places.library_dir()
    subprocess.run(
        [
            *("cc", "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"),
            *("-I", ROOT / "hosts" / "user", "-o", binary),
            ROOT / "tests" / "wireshark" / "echo.c",
            *(f"-L{library}", f"-Wl,-rpath,{library}", "-lbeowire"),
        ],
        check=True,
    )
    return binary


@dataclass
class Pair:
    """Both sides of a conversation."""

    second: Second
    process: "subprocess.Popen[str]"
    output: IO[str]

    def said(self) -> str:
        """The program's next line; until it comes, packets are acknowledged."""
        until = time.monotonic() + WAIT_S
        while not select.select([self.output], [], [], 0)[0]:
            assert time.monotonic() < until, "the program says nothing"
            self.second.listen(0.02)
        return self.output.readline().strip()

    def send(self, *parts: Frame) -> None:
        for part in parts:
            self.second.send(part)

    def message(self, frame: Frame, data: bytes, **values: int) -> Frame:
        """Adds the part of a whole message, or with `offset` and `total` of a segment."""
        code = values.pop("code", ECHO)
        total = values.pop("total", len(data))
        checksum = not self.second.encrypts
        return frame.part("MESSAGE", data, code=code, checksum=checksum, total=total, **values)


@contextlib.contextmanager
def strangers_with(
    echo: Path, key: bytes = b"", encrypts: bool = False, **more: str
) -> Iterator[Pair]:
    """A program and a second implementation that have not met."""
    environment = {key: value for key, value in os.environ.items() if "BEOWIRE_" not in key}
    environment |= {"BEOWIRE_LINKS": "udp", "BEOWIRE_UDP_ADDRESS": "127.0.0.1"}
    environment |= {"BEOWIRE_CLUSTER": str(os.getpid()), "BEOWIRE_DEAD_TIMEOUT": "60"} | more
    with subprocess.Popen(
        [echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        second = Second(bytes.fromhex(process.stdout.readline()), key, encrypts)
        yield Pair(second, process, process.stdout)
        second.close()
        process.stdin.close()
        assert process.wait(timeout=WAIT_S) == 0


def pull(frame: Frame, **values: int) -> Frame:
    control = C["BW_EP_CONTROL"]
    return frame.part("PULL", b"", checksum=False, dst_ep=control, src_ep=control, **values)


def gathered(second: Second, kind: str, total: int) -> tuple[bytes, int]:
    """Data that comes in several parts, maybe repeated: all of it, and the longest part."""
    data = bytearray(total)
    missing = set(range(total))
    longest = 0
    for frame in second.frames(WAIT_S):
        for part in frame.parts:
            if part.kind == kind:
                start = part.values["offset"]
                data[start : start + len(part.payload)] = part.payload
                missing -= set(range(start, start + len(part.payload)))
                longest = max(longest, len(part.payload))
        if not missing:
            return bytes(data), longest
    raise AssertionError(f"{len(missing)} bytes of {total} did not come")


def offered(pair: Pair, size: int, **values: int) -> int:
    """Makes the program offer a long message; its key."""
    pair.send(pair.message(pair.second.data(), b"", code=LONG, imm=size, tag=3, **values))
    code = LONG | ENVELOPE  # what came before may come again
    frame = pair.second.wait(lambda each: any(part.values["code"] == code for part in each.parts))
    (part,) = [part for part in frame.parts if part.values["code"] == code]
    assert part.values["tag"] == 3
    assert int.from_bytes(part.payload[8:], "little") == size
    return int.from_bytes(part.payload[:8], "little")


def refused(second: Second, frame: Frame) -> Received:
    second.send(frame)
    return second.wait(lambda each: each.kind == "REFUSE")


def check_refusal(answer: Received, second: Second, why: str, kind: str) -> None:
    body = answer.body
    assert body["why"] == C[f"BW_REFUSAL_{why}"]
    assert body["echo_type"] == C[f"BW_FRAME_{kind}"]
    assert body["echo_engine"] == second.engine_there
    assert (answer.hdr["dst_engine"], answer.hdr["token"]) == (second.engine, 0)
    assert {body["version_min"], body["version_max"]} == {C["BW_VERSION"]}
    assert body["inc"] == second.inc_there
