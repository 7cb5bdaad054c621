# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""libbeowire over the kernel module, in a guest.

The provider's tests with the kernel link alone, and messages between an endpoint with the kernel
link and one with the packet link.
"""

import json
import tempfile
from functools import cache
from pathlib import Path

import pytest
from beowire import places, selftest, vm
from beowire.errors import BeowireError

HERE = Path(__file__).resolve().parent
PROGRAMS = ["test_getinfo", "test_memory", "test_messages", "test_waiting"]
LIMIT_S = 120  # of one program


@cache
def run() -> tuple[dict[str, str], list[str]]:
    """What the guest wrote, by file, and what its kernel complained of."""
    with tempfile.TemporaryDirectory(dir=places.build_dir()) as name:
        out = Path(name)
        command = [
            str(HERE / "guest.sh"),
            name,
            str(LIMIT_S),
            str(places.provider_dir()),
        ]
        command += [
            str(places.product(f"hosts/user/beowire-{each}")) for each in ("pingpong", "info")
        ]
        command += [str(places.product(f"tests/libfabric/{each}")) for each in PROGRAMS]
        outcome = vm.run(vm.Guest(command, memory_mb=2048, limit_s=600, shares=[out], modules=True))
        files = [each for each in out.rglob("*") if each.is_file()]
        return {each.name: each.read_text(errors="replace") for each in files}, outcome.complaints


@pytest.fixture(scope="session")
def guest() -> tuple[dict[str, str], list[str]]:
    try:
        vm.find_kernel("")
    except BeowireError as error:
        pytest.skip(f"there are no guests here: {error}")
    return run()


@pytest.mark.parametrize("program", PROGRAMS)
def test_provider_over_the_kernel_link(
    program: str, guest: tuple[dict[str, str], list[str]]
) -> None:
    files, complaints = guest
    said = files.get(f"{program}.out", "") + files.get(f"{program}.err", "")
    cases = selftest.cmocka_cases(
        program,
        files.get(f"{program}.out", ""),
        files.get(f"{program}.err", "it did not run"),
    )
    assert cases, f"{said} {complaints}"
    assert [each.name for each in cases if each.verdict != "passed"] == [], said
    assert "status" not in files[f"{program}.err"]


def test_info_tells_why_it_cannot_be_used(
    guest: tuple[dict[str, str], list[str]],
) -> None:
    files, _ = guest
    assert "uses no interface" in files["before"]
    assert "of the kernel module, on eth0, up to 9000 bytes" in files["after"]


def test_kernel_and_packet_endpoints_speak_with_each_other(
    guest: tuple[dict[str, str], list[str]],
) -> None:
    files, _ = guest
    assert "20000 beowire" in files["client"], files["client"] + files["server"]
    [told] = [json.loads(text) for name, text in files.items() if name.endswith(".json")]
    # Of 20000 bytes each way an envelope travels, and the bytes are pulled.
    assert told["links"]["kernel"]["tx_payload"] > 5 * 20000
    assert told["links"]["kernel"]["rx_payload"] > 5 * 20000
    assert told["links"]["packet"]["tx_frames"] == told["links"]["udp"]["tx_frames"] == 0


def test_the_kernel_complains_of_nothing(
    guest: tuple[dict[str, str], list[str]],
) -> None:
    _, complaints = guest
    assert complaints == []
