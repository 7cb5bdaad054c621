# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The assembler's code against encodings written out by hand from the instruction set document."""

import os

import pytest
from beowire.lab import ebpf, port
from beowire.topology.topology import Model
from beowire_cli import NO_NAMESPACES

needs_root = pytest.mark.skipif(NO_NAMESPACES is not None, reason=f"raw frames: {NO_NAMESPACES}")


def test_arithmetic() -> None:
    program = ebpf.Program()
    program.alu("mov", 0, -1)
    program.alu_register("xor", 1, 2)
    assert program.assemble() == bytes.fromhex("b7 00 0000 ffffffff af 21 0000 00000000")


def test_memory() -> None:
    program = ebpf.Program()
    program.load(4, 2, 6, 16)
    program.store(1, 10, -8, 1)
    program.add_atomically(9, 8, 2)
    assert program.assemble() == bytes.fromhex(
        "61 62 1000 00000000  73 1a f8ff 00000000  db 29 0800 00000000"
    )


def test_constants_take_two_slots() -> None:
    program = ebpf.Program()
    program.load_constant(1, 0x1_0000_0002)
    assert program.assemble() == bytes.fromhex("18 01 0000 02000000 00 00 0000 01000000")


def test_jumps_count_slots_from_the_next_instruction() -> None:
    program = ebpf.Program()
    program.label("start")
    program.jump_if("eq", 2, 5, "end")
    program.jump("start")
    program.label("end")
    program.leave(2)
    assert program.assemble() == bytes.fromhex(
        "15 02 0100 05000000  05 00 feff 00000000  b7 00 0000 02000000  95 00 0000 00000000"
    )


def test_an_unknown_label_is_an_error() -> None:
    program = ebpf.Program()
    program.jump("nowhere")
    with pytest.raises(KeyError):
        program.assemble()


@needs_root
def test_a_refused_program_shows_the_verifier_s_words() -> None:
    program = ebpf.Program()
    program.alu_register("mov", 0, 5)  # r5 was never set
    program.leave(0)
    program.code[-2:] = program.code[-1:]
    with pytest.raises(RuntimeError, match="R5 !read_ok"):
        program.load_classifier("refused")


@needs_root
@pytest.mark.parametrize("redirect", [0, 1], ids=["to the bridge", "to an interface"])
@pytest.mark.parametrize(
    "model",
    [
        Model(loss=0.01),
        Model(corrupt=0.01),
        Model(mtu_bytes=1500),
        Model(drop_raw=True),
        Model(loss=1, corrupt=1, mtu_bytes=68, drop_raw=True),
    ],
)
def test_the_verifier_accepts_every_fault(model: Model, redirect: int) -> None:
    counters = ebpf.create_counters(5)
    os.close(port.fault_program(model, counters, redirect).load_classifier("faults"))
    assert ebpf.read_counters(ebpf.counters_id(counters), 5) == [0] * 5
    os.close(counters)
