#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Measure the link emulator at both ends: the figures of the lab book.

    .venv/bin/python tests/emulator/measure.py rate --realtime
    .venv/bin/python tests/emulator/measure.py tcp --realtime

rate: raw frames as fast as they can be sent; the rate is that of the receiving kernel's stamps.
tcp: one stream through 1 Gbit/s and 5 ms each way, with several receive windows, against the window
over the round trip and the line's rate; then 100 Mbit/s.
"""

from __future__ import annotations

import argparse
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from functools import partial

import link_net
from beowire import namespaces

PORT = 5001
TCP_INFO_RTT = 68  # offsets in struct tcp_info of linux/tcp.h
TCP_INFO_WINDOW = 228


def priority(realtime: bool) -> None:
    """This thread before all others, or as usual."""
    policy = os.SCHED_FIFO if realtime else os.SCHED_OTHER
    os.sched_setscheduler(0, policy, os.sched_param(int(realtime)))


def lateness(running: link_net.Link) -> str:
    """What the emulator says of itself."""
    told = running.report["ab"]
    late = told["lateness_us"]
    return (
        f"late by {late['median']:.1f} us (median), {late['p99']:.1f} us (99 %); "
        f"missed {told['missed']}; {'valid' if running.report['valid'] else 'INVALID'}; "
        f"load {os.getloadavg()[0]:.0f}"
    )


def rate(bits: int, count: int, size: int, realtime: bool) -> None:
    """Frames of one size back to back; the sender has priority where the emulator has it."""
    options = ("--realtime",) if realtime else ()
    settings = (f"rate={bits}", "queue=1G", "delay=1ms")
    frame = link_net.frame(bytes(size - 14))
    with (
        link_net.network(max(size - 14, 1500)) as net,
        net.raw("b") as receiver,
        net.raw("a") as sender,
        link_net.link(net, *settings, options=options) as running,
    ):
        priority(realtime)
        for _ in range(count):
            sender.send(frame)
        priority(False)
        arrivals = link_net.received(receiver, 1)
    spent = (arrivals[-1].at - arrivals[0].at) / 1e9
    meant = (len(arrivals) - 1) * link_net.wire_bits(size) / bits
    print(
        f"{bits / 1e6:.0f} Mbit/s, frames of {size}: {len(arrivals)} arrived, "
        f"rate {100 * (meant / spent - 1):+.3f} %; {lateness(running)}"
    )


def listener(window: int) -> socket.socket:
    """On node b, with this receive buffer (0: the kernel chooses)."""
    made = socket.socket()
    if window:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    made.bind((link_net.ADDRESS["b"], PORT))
    made.listen()
    return made


def tcp(window: int, seconds: float, realtime: bool, *settings: str) -> None:
    """One stream; the first 40 % of the time are not counted."""
    options = ("--realtime",) if realtime else ()
    address = (link_net.ADDRESS["b"], PORT)
    ending = threading.Event()
    with link_net.network(1500) as net, link_net.link(net, *settings, options=options) as running:
        waiting = namespaces.within(net.path("b"), partial(listener, window))
        one = namespaces.within(net.path("a"), partial(socket.create_connection, address))
        other, _ = waiting.accept()

        def pump() -> None:
            block = bytes(1 << 18)
            with suppress(OSError):
                while not ending.is_set():
                    one.send(block)

        thread = threading.Thread(target=pump)
        thread.start()
        buffer = bytearray(1 << 20)
        began, total = time.monotonic() + 0.4 * seconds, 0
        while time.monotonic() < began:
            other.recv_into(buffer)
        began = time.monotonic()
        while time.monotonic() < began + 0.6 * seconds:
            total += other.recv_into(buffer)
        spent = time.monotonic() - began
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 240)
        ending.set()
        other.close()
        thread.join()
        one.close()
        waiting.close()
    trip = struct.unpack_from("I", info, TCP_INFO_RTT)[0]
    offered = struct.unpack_from("I", info, TCP_INFO_WINDOW)[0]
    print(
        f"{' '.join(settings)}: {total * 8 / spent / 1e6:.1f} Mbit/s of payload; window {offered} "
        f"B over {trip} us: {offered * 8 / trip:.1f}; {lateness(running)}"
    )


def main() -> None:
    """Measure as asked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("what", choices=("rate", "tcp"))
    parser.add_argument("--realtime", action="store_true", help="against other load")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    args = parser.parse_args()
    for _ in range(args.rounds):
        if args.what == "rate":
            rate(100_000_000, 3000, 1514, args.realtime)
            rate(100_000_000, 15000, 60, args.realtime)
            rate(1_000_000_000, 15000, 1514, args.realtime)
            rate(10_000_000_000, 8000, 9014, args.realtime)
        else:
            for window in (65536, 262144, 0):
                tcp(window, 3, args.realtime, "rate=1G", "delay=5ms")
            tcp(0, 3, args.realtime, "rate=100M", "delay=5ms")


if __name__ == "__main__":
    main()
