# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/wire-protocol.md against the code: layouts, constants, the engine's choices, examples.

The tables are read out of the page, so a change of either side without the other fails here.
"""

import re
import subprocess
import tempfile
from pathlib import Path

import keyed
import pytest
from wire_frames import Frame, crc32c, header
from wire_layout import ROOT, Structure, wire_layout

PAGE = ROOT / "docs" / "wire-protocol.md"


def section(title: str) -> str:
    """The text between a heading and the next one."""
    match = re.search(
        rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert match is not None, f"no heading {title!r}"
    return match[1]


def rows(text: str) -> list[list[str]]:
    """The cells of all table rows, heads excluded."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[2:]


def declared(structure: Structure) -> list[tuple[int, int, str]]:
    found = [(member.offset, member.size, member.name) for member in structure.members]
    if found[0][0]:
        found.insert(0, (0, found[0][0], "part"))
    return found


@pytest.mark.parametrize("name", wire_layout().structures)
def test_layouts(name: str) -> None:
    structure = wire_layout().structures[name]
    table = rows(section(f"`{name}` ({structure.size} bytes)"))
    documented = [(int(row[0]), int(row[1]), row[2].strip("`")) for row in table]
    assert documented == declared(structure)
    assert all(row[3] for row in table)


def test_constants() -> None:
    table = rows(section("Constants"))
    assert {row[0].strip("`"): int(row[1], 0) for row in table} == wire_layout().constants


def test_frame_types() -> None:
    table = rows(section("3. Rules for every frame"))
    documented = {f"BW_FRAME_{row[0].strip('`')}": int(row[1]) for row in table}
    constants = wire_layout().constants
    assert documented == {
        name: value
        for name, value in constants.items()
        if name.startswith("BW_FRAME_") and not name.endswith("_MTU")
    }


def test_refusals() -> None:
    documented = {row[0]: int(row[1]) for row in rows(section("5. First contact"))}
    assert documented == {
        name.removeprefix("BW_REFUSAL_"): value
        for name, value in wire_layout().constants.items()
        if name.startswith("BW_REFUSAL_")
    }


def engine_defines() -> dict[str, str]:
    """Every constant defined anywhere in the engine, with the text of its value."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "engine").rglob("*.[ch]")):
        text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.DOTALL)
        found |= dict(re.findall(r"^#define (BW_\w+)[ \t]+(\S.*)$", text, flags=re.MULTILINE))
    return found


def values_of(names: list[str]) -> dict[str, int]:
    """What the compiler makes of these constants."""
    defines = engine_defines()
    lines = ['#include "reliable.h"', "#include <stdio.h>"]
    lines += [f"#undef {name}\n#define {name} {defines[name]}" for name in names]
    lines.append("int main(void) {")
    lines += [f'printf("{name} %llu\\n", (unsigned long long)({name}));' for name in names]
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as directory:
        binary = Path(directory) / "values"
        subprocess.run(
            ["cc", "-std=gnu11", "-x", "c", "-I", str(ROOT / "engine"), "-o", str(binary), "-"],
            input="\n".join(lines),
            text=True,
            check=True,
        )
        output = subprocess.run([binary], text=True, check=True, stdout=subprocess.PIPE).stdout
    return {name: int(value) for name, value in (line.split() for line in output.splitlines())}


def test_choices_of_the_engine() -> None:
    documented = {
        row[0].strip("`"): int(row[1]) for row in rows(section("18. Choices of the engine"))
    }
    assert documented == values_of(list(documented))


def example(name: str) -> bytes:
    match = re.search(rf"^```hex {name}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert match is not None
    return bytes.fromhex(match[1])


def example_frames() -> dict[str, Frame]:
    data = header("DATA", pn=7).add("ackblk", ack=5, floor=7, credit=2048)
    data.part("MESSAGE", b"hello", code=3, id=9, total=5, tag=0xDEAD)
    ack = header("ACK").add("ackblk", ack=5, floor=8, credit=2048)
    ack.add("ack", delay_ns=99, largest=15, ranges=2)
    ack.add("range", gap=1, run=2).add("range", gap=3, run=4)
    return {"bye": header("BYE").seal(), "data": data.seal(), "ack": ack.seal()}


@pytest.mark.parametrize("name", example_frames())
def test_examples(name: str) -> None:
    assert example(name) == bytes(example_frames()[name].data)


def sealed_example() -> bytes:
    """The example of DATA, without its checksum, as it is sealed."""
    frame = header("DATA", pn=7, token=0).add("ackblk", ack=5, floor=7, credit=2048)
    frame.part("MESSAGE", b"hello", code=3, checksum=False, id=9, total=5, tag=0xDEAD)
    frame.data += bytes(16)
    frame.set("hdr.len", len(frame.data) - 32).set("hdr.hcrc", 0)
    tag = keyed.siphash(bytes(range(16)), bytes(frame.data[:48]))
    frame.set("hdr.token", tag >> 32).set("hdr.hcrc", tag & 0xFFFFFFFF)
    head, rest = bytes(frame.data[:48]), bytes(frame.data[48:-16])
    return head + keyed.seal(bytes(range(16, 48)), keyed.packet_nonce(0, 7), head, rest)


def test_example_of_a_sealed_frame() -> None:
    assert example("sealed") == sealed_example()


KEY = bytes(range(0x20))
CALLER = {
    "node": 0x0102030405060708,
    "inc": 0x11121314,
    "conn": 0x05060708,
    "token": 0xC5D6E7F8,
    "engine": 4,
    "random": 0x2122232425262728,
}
CALLED = {
    "node": 0x1112131415161718,
    "inc": 0x21222324,
    "conn": 0x01020304,
    "token": 0xA1B2C3D4,
    "engine": 3,
    "random": 0x3132333435363738,
}


def hello_with_key(frame: Frame, sender: dict[str, int], **values: int | bytes) -> bytes:
    both = {"features": 1, "version_min": 2, "version_max": 2, "credit": 16384, "frame_max": 1500}
    frame.add("hello", **sender, **both, **values)
    frame.set("hdr.len", len(frame.data) - 32)
    auth = keyed.mac(keyed.Keys(KEY).hello, bytes(frame.data))[:16]
    frame.data[-16:] = auth
    return bytes(frame.set("hdr.hcrc", crc32c(bytes(frame.data))).data)


def examples_with_key() -> dict[str, bytes]:
    """First contact with a key, what both compute from it, and the caller's goodbye."""
    hello = header("HELLO", token=0, conn=0)
    answer = header("HELLO", dst_engine=4, src_engine=3, token=CALLER["inc"], conn=CALLER["conn"])
    answer.set("hdr.flags", wire_layout().constants["BW_HDR_ANSWER"])
    known = {"target_node": CALLER["node"], "target_inc": CALLER["inc"], "echo": 0x41424344}
    keys, sides = keyed.Keys(KEY), (keyed.side(CALLER), keyed.side(CALLED))
    tag_key = keys.tag_key(*sides)
    bye = header("BYE", token=0)
    tag = keyed.siphash(tag_key, bytes(bye.data))
    bye.set("hdr.token", tag >> 32).set("hdr.hcrc", tag & 0xFFFFFFFF)
    return {
        "hello-with-key": hello_with_key(
            hello, CALLER, name=b"one", target_node=CALLED["node"], nonce=0x41424344
        ),
        "answer-with-key": hello_with_key(answer, CALLED, name=b"two", **known),
        "tag-key": tag_key,
        "seal-key": keys.seal_key(*sides),
        "bye-with-key": bytes(bye.data),
    }


@pytest.mark.parametrize("name", examples_with_key())
def test_examples_with_a_key(name: str) -> None:
    assert example(name) == examples_with_key()[name]


def test_the_checksum_is_the_one_named() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert "0xE3069283" in section("12. Checksums")
