# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the runner of foreign suites makes of their lists and output; and, where their sources are
named in BEOWIRE_TEST_FOREIGN (SUITE=DIR, separated by blanks), the suites themselves."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import record
import run
import sandbox
import table
from beowire.errors import BeowireError
from case import no_errors
from record import Outcome
from suites import building, fabtests, imb, mpich

HERE = Path(__file__).parent


def outcome(
    name: str, beowire: str = "passed", tcp: str = "passed", day: int = 1, control: str = ""
) -> Outcome:
    verdicts = {"beowire": beowire, "tcp": tcp}
    if control:
        verdicts[record.CONTROL] = control
    date = f"2026-01-0{day}"
    return Outcome(f"c{day}", date, "mpich", "Open MPI 4.1", "raw", name, verdicts)  # type: ignore[arg-type]


def test_lists_of_mpich_are_read(tmp_path: Path) -> None:
    line = "lock_dt 2 arg=-n=300 env=A=b=c timeLimit=600 resultTest=TestStatus mem=1.5"
    case = mpich.parse(line, "rma", tmp_path)
    assert case is not None
    assert case.arguments == [str(tmp_path / "rma" / "lock_dt"), "-n=300"]
    assert (case.ranks, case.limit_s, case.environment) == (2, 600.0, {"A": "b=c"})
    assert case.memory_bytes == 3 << 29
    assert case.judge(1, "") == "passed"
    assert case.judge(0, "No Errors") == "failed"
    for left_out in ("# a 2", "folder", "a 2 xfail=x", "a 2 strict=false"):
        assert mpich.parse(left_out, "rma", tmp_path) is None


@pytest.mark.parametrize(
    ("status", "text", "verdict"),
    [
        (0, " No Errors\n", "passed"),
        (1, " No Errors\n", "failed"),
        (0, "Found 3 errors\n", "failed"),
        (0, "", "failed"),
        (0, "Test Skipped\n", "not run"),
    ],
)
def test_what_mpichs_programs_say(status: int, text: str, verdict: str) -> None:
    assert no_errors(status, text) == verdict


def test_what_intels_benchmarks_say() -> None:
    good = "#bytes defects\n 0 0.00\n# All processes entering MPI_Finalize\n"
    assert imb.judge(0, good) == "passed"
    assert imb.judge(0, "#bytes\n") == "failed"
    assert imb.judge(0, good + "1: Error code 16: wrong result\n") == "failed"


def test_lists_of_fabtests_are_read() -> None:
    script = 'a_tests=(\n\t"fi_a -x 1"\n\t"fi_b"\n)\nb_tests=(\n\t"fi_c"\n)\n'
    assert fabtests.listed(script, "a_tests") == ["fi_a -x 1", "fi_b"]
    assert fabtests.listed(script, "c_tests") == []


def test_a_record_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    record.append(file, [outcome("a")])
    with open(file, "a") as stream:
        stream.write('{"commit": "c1", "da')
    assert [each.name for each in record.read(file)] == ["a"]
    record.append(file, [outcome("b")])
    assert [each.name for each in record.read(file)] == ["a", "b"]


def test_runs_that_write_at_once_cut_no_record(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    long = outcome("x" * 100_000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: record.append(file, [long]), range(60)))
    assert len(record.read(file)) == 60


def test_the_limit_over_beowire_follows_the_time_over_tcp() -> None:
    assert run.limit_after(180, 1) == 80
    assert run.limit_after(180, 100) == 180


def test_sizes_are_kept_by_suite_and_version(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    for version, tests in (("1", 5), ("2", 6), ("1", 7)):
        record.set_size(file, "mpich", version, tests)
    assert record.sizes(file) == {("mpich", "1"): 7, ("mpich", "2"): 6}


def test_damage_within_a_record_is_named(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_text("nonsense\n")
    record.append(file, [outcome("a")])
    with pytest.raises(BeowireError, match="line 1"):
        record.read(file)


def test_the_table_counts_the_newest_and_names_differences() -> None:
    outcomes = [
        outcome("rma/a 2", beowire="failed"),
        outcome("rma/a 2", day=2),
        outcome("rma/b 2", beowire="hung", control="hung"),
        outcome("rma/c 2", beowire="failed", tcp="failed"),
        outcome("rma/d 2", beowire="failed"),
    ]
    size = {("mpich", "Open MPI 4.1"): 9}
    text = table.table(outcomes, {"rma/b": "known why"}, size)
    counted = "4 of 9 | 1 passed, 2 failed, 1 hung | 3 passed, 1 failed | 2026-01-02 | c2 |"
    assert f"| Open MPI 4.1 | raw frames | {counted}" in text
    assert "`rma/b 2`: Open MPI 4.1, raw: hung (tcp;ofi_rxm: hung); known why" in text
    assert "`rma/d 2`: Open MPI 4.1, raw: failed; not explained" in text
    assert "| Open MPI 4.1 | raw frames, 1 % lost to each node | 0 of 9 | | | | |" in text
    assert "rma/c" not in text.partition("Passed over TCP")[2]
    assert "rma/a" not in text.partition("Passed over TCP")[2]


def test_the_table_replaces_the_one_before(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(f"one\n{table.BEGIN}\nold\n{table.END}\ntwo\n")
    table.write(document, [outcome("a")], {})
    text = document.read_text()
    assert "old" not in text
    assert text.startswith("one\n")
    assert text.endswith("\ntwo\n")


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    marker = f"{os.getpid()}.25"
    status, text = sandbox.run(
        ["sh", "-c", f"echo begun; setsid sleep 3{marker} & sleep 3{marker}"], 2.0, tmp_path, {}
    )
    assert status is None
    assert text == "begun\n"
    assert time.monotonic() - began < 1000
    living = subprocess.run(["pgrep", "-f", f"sleep 3{marker}"], check=False, capture_output=True)
    assert living.stdout == b""


def test_a_suite_that_does_not_build_is_named(tmp_path: Path) -> None:
    with pytest.raises(BeowireError, match="status 3"):
        building.build(["sh", "-c", "exit 3"], tmp_path, tmp_path / "log")
    with pytest.raises(BeowireError, match="is not MPICH's"):
        mpich.cases(tmp_path, tmp_path / "build", "mpicc", False)


def test_missing_sources_are_counted_apart(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "run.py"), "--build", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "No suite is named" in ended.stderr


@pytest.mark.long
def test_the_suites(tmp_path: Path) -> None:
    sources = os.environ.get("BEOWIRE_TEST_FOREIGN", "").split()
    if not sources:
        pytest.skip("no sources of foreign suites: BEOWIRE_TEST_FOREIGN is not set")
    command = [sys.executable, str(HERE / "run.py"), "--build", str(tmp_path)]
    command += [word for each in sources for word in ("--source", each)]
    assert subprocess.run(command, check=False).returncode == 0
