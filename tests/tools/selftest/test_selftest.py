# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What runners report is counted case by case, and nothing that failed is lost."""

import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from beowire import places
from beowire.errors import BeowireError
from beowire.selftest import cli, run, skips, times
from beowire.selftest.reports import Case, cmocka_cases, read_junit, summary
from beowire.selftest.skips import Allowed
from beowire_cli import beowire

CMOCKA_OUTPUT = """\
[==========] Running 4 test(s).
[ RUN      ] spans__merge
[       OK ] spans__merge
[ RUN      ] link__vlan
no VLAN support in this kernel
[  SKIPPED ] link__vlan
[ RUN      ] spans__split
[ RUN      ] spans__crash
"""
CMOCKA_ERRORS = """\
[  ERROR   ] --- 3 != 4
[   LINE   ] --- test_spans.c:12: error: Failure!
[  FAILED  ] spans__split
"""


def junit(tmp_path: Path, cases: str) -> list[Case]:
    file = tmp_path / "junit.xml"
    file.write_text(f"<testsuites><testsuite name='s'>{cases}</testsuite></testsuites>")
    return read_junit(file)


def test_cases_inside_a_program_are_counted() -> None:
    assert cmocka_cases("spans", CMOCKA_OUTPUT, CMOCKA_ERRORS) == [
        Case("spans: spans__merge", "passed"),
        Case("spans: link__vlan", "skipped", "no VLAN support in this kernel"),
        Case("spans: spans__split", "failed", "3 != 4"),
        Case("spans: spans__crash", "failed", "did not end"),
    ]


def test_a_program_without_cases_is_one(tmp_path: Path) -> None:
    cases = "<testcase name='plain' classname=''/>"
    assert junit(tmp_path, cases) == [Case("plain", "passed")]


def test_a_leak_after_the_last_case_is_a_failure(tmp_path: Path) -> None:
    output = "[ RUN      ] a__b\n[       OK ] a__b\n"
    cases = f"<testcase name='p'><failure/><system-out>{output}</system-out></testcase>"
    assert [case.verdict for case in junit(tmp_path, cases)] == ["passed", "failed"]


def test_reasons_are_kept(tmp_path: Path) -> None:
    cases = (
        "<testcase classname='t' name='a'><skipped message='because'/></testcase>"
        "<testcase classname='t' name='b'><error message='broken'>long\nstory</error></testcase>"
        "<testcase name='c'><skipped/><system-out>one\nneeds more cores\n</system-out></testcase>"
        "<testcase name='d'><failure/><system-out>0 passed</system-out>"
        "<system-err>d: bytes of nobody\n</system-err></testcase>"
    )
    assert junit(tmp_path, cases) == [
        Case("t: a", "skipped", "because"),
        Case("t: b", "failed", "broken"),
        Case("c", "skipped", "needs more cores"),
        Case("d", "failed", "d: bytes of nobody"),
    ]


def test_a_skip_without_a_reason_is_a_failure(tmp_path: Path) -> None:
    silent = "[ RUN      ] a__b\n[  SKIPPED ] a__b\n"
    cases = (
        "<testcase classname='t' name='a'><skipped/></testcase>"
        f"<testcase name='p'><system-out>{silent}</system-out></testcase>"
    )
    failed = "it was skipped without a reason"
    assert junit(tmp_path, cases) == [
        Case("t: a", "failed", failed),
        Case("p: a__b", "failed", failed),
    ]


def test_the_summary_counts() -> None:
    cases = [Case("a", "passed"), Case("b", "passed"), Case("c", "skipped", "why")]
    assert summary(cases) == "2 passed, 0 failed, 1 skipped"


# A run of tests of its own: a checkout with one file of tests, and the command for them.
SKIPPING = """\
import pytest

def test_sound():
    pass

@pytest.mark.skip(reason="no guest")
def test_guest():
    pass

@pytest.mark.skip(reason="no reason that is allowed")
def test_other():
    pass
"""
ALLOWING = """\
[[skip]]
test = 'tests\\.test_some: test_guest'
reason = 'no guest'
why = "for this test"
"""


def checkout(place: Path, tests: str, allowed: str = "") -> Path:
    """A folder that `beowire test` takes for a checkout."""
    (place / "tests").mkdir()
    (place / "build").mkdir()
    for file in ("tests/conftest.py", "tests/browser.py", "tools/pyproject.toml"):
        (place / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(places.root() / file, place / file)
    (place / "tests" / "test_some.py").write_text(tests)
    (place / "tests" / "allowed-skips.toml").write_text(allowed)
    return place


@pytest.fixture(autouse=True)
def _few_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest that is started here loads no plugin that it does not need: that takes a second."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_a_whole_run(tmp_path: Path) -> None:
    """The command, the runner and the lists together; the other tests take them one by one."""
    place = checkout(tmp_path, SKIPPING, ALLOWING)
    answer = beowire(
        *("test", "tests/test_some.py", "--require-all"),
        BEOWIRE_ROOT=str(place),
        BEOWIRE_BUILD=str(place / "build"),
    )
    assert answer.status == 1, answer.errors
    *_, by_folder, in_all, allowed, refused, last = answer.output.splitlines()
    assert allowed.startswith("skipped: ")
    assert refused.startswith("failed: tests.test_some: test_other: skipped, which it may not be")
    assert re.fullmatch(r" +[0-9.]+ s +(?:[0-9.]+|-)  tests", by_folder)
    assert re.fullmatch(r" +[0-9.]+ s +[0-9.]+  in all, by the clock and of processors", in_all)
    assert last == "1 passed, 1 failed, 1 skipped"


_PASSED = Case("tests.test_some: test_sound", "passed")
_SKIPPED = Case("tests.test_some: test_guest", "skipped", "no guest")


@pytest.mark.parametrize(
    ("cases", "require_all", "allowed", "status", "last"),
    [
        ([_PASSED, _SKIPPED], False, "", 0, "1 passed, 0 failed, 1 skipped"),
        ([_PASSED, _SKIPPED], True, "", 1, "1 passed, 1 failed, 0 skipped"),
        ([_PASSED, _SKIPPED], True, ALLOWING, 0, "1 passed, 0 failed, 1 skipped"),
        ([_SKIPPED], False, "", 1, "0 passed, 0 failed, 1 skipped"),
    ],
    ids=["skipped", "without leave", "with leave", "all of them skipped"],
)
def test_what_is_skipped_without_leave_has_failed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    cases: list[Case],
    require_all: bool,
    allowed: str,
    status: int,
    last: str,
) -> None:
    place = checkout(tmp_path, "", allowed)
    monkeypatch.setenv("BEOWIRE_ROOT", str(place))
    monkeypatch.setenv("BEOWIRE_BUILD", str(place / "build"))
    monkeypatch.setattr(run, "run_some", lambda *_: cases)
    with pytest.raises(typer.Exit) as end:
        cli.run_tests(["tests/test_some.py"], require_all=require_all)
    assert (end.value.exit_code, capsys.readouterr().out.splitlines()[-1]) == (status, last)


@pytest.mark.parametrize(
    ("entry", "covered"),
    [
        (Allowed("a.*", "no .*", ""), True),
        (Allowed("a", "no guest", ""), False),
        (Allowed("a case", "no", ""), False),
    ],
)
def test_leave_is_for_whole_names_and_reasons(entry: Allowed, covered: bool) -> None:
    (case,) = skips.refused([Case("a case", "skipped", "no guest")], [entry])
    assert case.verdict == ("skipped" if covered else "failed")


def test_a_list_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "list.toml"
    for text in ("[[skip]]\ntest = 'a'", "[[skip]]\ntest = '('\nreason = ''\nwhy = ''", "["):
        file.write_text(text)
        with pytest.raises(BeowireError):
            skips.load(file)


def test_an_entry_that_nothing_needs_is_told() -> None:
    some, other = (Allowed(f"test {each}", "why", "") for each in "ab")
    cases = [Case("test a", "skipped", "why"), Case("test b", "passed")]
    assert skips.unused(cases, [some, other]) == [other]


def test_what_is_left_out_of_the_build_is_skipped_by_name() -> None:
    done = subprocess.run(
        [places.root() / "tests" / "left_out.sh", "x is missing"],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (77, b"x is missing\n")


def test_what_meson_did_not_run_or_broke_off_has_failed() -> None:
    told = {"a": "OK", "b": "TIMEOUT", "c": "INTERRUPT", "d": "SKIP", "e": "FAIL"}
    assert [case.name for case in run.without_verdict("abcdef", told)] == ["b", "c", "f"]


def test_all_that_may_be_alone_is_where_it_is_looked_for() -> None:
    """No test marks itself: those of the schedule are all, but for the long ones."""
    for file in (places.root() / "tests").rglob("test_*.py"):
        assert "mark." + "alone" not in file.read_text(), file
    schedule = tomllib.loads((places.root() / "tests" / "schedule.toml").read_text())
    assert run._files_apart(run.Chosen()) == list(schedule["alone"])
    assert run._files_apart(run.Chosen(True)) == ["tests"]
    assert run._files_apart(run.Chosen(False, 1, 2)) == ["tests"]


def test_files_of_the_schedule_exist() -> None:
    schedule = tomllib.loads((places.root() / "tests" / "schedule.toml").read_text())
    names = [*schedule["first"], *schedule["alone"]]
    assert [name for name in names if not (places.root() / name).is_file()] == []
    assert sorted(set(names)) == sorted(names)
    together = schedule["one_after_another"]
    assert [name for name in together if not (places.root() / name).is_file()] == []
    assert not set(together) & set(schedule["alone"])


WORKER = """\
import os, pathlib, time

def test_where():
    time.sleep(0.5)
    pathlib.Path(__file__).with_suffix(".worker").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


def test_files_that_run_one_after_another_have_one_worker(tmp_path: Path) -> None:
    place = checkout(tmp_path, WORKER)
    for name in "abcd":
        (place / "tests" / f"test_{name}.py").write_text(WORKER)
    together = [f"tests/test_{name}.py" for name in "acd"]
    (place / "tests" / "schedule.toml").write_text(f"one_after_another = {together}\n[alone]\n")
    command = [sys.executable, "-P", "-m", "pytest", "-p", "xdist", "-p", "pytest_timeout"]
    command += ["-n", "2", *run.SIDE_BY_SIDE, "tests"]
    command += ["-c", str(place / "tools" / "pyproject.toml"), "--rootdir", str(place)]
    subprocess.run(command, check=True, cwd=place)
    workers = {each.stem[-1]: each.read_text() for each in (place / "tests").glob("*.worker")}
    assert workers["a"] == workers["c"] == workers["d"]
    assert workers["b"] != workers["a"]


DYING = """\
import os, pytest

def test_first():
    pass

def test_dies():
    os._exit(0)

def test_last():
    pass
"""
LOST = """\
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    return True if item.name == "test_lost" else None
"""


def python_tests(place: Path, *options: str) -> list[str]:
    """The verdicts that are counted of a run of pytest with these options."""
    log = place / "build" / "pytest.junit.xml"
    command = [sys.executable, "-P", "-m", "pytest", "-c", str(place / "tools" / "pyproject.toml")]
    command += ["--rootdir", str(place), f"--junitxml={log}", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        [*command, str(place / "tests")], cwd=place, stdout=subprocess.DEVNULL, check=False
    )
    return sorted(case.verdict for case in run.counted(log, done.returncode, "pytest"))


SEVERAL = ("-p", "xdist", "-n", "1", *run.SIDE_BY_SIDE)
"""As several workers: one file's tests are one worker's."""


@pytest.mark.parametrize("options", [(), SEVERAL], ids=["one", "several"])
def test_a_process_that_dies_has_failed(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Even with an exit status that says all is well."""
    assert "failed" in python_tests(checkout(tmp_path, DYING), *options)


@pytest.mark.parametrize("options", [(), SEVERAL], ids=["one", "several"])
def test_a_test_that_was_chosen_and_did_not_run_is_a_failure(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    place = checkout(tmp_path, "def test_lost(): pass\ndef test_run(): pass\n")
    (place / "tests" / "some").mkdir()
    (place / "tests" / "test_some.py").rename(place / "tests" / "some" / "test_some.py")
    (place / "tests" / "some" / "conftest.py").write_text(LOST)
    assert python_tests(place, *options) == ["failed", "passed"]


def test_tests_are_compiled_before_they_are_dealt_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With their assertions rewritten, as workers want them; none of them runs by that."""
    place = checkout(tmp_path, "from pathlib import Path\ndef test_x(): Path('ran').touch()\n")
    monkeypatch.setenv("BEOWIRE_ROOT", str(place))
    monkeypatch.setenv("BEOWIRE_BUILD", str(place / "build"))
    run.compile_tests(run.Chosen())
    made = {each.name.partition(".")[0] for each in place.rglob("__pycache__/*-pytest-*.pyc")}
    assert made >= {"conftest", "test_some"}
    assert not (place / "ran").exists()
    before = set(place.rglob("*.pyc"))
    assert [case.verdict for case in run.run_some(run.Chosen(), ["tests"])] == ["passed"]
    assert set(place.rglob("*.pyc")) == before
    assert (place / "ran").exists()


def test_a_choice_of_no_tests_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = checkout(tmp_path, "def not_a_test(): pass\n")
    monkeypatch.setenv("BEOWIRE_ROOT", str(place))
    monkeypatch.setenv("BEOWIRE_BUILD", str(place / "build"))
    cases = run.run_some(run.Chosen(), ["tests/test_some.py"])
    assert [(case.verdict, case.reason) for case in cases] == [("failed", "there are none")]


def test_times_are_told_by_folder(tmp_path: Path) -> None:
    log = tmp_path / "log.xml"
    log.write_text(
        "<testsuite><testcase classname='tests.tools.doctor.test_a' name='x' time='1.5'>"
        "<properties><property name='processor_s' value='0.25'/></properties></testcase>"
        "<testcase classname='tests.tools.doctor.test_b.TestC' name='y' time='2'/>"
        "<testcase classname='beowire' name='beowire:sim / z' time='9'/></testsuite>"
    )
    told = times.by_folder([log, tmp_path / "none.xml"])
    assert list(told.items()) == [
        ("suite sim", times.Time(9.0)),
        ("tests/tools/doctor", times.Time(3.5, 0.25)),
    ]
    assert times.table(told) == [
        "     9.0 s        -  suite sim",
        "     3.5 s      0.2  tests/tools/doctor",
    ]
    assert times.table({}, times.Time(61.0, 99.5)) == [
        "    61.0 s     99.5  in all, by the clock and of processors"
    ]


def test_processor_time_of_what_was_run_is_told() -> None:
    before = times.until_now()
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run([sys.executable, "-S", "-c", busy], check=True)
    after = times.until_now()
    assert after.processor_s - before.processor_s >= 0.3
    assert after.seconds > before.seconds > 0


def test_each_seeded_defect_has_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = places.root() / "tests" / "mutants" / "run.py"
    spec = importlib.util.spec_from_file_location("mutants_run", path)
    assert spec is not None
    assert spec.loader is not None
    run = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "mutants_run", run)
    spec.loader.exec_module(run)
    monkeypatch.setattr(run, "ROOT", tmp_path)
    for name in ("near.c", "far.c"):
        (tmp_path / name).write_text("old")
    rows = [
        run.Mutant(f"m{i}", "near.c" if i < 3 else "far.c", "", "old", "new") for i in range(20)
    ]
    turns = [run.sample(rows, 6, {"near.c"}, turn) for turn in range(6)]
    assert {row.name for turn in turns for row in turn} == {row.name for row in rows}
    assert all({"m0", "m1", "m2"} <= {row.name for row in turn} for turn in turns)
    assert all(len(turn) <= 3 + 3 for turn in turns)
    stale = [replace(rows[0], name="gone", file="gone.c"), replace(rows[9], name="moved", old="x")]
    turns = [run.sample(rows + stale, 6, {"near.c"}, turn) for turn in range(6)]
    assert all({"gone", "moved"} <= {row.name for row in turn} for turn in turns)
    rows = [replace(row, file="near.c", name=f"m{i}") for i, row in enumerate(rows * 4)]
    turns = [run.sample(rows, 6, {"near.c"}, turn) for turn in range(6)]
    assert {row.name for turn in turns for row in turn} == {row.name for row in rows}
    assert all(len(turn) <= run.CHANGED_MOST for turn in turns)


MANY = "import pytest\n\n" + "\n".join(
    f"@pytest.mark.long\ndef test_long_{number}():\n    pass\n" for number in range(3)
)


def test_parts_together_are_all_tests(tmp_path: Path) -> None:
    """Files are whole, and long tests are dealt out one by one; the first of a file comes first."""
    place = checkout(tmp_path, MANY)
    for name in "abc":
        (place / "tests" / f"test_{name}.py").write_text("def test_x(): pass\ndef test_y(): pass\n")
    (place / "tests" / "schedule.toml").write_text('first = ["tests/test_b.py"]\n[alone]\n')
    parts = []
    for number in (1, 2):
        command = [sys.executable, "-P", "-m", "pytest", "--collect-only", "-q", "tests"]
        command += ["-c", str(place / "tools" / "pyproject.toml"), "--rootdir", str(place)]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=True,
            cwd=place,
            env=run.Chosen(True, number, 2).environment(),
        )
        parts.append([line for line in done.stdout.splitlines() if "::" in line])
    files, long = ["tests/test_a.py", "tests/test_b.py", "tests/test_c.py"], "tests/test_some.py"
    assert parts == [
        [
            *(f"{files[0]}::test_{each}" for each in "xy"),
            *(f"{files[2]}::test_{each}" for each in "xy"),
            f"{long}::test_long_1",
        ],
        [
            *(f"{files[1]}::test_{each}" for each in "xy"),
            f"{long}::test_long_0",
            f"{long}::test_long_2",
        ],
    ]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "1/0", "a/b", "-1/2"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BeowireError):
        run.part(text)


def test_a_test_that_hangs_ends(tmp_path: Path) -> None:
    place = checkout(tmp_path, "import time\n\ndef test_hangs(): time.sleep(900)\n")
    conftest = place / "tests" / "conftest.py"
    conftest.write_text(conftest.read_text().replace("LIMIT_S = 900", "LIMIT_S = 1"))
    assert python_tests(place, "-p", "pytest_timeout") == ["failed"]
    assert "Timeout" in (place / "build" / "pytest.junit.xml").read_text()
