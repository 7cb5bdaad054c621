# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A very small eBPF assembler and loader, enough for the faults of a lab's links.

A program is a list of instructions with named labels; `Program.load` resolves the labels and
hands the code to the kernel by bpf(2). No compiler is needed where a lab is made. The
encoding is that of the kernel's Documentation/bpf/standardization/instruction-set.rst.
"""

import ctypes
import errno
import os
import platform
import struct
from dataclasses import dataclass, field
from functools import cache

from beowire.errors import BeowireError

_MAP_CREATE = 0
_MAP_LOOKUP_ELEM = 1
_PROG_LOAD = 5
_MAP_GET_FD_BY_ID = 14
_OBJ_GET_INFO_BY_FD = 15

_MAP_TYPE_ARRAY = 2
_PROG_TYPE_SCHED_CLS = 3

HELPER_PRANDOM_U32 = 7
HELPER_SKB_STORE_BYTES = 9
HELPER_REDIRECT = 23
HELPER_SKB_LOAD_BYTES = 26

_SYSCALL = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}

_ALU_OPERATIONS = {
    "add": 0x0,
    "sub": 0x1,
    "and": 0x5,
    "lsh": 0x6,
    "mod": 0x9,
    "xor": 0xA,
    "mov": 0xB,
}
_JUMPS = {"eq": 0x1, "gt": 0x2, "ge": 0x3, "ne": 0x5, "lt": 0xA, "le": 0xB}
_SIZES = {1: 0x10, 2: 0x08, 4: 0x00, 8: 0x18}


def _bpf(command: int, attributes: bytes) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise BeowireError(f"Losses are not supported on {platform.machine()}.")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    result: int = libc.syscall(number, command, buffer, 128)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"bpf: {os.strerror(code)}")
    return result


@dataclass
class Program:
    """Instructions under construction: registers are numbers, r10 is the frame pointer."""

    code: list[tuple[int, int, int, int | str, int]] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)

    def _add(self, opcode: int, to: int, source: int, offset: int | str, immediate: int) -> None:
        self.code.append((opcode, to, source, offset, immediate))

    def label(self, name: str) -> None:
        self.labels[name] = len(self.code)

    def alu(self, operation: str, to: int, immediate: int) -> None:
        self._add(0x07 | _ALU_OPERATIONS[operation] << 4, to, 0, 0, immediate)

    def alu_register(self, operation: str, to: int, source: int) -> None:
        self._add(0x0F | _ALU_OPERATIONS[operation] << 4, to, source, 0, 0)

    def load(self, size_bytes: int, to: int, source: int, offset: int) -> None:
        self._add(0x61 | _SIZES[size_bytes], to, source, offset, 0)

    def store(self, size_bytes: int, to: int, offset: int, source: int) -> None:
        self._add(0x63 | _SIZES[size_bytes], to, source, offset, 0)

    def load_constant(self, to: int, value: int) -> None:
        """A full 64-bit constant; takes two slots."""
        self._add(0x18, to, 0, 0, value & 0xFFFF_FFFF)
        self._add(0, 0, 0, 0, value >> 32)

    def load_map_value(self, to: int, map_descriptor: int) -> None:
        """The address of the single value of an array map; takes two slots."""
        self._add(0x18, to, 2, 0, map_descriptor)
        self._add(0, 0, 0, 0, 0)

    def add_atomically(self, to: int, offset: int, source: int) -> None:
        self._add(0xDB, to, source, offset, 0)

    def call(self, helper: int) -> None:
        self._add(0x85, 0, 0, 0, helper)

    def jump(self, label: str) -> None:
        self._add(0x05, 0, 0, label, 0)

    def jump_if(self, condition: str, register: int, immediate: int, label: str) -> None:
        self._add(0x05 | _JUMPS[condition] << 4, register, 0, label, immediate)

    def jump_if_register(self, condition: str, register: int, other: int, label: str) -> None:
        self._add(0x0D | _JUMPS[condition] << 4, register, other, label, 0)

    def leave(self, result: int) -> None:
        self.alu("mov", 0, result)
        self._add(0x95, 0, 0, 0, 0)

    def leave_with_result(self) -> None:
        """Ends with what the last helper returned."""
        self._add(0x95, 0, 0, 0, 0)

    def assemble(self) -> bytes:
        """The machine code, labels resolved to distances in slots."""
        out = bytearray()
        for position, (opcode, to, source, offset, immediate) in enumerate(self.code):
            if isinstance(offset, str):
                offset = self.labels[offset] - position - 1
            value = immediate - 2**32 if immediate >= 2**31 else immediate
            out += struct.pack("<BBhi", opcode, source << 4 | to, offset, value)
        return bytes(out)

    def load_classifier(self, name: str) -> int:
        """Loads the program for tc; the descriptor is the caller's to close."""
        code = ctypes.create_string_buffer(self.assemble())
        licence = ctypes.create_string_buffer(b"Dual BSD/GPL")
        log = ctypes.create_string_buffer(65536)
        attributes = struct.pack(
            "<IIQQIIQII16s",
            _PROG_TYPE_SCHED_CLS,
            len(self.code),
            ctypes.addressof(code),
            ctypes.addressof(licence),
            1,
            len(log),
            ctypes.addressof(log),
            0,
            0,
            name.encode()[:15],
        )
        try:
            return _bpf(_PROG_LOAD, attributes)
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOSYS):
                raise BeowireError(
                    f"The kernel refuses eBPF programs ({error.strerror}), which lose frames and "
                    "join links that touch no switch.",
                    "Use a lab of nodes at a switch without loss, corrupt, mtu and drop-raw, or "
                    "run as root outside a container.",
                ) from None
            lines = log.value.decode(errors="replace").strip()
            raise RuntimeError(f"eBPF program refused: {error}\n{lines}") from error


@cache
def permitted() -> bool:
    """Whether this process may load programs."""
    program = Program()
    program.leave(0)
    try:
        os.close(program.load_classifier("probe"))
    except BeowireError:
        return False
    return True


def create_counters(count: int) -> int:
    """An array map with one value of `count` 64-bit counters; the caller closes it."""
    return _bpf(_MAP_CREATE, struct.pack("<IIII", _MAP_TYPE_ARRAY, 4, 8 * count, 1))


def counters_id(descriptor: int) -> int:
    """The number by which another process can open the map while a program uses it."""
    information = ctypes.create_string_buffer(128)
    _bpf(
        _OBJ_GET_INFO_BY_FD,
        struct.pack("<IIQ", descriptor, len(information), ctypes.addressof(information)),
    )
    number: int = struct.unpack_from("<I", information.raw, 4)[0]
    return number


def read_counters(number: int, count: int) -> list[int]:
    """The counters of the map with that id."""
    descriptor = _bpf(_MAP_GET_FD_BY_ID, struct.pack("<I", number))
    try:
        key = ctypes.create_string_buffer(4)
        value = ctypes.create_string_buffer(8 * count)
        _bpf(
            _MAP_LOOKUP_ELEM,
            struct.pack("<IIQQ", descriptor, 0, ctypes.addressof(key), ctypes.addressof(value)),
        )
        return list(struct.unpack(f"<{count}Q", value.raw))
    finally:
        os.close(descriptor)
