# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Instructions counted in guests: they repeat exactly, and each belongs to a function."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from beowire.bench import kernel, kernel_cli, kernel_profile
from beowire.bench.kernel_figures import Figure, Row
from beowire.bench.kernel_profile import Symbol, Symbols
from beowire.errors import BeowireError
from beowire.vm import counted, kernels, machine
from beowire_cli import beowire


@pytest.fixture(scope="module", autouse=True)
def stock_kernel() -> kernels.Kernel:
    try:
        return kernels.find()
    except BeowireError as error:
        pytest.skip(f"no kernel for guests: {error}")


def run(*words: str) -> str:
    program = places.product(kernel.PROGRAM)
    guest = machine.Guest([str(program), *words], cpus=1, memory_mb=512, load=["veth"], icount=True)
    return counted.run(guest)


def test_guests_agree_and_every_transport_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    words = ("--figure", "one-thread-1", "--rounds", "1", "--repeats", "2")
    done = beowire("bench", "kernel", *words, "--json", str(file))
    assert done.status == 0, done.errors
    assert "agree to the last bit" in done.output
    told = json.loads(file.read_text())
    assert told["identical"]
    (figure,) = told["figures"]
    tcp, _, raw, *module = figure["rows"]
    assert (tcp["row"]["transport"], raw["row"]["transport"]) == ("tcp", "raw")
    assert 5_000 < raw["value"] < tcp["value"] < 100_000
    assert raw["ratio"]["value"] == pytest.approx(raw["value"] / tcp["value"], rel=0.01)
    assert {each["row"]["transport"] for each in module} == {"rdm", "seqpacket", "datagram"}
    assert all(5_000 < each["value"] < 100_000 for each in module)
    assert all(each["copied_tx"] == 1 for each in module if each["copied_tx"] is not None)


def test_a_profile_finds_the_functions_that_every_round_trip_calls(tmp_path: Path) -> None:
    file = tmp_path / "profile.json"
    words = ("--figure", "one-thread-1", "--transport", "raw", "--profile", "20")
    done = beowire("bench", "kernel", *words, "--json", str(file))
    assert done.status == 0, done.errors
    told = json.loads(file.read_text())
    raw = {each["function"]: each for case in told if "raw" in case for each in told[case]}
    assert raw["packet_sendmsg"]["calls"] == 2
    assert raw["packet_recvmsg"]["calls"] == 2
    assert raw["veth_xmit"]["place"] == "veth"
    assert raw["veth_xmit"]["calls"] == 2
    assert raw["send_raw"]["place"] == "program"
    assert raw["send_raw"]["whole"] > raw["packet_sendmsg"]["whole"] > raw["veth_xmit"]["whole"]
    assert 9_000 < sum(each["own"] for each in raw.values()) < 20_000


def test_rows_of_messages_and_bulk_are_moved(stock_kernel: kernels.Kernel) -> None:
    few = "trips=5,warmup=2"
    output = run(
        f"transport=tcp,wait=one,count=64,bytes=64,together=on,{few}",
        f"transport=udp,wait=block,count=64,bytes=64,together=on,{few}",
        f"transport=raw-all,wait=one,bulk=65536,{few}",
        f"transport=raw,wait=block,bytes=5000,{few}",
        f"transport=raw,wait=one,bytes=5000,{few}",
        f"transport=tcp,mtu=1500,offloads=off,bytes=5000,wait=poll,{few}",
    )
    told = [json.loads(line) for line in output.splitlines()]
    assert told[0]["kernel"] == stock_kernel.release
    assert [each["case"] for each in told[1:]] == [0, 1, 2, 3, 4, 5]
    assert all(sum(times for _, times in each["whole"]) == 5 for each in told[1:])
    # Each exchange had sent all before it was whole, so the shortest, the next one and so on.
    sent, whole = (
        sorted(value for value, times in told[1][part] for _ in range(times))
        for part in ("sent", "whole")
    )
    assert all(one < other for one, other in zip(sent, whole, strict=True))


def test_a_key_and_encryption_cost_what_they_are_set_to() -> None:
    """Each case has its own, whatever the one before had."""
    row = "transport=rdm,wait=one,bytes=4096,trips=11,warmup=5"
    ways = ["key=off", "key=on", "key=on,encrypt=on", "key=off"]
    program = places.product(kernel.PROGRAM)
    guest = machine.Guest(
        [str(program), *(f"{row},{each}" for each in ways)],
        cpus=1,
        memory_mb=512,
        load=["veth"],
        modules=True,
        icount=True,
    )
    told = [json.loads(line) for line in counted.run(guest).splitlines()][1:]
    plain, keyed, encrypted, again = (each["whole"][0][0] for each in told)
    assert plain < keyed < 1.25 * plain
    assert encrypted > keyed + 2 * 2 * 2 * 4096  # both ends of both ways, two each byte at least
    assert again == pytest.approx(plain, rel=0.05)


def test_a_program_that_fails_fails_the_guest() -> None:
    with pytest.raises(BeowireError, match="carrier-pigeon: not understood"):
        run("transport=carrier-pigeon")


@pytest.mark.parametrize(
    "case",
    ["wait=one", "transport=tcp,bytes=0", "transport=tcp,bulk=1", "transport=rdm,encrypt=on"],
)
def test_a_case_that_is_not_understood(case: str) -> None:
    program = places.product(kernel.PROGRAM)
    done = subprocess.run([program, case], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not understood" in done.stderr


@pytest.mark.parametrize(
    ("words", "fix"),
    [(["--figure", "none"], "blocking-1"), (["--transport", "none"], "raw-all")],
)
def test_bad_arguments(words: list[str], fix: str) -> None:
    done = beowire("bench", "kernel", *words)
    assert done.status == 1
    assert fix in done.errors


def record(*whole: int) -> list[dict[str, Any]]:
    return [{"round": number, "whole": [[value, 3]]} for number, value in enumerate(whole)]


def test_growth_is_what_remains_without_the_bulk_and_without_the_trip() -> None:
    figure = Figure("g", "growth", [Row("raw-all", "one"), Row("raw", "one")], bulk=1000)
    records = {
        "transport=raw-all,wait=one,bytes=1": record(100, 100),
        "transport=raw,wait=one,bytes=1": record(90, 90),
        "transport=none,wait=one,bytes=1,bulk=1000": record(5000, 5010),
        "transport=raw-all,wait=one,bytes=1,bulk=1000": record(5300, 5310),
        "transport=raw,wait=one,bytes=1,bulk=1000": record(5140, 5150),
    }
    assert set(kernel.cases_of(figure)) == set(records)
    everything, own = kernel.evaluate(figure, records)
    assert (everything.value, own.value) == (200, 50)
    assert everything.ratio is None
    assert own.ratio is not None
    assert own.ratio.value == pytest.approx(0.25)
    records["transport=raw,wait=one,bytes=1,bulk=1000"] = record(5085, 5095)
    _, none = kernel.evaluate(figure, records)
    assert none.ratio is not None
    assert none.ratio.value == pytest.approx(-5 / 200)
    assert "too few rounds for an interval" in str(none.ratio)


def test_rows_are_told_per_message_and_copies_per_byte() -> None:
    tcp = Row("tcp", "one", 64, {"count": 4, "together": "off"})
    rdm = Row("rdm", "one", 64, {"count": 4, "together": "on"})
    counters = {"copied_tx": 3 * 4 * 64, "copied_rx": 3 * 4 * 32, "retransmits": 1}
    records = {
        tcp.case: [{"whole": [[400, 3]], "sent": [[200, 3]]}],
        rdm.case: [
            {
                "whole": [[80, 2], [140, 1]],
                "sent": [[40, 3]],
                "tx": counters,
                "rx": counters,
            }
        ],
    }
    _, told = kernel.evaluate(Figure("r", "rows", [tcp, rdm]), records)
    assert (told.value, told.p50, told.sent) == (25, 20, 10)
    assert (told.copied_tx, told.copied_rx) == (1, 0.5)
    assert told.ratio is not None
    assert told.ratio.value == pytest.approx(0.25)
    assert told.retransmits == 1


def test_the_checksum_is_told_apart() -> None:
    tcp = Row("tcp")
    off, on = (Row("rdm", options={"checksum": each}) for each in ("off", "on"))
    records = {tcp.case: record(100), off.case: record(60), on.case: record(75)}
    told = kernel.evaluate(Figure("c", "checksum", [tcp, off, on]), records)
    assert [each.checksum for each in told] == [None, None, 15]
    shown = kernel_cli.figure_table(Figure("c", "checksum", [tcp, off, on]), told)
    (column,) = (each for each in shown.columns if each.header == "checksum")
    assert list(column.cells) == ["", "", "15"]


def test_times_are_compared_with_an_interval() -> None:
    rows = [Row("tcp", "poll"), Row("rdm", "busy")]
    figure = Figure("w", "wall", rows, wall=True)
    cases = kernel.cases_of(figure)
    records = {cases[0]: record(100, 110, 100), cases[1]: record(50, 44, 60)}
    _, told = kernel.evaluate(figure, records)
    assert told.ratio is not None
    assert told.ratio.value == pytest.approx(0.12 ** (1 / 3))
    assert told.ratio.low < told.ratio.value < told.ratio.high
    shown = kernel_cli.figure_table(figure, [told])
    (column,) = (each for each in shown.columns if each.header == "ratio")
    assert list(column.cells) == [f"0.49 [{told.ratio.low:.2f}, {told.ratio.high:.2f}]"]


def test_an_address_belongs_to_the_function_before_it() -> None:
    kernel_start = 0xFFFFFFFF81000000
    symbols = Symbols(
        [
            Symbol(kernel_start, "first", "kernel"),
            Symbol(kernel_start + 0x40, "zeta", "kernel"),
            Symbol(kernel_start + 0x40, "alias", "kernel"),
            Symbol(0x10001000, "main", "program"),
        ]
    )
    assert symbols.at(kernel_start + 0x3F).name == "first"
    assert symbols.at(kernel_start + 0x40).name == "alias"
    assert symbols.at(0x10001004).name == "main"
    assert symbols.at(0x7FFF00000000).name == "main"
    assert symbols.at(0x1000).name == "?"


def test_a_function_s_whole_is_what_it_calls_as_well() -> None:
    start = 0xFFFFFFFF81000000
    outer, inner, other = (
        Symbol(start + 0x100 * number, name, "kernel")
        for number, name in enumerate(("outer", "inner", "other"))
    )
    trace = [
        *(outer.address, outer.address + 4),
        *(inner.address, inner.address + 4, inner.address + 8),
        outer.address + 9,
        *(inner.address, inner.address + 4),
        outer.address + 14,
        *(other.address + 8, other.address + 12),  # another process
    ]
    told = {
        each.function: (each.own, each.whole, each.calls)
        for each in kernel_profile.shares(trace, Symbols([outer, inner, other]), trips=2)
    }
    assert told == {"outer": (2, 4.5, 0.5), "inner": (2.5, 2.5, 1), "other": (1, 1, 0)}
