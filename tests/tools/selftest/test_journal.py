# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A run of tests that was ended goes on where it was, and tells how long it will take."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.selftest import run
from beowire.selftest.journal import Journal
from test_selftest import MANY, SEVERAL
from test_selftest import checkout as checkout_of


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a file."""
    monkeypatch.setenv("BEOWIRE_ROOT", str(tmp_path))
    (tmp_path / "some").write_text("some\n")
    (tmp_path / ".gitignore").write_text("/build\n")
    (tmp_path / "build").mkdir()
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "some"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def journal(checkout: Path, choice: str = "--part 1/2") -> Journal:
    return Journal(checkout / "build", choice)


def ended(of: Journal, test: str, *, passed: bool = True) -> None:
    with of.lines.open("a") as stream:
        stream.write(json.dumps({"test": test, "seconds": 2.5, "passed": passed}) + "\n")


def test_what_passed_need_not_run_again(checkout: Path) -> None:
    begun = journal(checkout)
    assert begun.begin(False, {"compiled-before": 1.0}) == []
    ended(begun, "a")
    ended(begun, "b", passed=False)
    ended(begun, "c")
    with begun.lines.open("a") as stream:
        stream.write('{"test": "d", "sec')  # it was killed there
    assert begun.begin(True, {"compiled": 4.0}) == ["a", "c", "compiled"]
    assert begun.done.read_text() == "a\nc\ncompiled\n"
    assert begun.ran() == set()
    ended(begun, "b")
    ended(begun, "c", passed=False)
    assert begun.ran() == {"b", "c"}
    assert begun.begin(True, {}) == ["a", "b", "compiled"]
    assert begun.begin(False, {}) == []
    known = json.loads(begun.times.read_text())
    assert known == {"compiled-before": 1.0, "compiled": 4.0, "a": 2.5, "b": 2.5, "c": 2.5}


@pytest.mark.parametrize("name", ["some", "new"])
def test_another_state_of_the_sources_is_another_run(checkout: Path, name: str) -> None:
    journal(checkout).begin(False, {})
    assert journal(checkout).begin(True, {}) == []
    (checkout / name).write_text("other\n")
    with pytest.raises(BeowireError, match="other sources"):
        journal(checkout).begin(True, {})


def test_another_part_is_another_run(checkout: Path) -> None:
    journal(checkout).begin(False, {})
    with pytest.raises(BeowireError, match="other tests"):
        journal(checkout, "--part 2/2").begin(True, {})


def test_what_was_never_begun_does_not_go_on(checkout: Path) -> None:
    with pytest.raises(BeowireError, match="No run"):
        journal(checkout).begin(True, {})


def said_by(place: Path, of: Journal, *options: str) -> str:
    """What a run of pytest with this journal said."""
    command = [sys.executable, "-P", "-m", "pytest", "tests", "-v", *options]
    command += ["-c", str(place / "tools" / "pyproject.toml"), "--rootdir", str(place)]
    environment = {**run.Chosen(True).environment(), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
        env=environment | of.environment(),
    )
    return done.stdout


@pytest.mark.parametrize("options", [(), SEVERAL], ids=["one", "several"])
def test_a_run_goes_on_by_whole_files_and_single_long_tests(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Tests of a file may need what those before them made."""
    place = checkout_of(tmp_path, MANY)
    for name in "ab":
        (place / "tests" / f"test_{name}.py").write_text(
            f"def test_x(): pass\ndef test_y(): assert {name == 'a'}\n"
        )
    of = Journal(place / "build", "all")
    of.begin(False, {})
    said = said_by(place, of, *options)
    assert "7 tests in Python: how long they take is not known, as none has run here" in said
    rows = [json.loads(line) for line in of.lines.read_text().splitlines()[1:]]
    verdicts = {row["test"]: row["passed"] for row in rows}
    longs = [f"tests/test_some.py::test_long_{number}" for number in range(3)]
    short = [f"tests/test_{name}.py::test_{each}" for name in "ab" for each in "xy"]
    assert verdicts == dict.fromkeys(longs, True) | dict(
        zip(short, [True, True, True, False], strict=True)
    )
    of.keep_times({})
    of.done.write_text("".join(f"{each}\n" for each in (*short[:3], longs[1])))
    of.lines.write_text(of.lines.read_text().splitlines()[0] + "\n")
    said = said_by(place, of, *options)
    assert "4 tests in Python: about 0 min, as they took last; 0 have not run here" in said
    assert of.ran() == {*short[2:], longs[0], longs[2]}
