# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The wire between guests: what it does to frames, and guests that talk over it."""

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import machine, several
from beowire.vm.wire import Faults, Wire, guest_end, wire_end
from beowire_cli import beowire

FRAMES = [bytes([number]) * 12 + b"\x88\xb5" + bytes(200) for number in range(200)]
QUIET_S = 1.0
PATIENCE_S = 240.0


@contextlib.contextmanager
def ends(directory: Path, faults: Faults, guests: int = 2) -> Iterator[tuple[Wire, list]]:
    """A wire, and a socket in the place of each guest."""
    sockets = []
    for number in range(1, guests + 1):
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        end.bind(str(guest_end(directory, number)))
        sockets.append(end)
    try:
        with Wire(directory, guests, faults) as wire:
            for number, end in enumerate(sockets, 1):
                end.connect(str(wire_end(directory, number)))
            yield wire, sockets
    finally:
        for end in sockets:
            end.close()


def received(end: socket.socket) -> list[bytes]:
    """All frames that come until none comes any more."""
    end.settimeout(QUIET_S)
    frames = []
    while True:
        try:
            frames.append(end.recv(65536))
        except TimeoutError:
            return frames


def await_counts(wire: Wire, passed: int) -> None:
    """Waits until so many frames have passed, however late the wire's thread comes to that."""
    patience = time.monotonic() + PATIENCE_S
    while wire.counts.passed < passed:
        assert time.monotonic() < patience, wire.counts
        time.sleep(0.002)


def passed(directory: Path, faults: Faults, frames: list[bytes]) -> tuple[Wire, list[bytes]]:
    """What the second of two guests receives of these frames of the first."""
    directory.mkdir()
    with ends(directory, faults) as (wire, (sender, receiver)):
        found: list[bytes] = []
        receiver.settimeout(0.01)
        for at in range(0, len(frames), 5):  # a socket's queue holds ten
            some = frames[at : at + 5]
            for frame in some:
                sender.send(frame)
            patience = time.monotonic() + PATIENCE_S
            while len(found) + wire.counts.lost < at + len(some) + wire.counts.duplicated:
                assert time.monotonic() < patience, wire.counts
                with contextlib.suppress(TimeoutError):
                    found.append(receiver.recv(65536))
        return wire, found + received(receiver)


def test_frames_pass_whole_and_in_order(tmp_path: Path) -> None:
    wire, found = passed(tmp_path / "wire", Faults(), FRAMES)
    assert found == FRAMES
    assert str(wire.counts) == "200 passed, 0 lost, 0 corrupted, 0 duplicated, 0 overflowed"


def test_frames_reach_all_others_and_not_their_sender(tmp_path: Path) -> None:
    with ends(tmp_path, Faults(), 3) as (wire, (first, second, third)):
        second.send(FRAMES[7])
        await_counts(wire, 2)
        assert (received(first), received(third)) == ([FRAMES[7]], [FRAMES[7]])
        assert received(second) == []


def test_faults_repeat_with_their_seed_only(tmp_path: Path) -> None:
    some = FRAMES[:60]
    faults = Faults(loss=0.3, corruption=0.3, duplication=0.3, seed=5)
    wire, found = passed(tmp_path / "one", faults, some)
    _, again = passed(tmp_path / "two", faults, some)
    _, other = passed(tmp_path / "three", Faults(0.3, 0.3, 0.3, seed=6), some)
    assert found == again
    assert found != other
    assert wire.counts.lost > 5
    assert len(found) == len(some) - wire.counts.lost + wire.counts.duplicated


def test_a_corrupted_frame_differs_in_one_bit_behind_its_header(tmp_path: Path) -> None:
    some = FRAMES[:40]
    _, found = passed(tmp_path / "wire", Faults(corruption=1), some)
    for frame, sent in zip(found, some, strict=True):
        assert frame[:14] == sent[:14]
        differing = int.from_bytes(frame, "big") ^ int.from_bytes(sent, "big")
        assert differing.bit_count() == 1


def test_jitter_changes_the_order(tmp_path: Path) -> None:
    some = FRAMES[:40]
    _, found = passed(tmp_path / "wire", Faults(jitter_ns=100_000_000), some)
    assert found != some
    assert sorted(found) == sorted(some)


def test_a_delayed_frame_does_not_come_early(tmp_path: Path) -> None:
    with ends(tmp_path, Faults(delay_ns=600_000_000)) as (_, (first, second)):
        begun = time.monotonic()
        first.send(FRAMES[1])
        second.settimeout(PATIENCE_S)
        assert second.recv(65536) == FRAMES[1]
        assert time.monotonic() - begun >= 0.6


# From here on with guests.


def run(network: several.Network, script: str) -> tuple[several.Outcomes, list[str]]:
    try:
        machine.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")
    read, write = os.pipe()
    with os.fdopen(read) as output:
        try:
            guest = machine.Guest(["sh", "-c", script], cpus=1, memory_mb=512, limit_s=400)
            outcomes = several.run(guest, network, write)
        finally:
            os.close(write)
        return outcomes, output.read().splitlines()


# Compiled: Python takes longer to start in a guest than all else here. The kernel asks three times
# only for a neighbour's address; a wire with faults can lose all three.
TALK = r"""
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BYTES 300000

static char piece[65536];

static int receive(const struct sockaddr_in *from)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), stream;
	long count = 0;
	ssize_t got;

	if (bind(listener, (const void *)from, sizeof(*from)) || listen(listener, 1))
		return 1;
	fclose(fopen("/run/ready", "w"));
	alarm(120);
	stream = accept(listener, NULL, NULL);
	while ((got = read(stream, piece, sizeof(piece))) > 0) {
		for (ssize_t at = 0; at < got; at++)
			if (piece[at] != 'x')
				return 2;
		count += got;
	}
	printf("%ld\n", count);
	return got < 0;
}

static int send_all(const struct sockaddr_in *to)
{
	time_t begun = time(NULL);
	int stream = -1, sent;

	do {
		close(stream);
		stream = socket(AF_INET, SOCK_STREAM, 0);
		sent = connect(stream, (const void *)to, sizeof(*to));
	} while (sent && errno == EHOSTUNREACH && time(NULL) - begun < 60);
	if (sent)
		return 1;
	memset(piece, 'x', sizeof(piece));
	for (long left = BYTES; left; left -= sent) {
		sent = write(stream, piece, left < (long)sizeof(piece) ? left : (long)sizeof(piece));
		if (sent <= 0)
			return 2;
	}
	return close(stream);
}

int main(int count, char **words)
{
	struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(9000)};

	(void)words;
	inet_pton(AF_INET, "10.0.0.1", &there.sin_addr);
	return count > 1 ? send_all(&there) : receive(&there);
}
"""


@pytest.mark.parametrize(
    "network",
    [
        several.Network(2, "virtio-net-pci", 1500),
        several.Network(2, "e1000e", 9000, Faults(loss=0.05, corruption=0.05)),
    ],
    ids=["virtio", "e1000e with faults"],
)
def test_guests_talk(network: several.Network, tmp_path: Path) -> None:
    (tmp_path / "talk.c").write_text(TALK)
    talk = tmp_path / "talk"
    subprocess.run(["cc", "-O1", str(tmp_path / "talk.c"), "-o", str(talk)], check=True)
    script = f"""
    if [ $BEOWIRE_GUEST = 1 ]; then
        {talk} & until [ -e /run/ready ]; do sleep 0.1; done
        meet ready && wait $!
    else
        meet ready
        cat /sys/class/net/eth0/mtu
        {talk} send
    fi && meet done
    """
    outcomes, output = run(network, script)
    ends = [(each.exit_status, each.complaints) for each in outcomes.guests]
    assert (ends, sorted(output)) == (
        [(0, []), (0, [])],
        ["1: 300000", f"2: {network.mtu_bytes}"],
    )
    assert outcomes.wire.passed > 300000 / 9000
    assert bool(outcomes.wire.lost + outcomes.wire.corrupted) == bool(network.faults.loss)


def test_no_guest_waits_for_one_that_has_ended_and_the_worst_exit_status_counts(
    tmp_path: Path,
) -> None:
    console = tmp_path / "console"
    words = ("--guests", "2", "--cpus", "1", "--memory", "512", "--console", str(console))
    script = "hostname; test $BEOWIRE_GUEST = 2 && exit 4; meet here 2>&1; echo $?; exit 5"
    done = beowire("vm", *words, "--", "sh", "-c", script)
    assert done.status == 5, done.errors  # not that of the last guest, which ends first
    lines = sorted(done.output.splitlines())
    assert lines == ["1: 1", "1: guest1", "1: meet here: guest 2 has ended", "2: guest2"]
    assert "frames on the wire" in done.errors
    assert (tmp_path / "console.1").exists()
    assert (tmp_path / "console.2").exists()


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["--guests", "2", "--icount", "--", "true"], "Leave out"),
        (["--guests", "2", "--bare", "--", "true"], "Leave out"),
        (["--guests", "2", "--wire-loss", "2", "--", "true"], "in the range 0<=x<=1"),
        (["--guests", "2", "--nic", "tin-can", "--", "true"], "e1000e"),
    ],
)
def test_bad_arguments(arguments: list[str], fix: str) -> None:
    done = beowire("vm", *arguments)
    assert done.status != 0
    assert fix in done.errors
