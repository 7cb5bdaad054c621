# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The Python sources keep to the project's rules: format, lint, types."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
