# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Guests: what runs in them, what they may touch, and what fails them."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.vm import accel, kernels, machine
from beowire_cli import beowire


@pytest.fixture(scope="module", autouse=True)
def kernel() -> kernels.Kernel:
    try:
        return kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")


LIMIT_S = 400.0
"""Of a guest that ends by itself: on a busy machine its boot alone can take a minute or two."""


def run(
    *words: str,
    limit_s: float = LIMIT_S,
    shares: tuple[Path, ...] = (),
    cpus: int = 1,  # the second takes two fifths of a boot's processor time
    icount: bool = False,
    bare: bool = False,
    files: tuple[Path, ...] = (),
    load: tuple[str, ...] = (),
    boot: str = "",
) -> tuple[machine.Outcome, str]:
    guest = machine.Guest(
        list(words),
        memory_mb=512,
        limit_s=limit_s,
        shares=list(shares),
        cpus=cpus,
        icount=icount,
        bare=bare,
        files=list(files),
        load=list(load),
        boot=boot,
    )
    read, write = os.pipe()
    with os.fdopen(read) as output:
        try:
            outcome = machine.run(guest, write)
        finally:
            os.close(write)
        return outcome, output.read()


@dataclass(frozen=True)
class Told:
    """What came out of a guest that many tests look at: one boot does for all of them."""

    outcome: machine.Outcome
    text: str
    place: Path

    def part(self, name: str) -> str:
        return (self.place / name).read_text()


PRIVATE = Path(__file__).with_name("written-by-a-guest")
RATE = "dmesg | grep -o 'tsc: Detected [0-9.]* MHz'"
"""Tells how fast a guest's kernel takes its clock to be."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    place = tmp_path_factory.mktemp("told")
    other = tmp_path_factory.mktemp("other")
    (other / "given").write_text("seen\n")
    attach = places.product("programs/beowire-attach")
    steps = {
        "kernel": "uname -r",
        "private": f"echo in > {PRIVATE} && cat {PRIVATE}",
        "temporary": f"cd {other} && cat given && echo > /tmp/own-of-a-guest; cd -",
        "modules": "modprobe 8021q && cat /proc/net/vlan/config; ls /sys/module/veth",
        "attach": f"{attach} eth0; echo $?",
        "clocks": "cat /sys/devices/system/clocksource/*/avail*",
        "rate": RATE,
    }
    script = [f"{{ {step}; }} >{place}/{name} 2>&1" for name, step in steps.items()]
    script += ["echo two words", "exit 7"]
    outcome, text = run("sh", "-c", "\n".join(script), shares=(place,), cpus=2, load=("veth",))
    return Told(outcome, text, place)


def test_exit_status_and_output_are_the_commands(kernel: kernels.Kernel, told: Told) -> None:
    assert told.outcome.exit_status == 7
    assert told.outcome.complaints == []
    assert told.text == "two words\n"
    assert told.part("kernel") == f"{kernel.release}\n"


def test_only_shared_directories_are_written_to(told: Told) -> None:
    assert told.part("private") == "in\n"
    assert not PRIVATE.exists()


def test_the_host_s_directory_for_temporary_files_is_seen(told: Told) -> None:
    assert told.part("temporary").startswith("seen\n")
    assert not Path("/tmp/own-of-a-guest").exists()


def test_modules_of_the_kernel_can_be_loaded(told: Told) -> None:
    assert "VLAN Dev name" in told.part("modules")
    assert "refcnt" in told.part("modules")


def test_what_a_module_asks_for_by_alias_is_loaded_before_it(kernel: kernels.Kernel) -> None:
    names = [file.name.partition(".")[0] for file in kernel.module_files(["libcrc32c"])]
    assert names[-1] == "libcrc32c"
    assert "crc32c_generic" in names


def test_modules_are_found_by_either_spelling(kernel: kernels.Kernel) -> None:
    """As modinfo tells what others need."""
    assert kernel.module_files(["chacha-x86_64"]) == kernel.module_files(["chacha_x86_64"])


def test_who_needs_the_module_is_told_of_signatures_where_they_matter(told: Told) -> None:
    said = told.part("attach")
    assert said.endswith("\n1\n")
    assert "modprobe beowire" in said
    assert "mokutil" not in said
    attach = str(places.product("programs/beowire-attach"))
    outcome, text = run("sh", "-c", f"{attach} eth0 2>&1", boot="module.sig_enforce=1")
    assert outcome.exit_status == 1
    assert "mokutil --import /var/lib/dkms/mok.pub" in text


def test_a_complaint_of_the_kernel_fails_the_run() -> None:
    outcome, _ = run("sh", "-c", "echo c > /proc/sysrq-trigger; sleep 60")
    assert outcome.exit_status == machine.BROKEN
    assert any("Kernel panic" in line for line in outcome.complaints), outcome.console


def test_a_complaint_that_the_command_survives_fails_the_command_line(
    tmp_path: Path,
) -> None:
    console = tmp_path / "console"
    script = "echo 'WARNING: CPU: 0 PID: 1 at planted.c:1' > /dev/kmsg"
    words = ("--cpus", "1", "--memory", "512", "--console", str(console))
    done = beowire("vm", *words, "--", "sh", "-c", script)
    assert done.status == 1
    assert "planted.c:1" in done.errors
    assert "planted.c:1" in console.read_text()


def test_a_guest_that_stands_still_at_boot_is_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once; and what its command does is what counts then: here there is no such command."""
    monkeypatch.setattr(machine, "_SET_UP_S", 0.5)  # no guest boots so fast
    outcome, text = run("no-such-command")
    assert capsys.readouterr().err.count("started again") == 1
    assert outcome.exit_status == 127
    assert "no-such-command" in text


def test_a_guest_that_hangs_is_ended() -> None:
    outcome, _ = run("sleep", "1000", limit_s=5)
    assert outcome.exit_status == machine.BROKEN
    assert outcome.complaints == ["the guest did not end within 5 s"]


def test_a_guest_tells_what_did_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own limit is over as soon as the job begins."""
    monkeypatch.setattr(machine.Guest, "own_limit_s", lambda _guest: 1)
    outcome, _ = run("sleep", "1000")
    assert outcome.exit_status == machine.BROKEN
    (told,) = outcome.complaints
    assert told.startswith("the job did not end within 1 s of the guest\n"), told
    assert re.search(r"^process 1: /init.*\n  1: R, system call ", told, re.MULTILINE), told


def test_what_a_guest_told_is_a_complaint() -> None:
    """All of it as one; also of a report that broke off."""
    told = "beowire guest: late: a did not end\nprocess 7: a\n  7: D, system call 1\n"
    console = f"[ 1.0] BUG: x\n{told}beowire guest: told\n[ 2.0] fine\n{told}"
    report = "a did not end\nprocess 7: a\n  7: D, system call 1"
    assert machine.complaints(console) == ["[ 1.0] BUG: x", report, report]


def test_the_guest_is_earlier_than_its_host() -> None:
    told = {limit_s: machine.Guest([], limit_s=limit_s).own_limit_s() for limit_s in (700, 120, 30)}
    assert told == {700: 630, 120: 100, 30: None}
    assert machine.Guest([], icount=True).own_limit_s() is None  # its clock is not the host's


def tsc_rate_khz() -> int:
    command = [places.product("tools/guest/tsc-rate")]
    return int(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def test_the_rate_of_the_clock_is_right_on_a_busy_machine() -> None:
    quiet = tsc_rate_khz()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        rate = tsc_rate_khz()
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert rate == pytest.approx(quiet, rel=1e-3)


@pytest.fixture
def emulated_rate(
    kernel: kernels.Kernel, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What a guest says of its clock that the hardware does not run, even where it could: that one
    would ask the hypervisor."""
    if not accel.works(kernel):
        return told.part("rate")
    monkeypatch.setattr(accel, "works", lambda _: False)
    outcome, _ = run("sh", "-c", f"{RATE} >{tmp_path}/rate", shares=(tmp_path,))
    assert outcome.complaints == []
    return (tmp_path / "rate").read_text()


def test_a_guest_is_told_the_rate_of_its_clock(emulated_rate: str) -> None:
    """It takes the very number: its own measurement would go wrong on a busy machine."""
    detected = round(float(emulated_rate.split()[2]) * 1000)
    assert detected == machine._tsc_rate_khz()


PING = r"""
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(void)
{
	int to[2], from[2];
	char byte = 0;
	long start;

	if (pipe(to) || pipe(from))
		return 1;
	if (!fork()) {
		close(to[1]);
		while (read(to[0], &byte, 1) == 1 && write(from[1], &byte, 1) == 1)
			;
		return 0;
	}
	/* What has to be read from the host for it is there after the first round. */
	for (int round = 0; round < 2; round++) {
		start = now();
		for (int i = 0; i < 500; i++)
			if (write(to[1], &byte, 1) != 1 || read(from[0], &byte, 1) != 1)
				return 1;
	}
	printf("%ld\n", now() - start);
	return 0;
}
"""


def test_counted_instructions_repeat(tmp_path: Path) -> None:
    """Nearly, beside the host's files; in bare guests to the last one: test_kernel_bench.py."""
    program = tmp_path / "ping"
    (tmp_path / "ping.c").write_text(PING)
    subprocess.run(["cc", "-O1", str(tmp_path / "ping.c"), "-o", str(program)], check=True)
    told = []
    for _ in range(2):
        outcome, text = run(str(program), cpus=1, icount=True)
        assert (outcome.exit_status, outcome.complaints) == (0, [])
        told.append(int(text))
    assert abs(told[0] - told[1]) < 0.02 * told[0], told


def test_a_bare_guest_has_what_it_was_given(tmp_path: Path) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    given.write_text("given\n")
    other.write_text("other\n")
    script = f"read line < {given} && echo $line && cd /sys/module/8021q && ! test -e {other}"
    outcome, text = run("sh", "-c", script, bare=True, files=(given,), load=("8021q",))
    assert (outcome.exit_status, outcome.complaints, text) == (0, [], "given\n")


def test_hardware_is_used_where_it_works(
    kernel: kernels.Kernel, told: Told, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ("kvm-clock" in told.part("clocks")) == accel.works(kernel)
    monkeypatch.setattr(accel, "DEVICE", tmp_path / "none")
    assert not accel.works(kernel)


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["--kernel", "0.0-none", "--", "true"], "apt-get update"),
        (["--share", "/no/such/directory", "--", "true"], "--share"),
        (["--memory", "1", "--", "true"], "256"),
        (["--load", "no-such-module", "--", "true"], "no-such-module"),
        (["--bare", "--load", "no-such-module", "--", "true"], "no-such-module"),
        (["--bare", "--file", "/no/such/file", "--", "true"], "one by one"),
        (["--icount", "--cpus", "2", "--", "true"], "--cpus 1"),
        (["--console", "/no/such/file", "--", "true"], "cannot be written"),
    ],
)
def test_bad_arguments(arguments: list[str], fix: str) -> None:
    done = beowire("vm", *arguments)
    assert done.status != 0
    assert fix in done.errors


@pytest.mark.parametrize(
    ("line", "bad"),
    [
        ("[  1.0] BUG: sleeping function called from invalid context at x.c:1", True),
        ("[  1.0] WARNING: possible circular locking dependency detected", True),
        ("[  1.0] kmemleak: 1 new suspected memory leaks", True),
        ("unreferenced object 0xffff (size 32):", True),
        ("[  1.0] BUG kmalloc-64 (Tainted: G O): Poison overwritten", True),
        ("[  1.0] UBSAN: shift-out-of-bounds in x.c:1:2", True),
        ("[  1.0] unregister_netdevice: waiting for veth0 to become free.", True),
        ("[  1.0] mtrr: your CPUs had inconsistent MTRRdefType settings", False),
        ("[  1.0] systemd warning: nothing", False),
    ],
)
def test_what_counts_as_a_complaint(line: str, bad: bool) -> None:
    assert bool(machine.complaints(f"before\n{line}\nafter\n")) == bad
