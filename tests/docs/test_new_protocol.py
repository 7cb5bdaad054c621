# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/new-protocol.md against the engine: its excerpts are real code, its example is short."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

from beowire import places

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "new-protocol.md"
EXAMPLE = ROOT / "engine" / "datagram.c"
MODULE = ROOT / "hosts" / "kernel" / "datagram_module.c"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_excerpts_are_taken_from_the_sources() -> None:
    sources = [squeezed(path.read_text()) for path in (EXAMPLE, MODULE, ROOT / "engine" / "wire.h")]
    blocks = re.findall(r"^```c\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        for piece in re.split(r"^\s*\.\.\.\s*$", block, flags=re.MULTILINE):
            assert any(squeezed(piece) in source for source in sources), piece


def test_every_operation_is_explained() -> None:
    header = (ROOT / "engine" / "protocol.h").read_text()
    body = re.search(r"^struct bw_protocol \{(.*?)^\};", header, flags=re.MULTILINE | re.DOTALL)
    assert body is not None
    operations = set(re.findall(r"\(\*(\w+)\)\(", body[1]))
    table = [line.split("|")[1] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    assert operations == set(re.findall(r"`(\w+)`", " ".join(table)))


def test_the_example_is_as_short_as_promised() -> None:
    assert "under 200 lines" in squeezed(PAGE.read_text())
    assert len(EXAMPLE.read_text().splitlines()) < 200


def test_the_commands_work() -> None:
    block = re.search(r"^```sh\n(.*?)^```", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    commands = [line for line in block[1].splitlines() if line.startswith("build/")]
    assert len(commands) >= 3
    for command in commands:
        program, *arguments = shlex.split(command)
        binary = places.product(program.removeprefix("build/"))
        subprocess.run([binary, *arguments], check=True, stdout=subprocess.DEVNULL)


def test_a_new_protocol_runs_after_the_steps_of_section_6(tmp_path: Path) -> None:
    """The example under another name, with a frame type that nobody else knows."""
    for room in ("engine", "common", "hosts", "programs"):
        shutil.copytree(ROOT / room, tmp_path / room)
    engine = tmp_path / "engine"
    source = (engine / "datagram.c").read_text()
    for old, new in (("datagram", "newcomer"), ("BW_FRAME_DGRAM", "77")):
        source = source.replace(old, new)
    (engine / "newcomer.c").write_text(source)
    edit(engine / "protocol.h", "/* All of them", "extern const struct bw_protocol bw_newcomer;\n")
    edit(engine / "protocols.c", "NULL}", "&bw_newcomer, ")
    shared = [*engine.rglob("*.c"), *(tmp_path / "common").glob("*.c")]
    programs = {
        "sim": ([*(tmp_path / "hosts" / "sim").glob("*.c")], ["--protocol", "newcomer"]),
        "user": ([tmp_path / "programs" / "protocol.c"], ["newcomer"]),
    }
    includes = [f"-I{tmp_path / room}" for room in ("engine", "common", "hosts/sim")]
    for name, (own, arguments) in programs.items():
        program = tmp_path / name
        compiler = ["cc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-w", *includes]
        subprocess.run([*compiler, "-o", program, *own, *shared, "-lsodium"], check=True)
        more = ["--seeds", "1-3"] if name == "sim" else []
        subprocess.run([program, *arguments, *more], check=True)


def edit(path: Path, before: str, text: str) -> None:
    source = path.read_text()
    assert source.count(before) == 1
    path.write_text(source.replace(before, text + before))
