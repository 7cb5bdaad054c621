# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire completion`: what fits an unfinished word, and bash that completes by it."""

import os
import pty
import re
import select
import shlex
import subprocess
import time
from pathlib import Path

import pytest
from beowire.completion.answer import answers
from beowire.completion.scripts import SCRIPTS
from beowire.lab import lab
from beowire_cli import COMMAND, beowire

PATIENCE_S = 240
WRAPPER = '#!/bin/sh\nexec {command} "$@"\n'


def words(*line: str) -> list[str]:
    return [each.word for each in answers(line)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (["doc"], ["doctor", "docs"]),
        (["--ve"], ["--version"]),
        (["lab", "che"], ["check", "check-rates"]),
        (["lab", "link", ""], ["set", "show"]),
        (["run", "--trans"], ["--transport"]),
        (["run", "--bind", ""], ["none", "core"]),
        (["run", "--bind=c"], ["--bind=core"]),
        (["run", "--bind", "=", "c"], ["core"]),
        (["run", "--bind", "="], ["none", "core"]),
        (["--report", "x.html", "run", "--trans"], ["--transport"]),
        (["run", "-n", "2", "--trans"], ["--transport"]),
        (["run", "-n", "2", "program", "--trans"], []),
        (["run", "--", "--trans"], []),
        (["completion", "z"], ["zsh"]),
        (["nonsense", "x"], []),
        ([], None),
    ],
)
def test_what_fits(line: list[str], found: list[str] | None) -> None:
    told = words(*line)
    if found is None:
        assert {"run", "doctor", "version", "completion"} <= set(told)
    else:
        assert told == found


def test_files_are_the_shells_own() -> None:
    assert [each.kind for each in answers(["--report", ""])] == ["file"]
    assert [each.kind for each in answers(["model", "fit", ""])] == ["file"]


def test_labs_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "names", lambda: ["one", "other", "third"])
    assert words("run", "--lab", "o") == ["one", "other"]


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_printed(shell: str) -> None:
    answer = beowire("completion", shell)
    assert answer.status == 0, answer.errors
    assert "completion --answer --" in answer.output


def test_another_shell_is_refused() -> None:
    answer = beowire("completion", "csh")
    assert answer.status == 2
    assert "bash, zsh, fish" in answer.errors


def test_a_script_costs_little_to_print() -> None:
    """Shells read it whenever they start. What that takes is the modules that are loaded for it,
    192 of them where `--help` loads 349; who else has processors does not change their number."""
    python, *words = COMMAND
    told = subprocess.run(
        [python, "-X", "importtime", *words, "completion", "bash"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    ).stderr
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines() if "|" in line}
    assert "beowire.completion.scripts" in loaded
    assert not loaded & {"rich", "pydantic", "pyroute2", "numpy", "beowire.lab.up"}
    assert len(loaded) < 250


class Bash:
    """An interactive bash on a terminal of its own, without anybody's settings."""

    def __init__(self, place: Path) -> None:
        wrapper = place / "beowire"
        wrapper.write_text(WRAPPER.format(command=shlex.join(COMMAND)))
        wrapper.chmod(0o755)
        self.terminal, other = pty.openpty()
        environment = os.environ | {
            "PATH": f"{place}:{os.environ['PATH']}",
            "TERM": "dumb",
            "PS1": "",
            "INPUTRC": "/dev/null",
        }
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile", "-i"],
            stdin=other, stdout=other, stderr=other, cwd=place, env=environment,
            start_new_session=True,
        )  # fmt: skip
        os.close(other)

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def until(self, wanted: str) -> str:
        """What it shows, up to this pattern."""
        shown = ""
        end = time.monotonic() + PATIENCE_S
        while not re.search(wanted, shown):
            ready, _, _ = select.select([self.terminal], [], [], max(0, end - time.monotonic()))
            assert ready, f"no {wanted!r} in {shown!r}"
            shown += os.read(self.terminal, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


def test_bash_completes(tmp_path: Path) -> None:
    (tmp_path / "onlyfile.jsonl").touch()
    bash = Bash(tmp_path)
    try:
        bash.type('eval "$(beowire completion bash)"; echo is-$((40 + 2))\n')
        bash.until("is-42")
        # What completes a word is typed as if by hand: the line is executed as it then stands.
        bash.type("beowire lab topo\t; echo end-$((40 + 3))\n")
        assert "beowulf16" in bash.until("end-43")
        bash.type("beowire model fit only\t--no-such-option; echo end-$((40 + 4))\n")
        assert "onlyfile.jsonl" in bash.until("end-44")
        bash.type("beowire completion b\t| wc -l; echo end-$((40 + 5))\n")
        lines = len((beowire("completion", "bash").output).splitlines())
        assert re.search(rf"^{lines}\r?$", bash.until("end-45"), re.MULTILINE)
    finally:
        bash.close()
