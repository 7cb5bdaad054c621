# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Counts of lines that ran, read as a guest's kernel leaves them: here a program leaves them so."""

import subprocess
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.vm import coverage
from beowire_cli import beowire

SOURCE = """\
int main(int argc, char **argv)
{
	if (argc > 1)
		return 1;
	return 0;
}
"""


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a program counted that ran once, without arguments."""
    root, stage, found = tmp_path / "checkout", tmp_path / "stage", tmp_path / "counts"
    (root / "engine").mkdir(parents=True)
    stage.mkdir()
    (root / "engine" / "some.c").write_text(SOURCE)
    (stage / "some.c").symlink_to(root / "engine" / "some.c")
    command = ["cc", "--coverage", "-c", str(stage / "some.c"), "-o", str(stage / "some.o")]
    subprocess.run(command, check=True, cwd=stage)
    subprocess.run(["cc", "--coverage", "some.o", "-o", "program"], check=True, cwd=stage)
    subprocess.run([stage / "program"], check=True, env={"GCOV_PREFIX": str(found)})
    monkeypatch.setenv("BEOWIRE_ROOT", str(root))
    return found


def test_lines_are_those_of_the_checkout(counts: Path) -> None:
    lines = coverage.read(counts)
    assert list(lines) == [Path("engine/some.c")]
    assert lines[Path("engine/some.c")].all == {1, 3, 4, 5}
    assert lines[Path("engine/some.c")].ran == {1, 3, 5}
    assert coverage.table(lines) == [
        "engine/some.c: 3 of 4 lines ran, 75.0 %",
        "engine/: 3 of 4 lines ran, 75.0 %",
    ]


def test_what_ran_in_either_guest_ran(counts: Path) -> None:
    one = coverage.read(counts)
    name = Path("engine/some.c")
    other = {
        name: coverage.Lines(one[name].all, frozenset({4})),
        Path("engine/a.c"): coverage.Lines(frozenset({1}), frozenset()),
    }
    both = coverage.merged(one, other)
    assert list(both) == [Path("engine/a.c"), name]
    assert both[name].ran == {1, 3, 4, 5}


def test_no_counts_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="counted no lines"):
        coverage.read(tmp_path)


def test_coverage_is_that_of_modules() -> None:
    done = beowire("vm", "--coverage", "--", "true")
    assert done.status != 0
    assert "--modules" in done.errors
