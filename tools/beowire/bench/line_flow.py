# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A bulk transfer between two nodes of a lab: over Beowire, or over TCP with a given control.

What arrives is counted by the receiver's interface, headers and all, the same way for all.
"""

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from beowire import places
from beowire.errors import BeowireError
from beowire.lab import stream
from beowire.lab.lab import Lab
from beowire.topology.topology import End

BEOWIRE = "beowire"
CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_BUFFER_BYTES = 64 << 20  # more than any line's product of rate and round trip here
# A window is acknowledged by the receiving program, for which a round trip passes: a long one.
_MESSAGE, _WINDOW, _FOR_EVER = "1M", 128, "1000000"
_UDP = {"BEOWIRE_LINKS": "udp"}
_PATIENCE_S = 120


def controls() -> tuple[str, ...]:
    """TCP's congestion controls that this kernel has."""
    return tuple(CONTROLS.read_text().split())


def rx_bytes(lab: Lab, node: str) -> int:
    """Bytes that have come to the node's first interface."""
    return stream.rx_bytes(lab, _end(lab, node))


def _end(lab: Lab, node: str) -> End:
    return End(node, next(iter(lab.addresses[node])))


@contextlib.contextmanager
def running(lab: Lab, kind: str, source: str, target: str) -> Iterator[None]:
    """Bytes go from `source` to `target` as fast as they can until the end of the block."""
    if kind == BEOWIRE:
        flow = beowire(lab, source, target)
    else:
        ends = _end(lab, source), _end(lab, target)
        flow = stream.running(lab, *ends, control=kind, buffer_bytes=_BUFFER_BYTES)
    with flow:
        yield


def pingpong(
    lab: Lab, node: str, words: list[str], log: Path, variables: Mapping[str, str] = _UDP
) -> "subprocess.Popen[bytes]":
    """beowire-pingpong on a node, with these variables; what it says goes to `log`."""
    program = places.product("programs/beowire-pingpong")
    with log.open("wb") as output:
        return subprocess.Popen(
            ["sh", str(lab.enter_path(node)), str(program), "--wait", "block", *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, **variables},
        )


@contextlib.contextmanager
def pair(lab: Lab, target: str, port: int, variables: Mapping[str, str] = _UDP) -> Iterator[Path]:
    """A waiting beowire-pingpong on `target`, ended with the block; a directory for its logs."""
    with tempfile.TemporaryDirectory(prefix="beowire-line-") as name:
        directory = Path(name)
        server = pingpong(lab, target, ["--port", str(port)], directory / "server", variables)
        try:
            yield directory
        finally:
            server.kill()
            server.wait()


def report(
    lab: Lab,
    source: str,
    target: str,
    words: list[str],
    variables: Mapping[str, str],
    limit_s: float,
) -> dict[str, Any]:
    """What beowire-pingpong tells as JSON of a run with these arguments; it fails when that takes
    longer than the limit."""
    with pair(lab, target, 47102, variables) as directory:
        file = directory / "figures"
        words = [*words, "--json", str(file), "--port", "47102", lab.address(target)]
        client = pingpong(lab, source, words, directory / "client", variables)
        try:
            status: int | None = client.wait(limit_s)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            client.kill()
            client.wait(_PATIENCE_S)
        if status != 0:
            said = (directory / "client").read_text(errors="replace").strip()
            why = f"did not end in {limit_s:.0f} s" if status is None else f"failed: {said[-300:]}"
            raise BeowireError(f"The ping-pong {why}.")
        told: dict[str, Any] = json.loads(file.read_text())
        return told


@contextlib.contextmanager
def latency(
    lab: Lab, source: str, target: str, words: list[str], variables: Mapping[str, str] = _UDP
) -> Iterator[dict[str, Any]]:
    """A ping-pong with these arguments; the block ends when it has. Afterwards the dictionary has
    its figures, as beowire-pingpong's JSON names them."""
    figures: dict[str, Any] = {}
    with pair(lab, target, 47101, variables) as directory:
        file = directory / "figures"
        words = [*words, "--mode", "latency", "--rounds", "1", "--json", str(file)]
        words += ["--port", "47101", lab.address(target)]
        client = pingpong(lab, source, words, directory / "client", variables)
        try:
            yield figures
            status = client.wait()
        finally:
            client.kill()
            client.wait()
        if status:
            said = (directory / "client").read_text(errors="replace").strip()
            raise BeowireError(f"The ping-pong failed: {said[-300:]}")
        (result,) = json.loads(file.read_text())["results"]
        figures.update(result)


@contextlib.contextmanager
def beowire(
    lab: Lab,
    source: str,
    target: str,
    messages: int = _WINDOW,
    variables: Mapping[str, str] = _UDP,
) -> Iterator[None]:
    """Over Beowire, with so many messages on their way; what it uses is told by `variables`."""
    words = ["--transport", BEOWIRE, "--mode", "bandwidth", "--size", _MESSAGE]
    words += ["--window", str(messages), "--iterations", _FOR_EVER, "--rounds", "1"]
    words += ["--port", "47100", lab.address(target)]
    with pair(lab, target, 47100, variables) as directory:
        client = pingpong(lab, source, words, directory / "client", variables)
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(0.5)
            yield
            if client.poll() is not None:
                said = (directory / "client").read_text(errors="replace")
                raise BeowireError(f"The transfer over Beowire ended: {said.strip()[-300:]}")
        finally:
            client.kill()
            client.wait(_PATIENCE_S)
