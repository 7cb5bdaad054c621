# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The sources keep to the project's rules: format, and for Python lint and types as well."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 100
CLANG_FORMAT = 14
"""Other versions of clang-format lay out the same rules in other ways."""


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "format", "--check", "tools", "tests"],
        ["ruff", "check", "tools", "tests"],
        ["mypy", "--strict", "--cache-dir=/dev/null", "tools/beowire"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_sources(command: list[str]) -> None:
    configured = {"ruff": ["--config", "tools/pyproject.toml"], "mypy": []}[command[0]]
    if command[0] == "mypy":
        configured = ["--config-file", "tools/pyproject.toml"]
    done = subprocess.run(
        [sys.executable, "-m", *command, *configured],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def c_sources() -> list[Path]:
    rooms = ("adapters", "common", "emulator", "engine", "examples", "hosts", "programs", "tests")
    return sorted(file for room in rooms for file in (ROOT / room).rglob("*.[ch]"))


def complaints(files: list[Path]) -> str:
    done = subprocess.run(
        ["clang-format", f"--style=file:{ROOT / '.clang-format'}", "--dry-run", "-Werror", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert bool(done.returncode) == ("[-Wclang-format-violations]" in done.stderr), done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if "error:" in line)


@pytest.fixture
def clang_format() -> None:
    """It is here, in the version whose layout the sources have."""
    program = shutil.which("clang-format")
    if program is None:
        pytest.skip("clang-format is missing: apt-get install clang-format")
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"version (\d+)", said.stdout)
    if version is None or int(version[1]) != CLANG_FORMAT:
        pytest.skip(f"the layout is that of clang-format {CLANG_FORMAT}, not {said.stdout.strip()}")


@pytest.mark.usefixtures("clang_format")
def test_c_sources_are_formatted() -> None:
    assert not complaints(c_sources())


@pytest.mark.usefixtures("clang_format")
def test_c_that_is_not_formatted_is_noticed(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int twice(int n)\n{\n    return 2*n;\n}\n")
    assert "wrong.c:3" in complaints([source])


def test_no_line_of_c_is_too_wide() -> None:
    wide = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in c_sources()
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if len(line.expandtabs(8)) > COLUMNS
    ]
    # clang-format leaves comments alone: wrap them by hand.
    assert not wide
