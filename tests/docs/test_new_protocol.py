# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/new-protocol.md against the engine: its excerpts are real code, its example is short."""

import re
import shlex
import subprocess
from pathlib import Path

from beowire import places

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "new-protocol.md"
EXAMPLE = ROOT / "engine" / "datagram.c"


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_excerpts_are_taken_from_the_sources() -> None:
    sources = [squeezed(path.read_text()) for path in (EXAMPLE, ROOT / "engine" / "wire.h")]
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
