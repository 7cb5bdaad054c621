# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Frames caught at a lab's switch port and decoded by tshark with the project's dissector.

They are caught on the switch's side: a sender that bypasses its queueing discipline is not seen
by taps on its own side.
"""

import contextlib
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from beowire import namespaces, places, signals
from beowire.errors import BeowireError
from beowire.lab import place
from beowire.lab.lab import Lab

_ETH_P_ALL = 3
_ETHERTYPES_USUAL = (0x0800, 0x86DD, 0x0806)
_ETHERNET_HEADER_BYTES = 14
_FRAMES_MAX = 20_000
_FRAME_MAX_BYTES = 65_550
_TYPE_OFFSET = _ETHERNET_HEADER_BYTES + 3


@dataclass(frozen=True)
class Frame:
    time_ns: int
    data: bytes

    @property
    def ethertype(self) -> int:
        return int.from_bytes(self.data[12:14], "big")

    @property
    def type(self) -> int:
        """Beowire's frame type; 0 when the frame is too short to have one."""
        return self.data[_TYPE_OFFSET] if len(self.data) > _TYPE_OFFSET else 0


def _open_port(port: str) -> socket.socket:
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    tap.bind((port, 0))
    tap.settimeout(0.1)
    return tap


@contextlib.contextmanager
def raw_frames(lab: Lab, node: str) -> Iterator[list[Frame]]:
    """Collects, while the context lasts, the frames at the node's port that are neither IP nor
    ARP. The list is complete once the context has ended."""
    frames: list[Frame] = []
    ending = threading.Event()
    link = lab.topology.links_of(node)[0]
    switch = lab.namespace_path(place.place(lab.topology, link).namespace)
    tap = namespaces.within(switch, partial(_open_port, link.name))

    def collect() -> None:
        while not ending.is_set() and len(frames) < _FRAMES_MAX:
            with contextlib.suppress(TimeoutError):
                frame = Frame(time.time_ns(), tap.recv(_FRAME_MAX_BYTES))
                if frame.ethertype not in _ETHERTYPES_USUAL:
                    frames.append(frame)

    thread = threading.Thread(target=collect)
    with signals.uninterrupted():
        thread.start()
    try:
        yield frames
    finally:
        ending.set()
        thread.join()
        tap.close()


def one_of_each(frames: list[Frame], count: int) -> list[Frame]:
    """The first frame of each type, in the order of their arrival, filled up with the next ones."""
    chosen: dict[int, Frame] = {}
    for frame in frames:
        chosen.setdefault(frame.type, frame)
    firsts = list(chosen.values())[:count]
    others = [frame for frame in frames if frame not in firsts]
    return sorted(firsts + others[: count - len(firsts)], key=lambda frame: frame.time_ns)


def write_pcap(frames: list[Frame], path: Path) -> None:
    """Writes a capture file with nanosecond times, Ethernet frames."""
    with open(path, "wb") as stream:
        stream.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _FRAME_MAX_BYTES, 1))
        for frame in frames:
            seconds, rest_ns = divmod(frame.time_ns, 10**9)
            size = len(frame.data)
            stream.write(struct.pack("<IIII", seconds, rest_ns, size, size) + frame.data)


def decode(path: Path) -> str:
    """A capture file as tshark tells it to a person, Beowire's part in full."""
    dissector = places.source("tools/wireshark/beowire.lua")
    arguments = [places.program("tshark", "tshark"), "-X", f"lua_script:{dissector}"]
    done = subprocess.run(
        [*arguments, "-r", str(path), "-O", "beowire"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise BeowireError(f"tshark could not decode the frames: {done.stderr.strip()}")
    return done.stdout.strip()
