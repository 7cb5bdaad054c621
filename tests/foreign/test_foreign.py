# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the runner of foreign suites makes of their lists and output; and, where their sources are
named in BEOWIRE_TEST_FOREIGN (SUITE=DIR, separated by blanks), the suites themselves."""

import argparse
import fnmatch
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import network
import pytest
import record
import run
import sandbox
import table
import trial
from beowire import places
from beowire.errors import BeowireError
from beowire.lab.up import choose_mode
from beowire.run.cluster import of_hosts
from beowire.run.launch import Command
from case import Case, Verdict, by_status, no_errors
from command import Bench
from record import Outcome
from suites import building, fabtests, imb, mpi4py, mpich

HERE = Path(__file__).parent


def outcome(
    name: str, beowire: str = "passed", tcp: str = "passed", day: int = 1, control: str = ""
) -> Outcome:
    verdicts = {"beowire": beowire}
    if tcp:
        verdicts["tcp"] = tcp
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


@pytest.mark.parametrize(
    ("status", "text", "verdict"),
    [
        (0, "Ran 3 tests in 1.0s\n\nOK\n", "passed"),
        (0, "Ran 3 tests in 1.0s\n\nOK (skipped=2)\n", "passed"),
        (0, "Ran 1 test in 1.0s\n\nOK (expected failures=1, skipped=1)\n" * 2, "not run"),
        (0, "Ran 0 tests in 0.0s\n\nOK\n", "failed"),
        (1, "Ran 3 tests in 1.0s\n\nFAILED (errors=1)\n", "failed"),
    ],
)
def test_what_mpi4pys_tests_say(status: int, text: str, verdict: str) -> None:
    assert mpi4py.judge(status, text) == verdict


def test_mpi4pys_files_are_named_by_a_pattern_that_fits(tmp_path: Path) -> None:
    """Its runner takes patterns of a shell, and puts stars around what has none."""
    installed = "build/venv/lib/python3/site-packages/mpi4py/__init__.py"
    for file in ("test/main.py", "test/test_a.py", installed):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    (case,) = mpi4py.cases(tmp_path, tmp_path / "build", "mpicc", False)
    pattern = case.arguments[-1]
    assert "*" in pattern
    assert fnmatch.fnmatchcase("test_a.TestB.test_c", pattern)
    assert not fnmatch.fnmatchcase("test_a_more.TestB.test_c", pattern)


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


VERDICTS = {
    "passed": ["beowire passed"],
    "failed": ["beowire failed", "tcp passed", "tcp;ofi_rxm hung"],
    "not run": ["beowire not run", "tcp passed", "tcp;ofi_rxm hung"],
    "not launched": ["beowire not launched"],
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_tcp_is_asked_about_what_does_not_pass(
    verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdicts: dict[str, Verdict] = {"beowire": verdict, "tcp": "passed", record.CONTROL: "hung"}
    monkeypatch.setattr(trial, "_once", lambda _c, _l, _b, key, _s: (verdicts[key], "text"))
    case = Case("mpich", "a", [], by_status, directory=tmp_path)
    bench = Bench(of_hosts(["n1"]))
    made = trial.run(case, "openmpi", bench, 0, both=False)
    assert [f"{key} {value}" for key, value in made.verdicts.items()] == VERDICTS[verdict]
    assert ("beowire" in made.output) == (verdict in ("failed", "not launched"))
    assert len(trial.run(case, "openmpi", bench, 0, both=True).verdicts) >= 2


@pytest.mark.parametrize(("limit_s", "verdict"), [(0, "hung"), (9, "hung"), (1, "cut short")])
def test_what_is_ended_early_does_not_count_as_hung(
    limit_s: float, verdict: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case("mpich", "a", [], by_status, directory=tmp_path, limit_s=2)
    bench = Bench(of_hosts(["n1"]))
    monkeypatch.setattr(Bench, "cleared", lambda _: None)
    monkeypatch.setattr(Bench, "command", lambda *_: Command(["sleep", "600"], {}))
    made = trial.run(case, "", bench, limit_s, both=False)
    assert made.verdicts == {"beowire": verdict, "tcp": verdict}


def test_a_program_that_cannot_be_built_does_not_run(tmp_path: Path) -> None:
    case = Case("mpich", "a", [], by_status, directory=tmp_path, make=("sh", "-c", "exit 2"))
    made = trial.run(case, "openmpi", Bench(of_hosts(["n1"])), 0, both=False)
    assert made.verdicts == {"beowire": "not built"}


def test_jobs_run_in_a_lab_and_their_ranks_are_counted(tmp_path: Path) -> None:
    """One that passes; one whose second rank fails; and one that the launcher cannot start, as a
    node cannot be entered."""
    if choose_mode()[0] == "loopback":
        pytest.skip("namespaces are refused here")
    failing = ["sh", "-c", "test $OMPI_COMM_WORLD_RANK = 0"]
    with network.lab("raw", 0) as cluster:
        bench = Bench(cluster)

        def verdict(arguments: list[str]) -> Verdict:
            case = Case("mpich", "a", arguments, by_status, directory=tmp_path)
            return trial.run(case, "openmpi", bench, 0, both=False).verdicts["beowire"]

        assert verdict([str(places.example("pi")), "--precision", "1e-3"]) == "passed"
        assert verdict(failing) == "failed"
        assert cluster.lab is not None
        cluster.lab.enter_path(cluster.hosts[1]).write_text("exit 1\n")
        assert verdict(failing) == "not launched"


SERVER = """
import socket, time
time.sleep(1.5)
held = socket.create_server(("127.0.0.1", 9228))
held.accept()
raise SystemExit(int("{status}"))
"""
CLIENT = "import socket; socket.create_connection(('127.0.0.1', 9228))"


@pytest.mark.parametrize("status", [0, 3])
def test_a_client_starts_when_its_server_listens(status: int, tmp_path: Path) -> None:
    """On a loopback interface of their own, where nobody else has the port."""
    server = shlex.join([sys.executable, "-c", SERVER.format(status=status)])
    script = 'ip link set lo up && exec sh "$@"'
    words = [str(HERE / "pair.sh"), server, sys.executable, "-c", CLIENT]
    command = ["unshare", "--net", "sh", "-c", script, "sh", *words]
    ended, text = sandbox.run(command, 240, tmp_path, {})
    assert (ended, text) == (status, "")


def test_what_has_run_is_not_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is it if it ran at a commit that is to be kept. What failed to be launched or was cut
    short is."""
    ran: list[str] = []
    unsettled: list[Verdict] = ["not launched"]

    def fake(case: Case, *_: object) -> trial.Trial:
        ran.append(case.name)
        return trial.Trial({"beowire": unsettled[0] if case.name == "c" else "passed"})

    monkeypatch.setattr(trial, "run", fake)
    monkeypatch.setattr(run, "_commit", lambda: "c2")
    results = tmp_path / "results.jsonl"
    record.append(results, [outcome("a", day=1), outcome("b", day=2)])
    suite = run.Suite(
        "mpich", "", "Open MPI 4.1", [Case("mpich", each, [], by_status) for each in "abcd"]
    )
    benches: Queue[Bench] = Queue()
    for _ in range(2):
        benches.put(Bench(of_hosts(["n1"])))

    def again(*keep: str) -> list[str]:
        ran.clear()
        options = argparse.Namespace(
            keep=list(keep), again=False, both=False, limit=0, match=["[a-c]"], shuffle=None
        )
        assert run.run_suite(suite, "raw", benches, options, results) == (not ran)
        return sorted(ran)

    assert again("c1") == ["c"]
    ran.clear()
    assert again() == ["a", "c"]
    unsettled[0] = "cut short"
    assert again() == ["c"]
    assert again() == ["c"]


def test_a_shuffled_suite_goes_on_in_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a run that was interrupted are a sample, and the next run takes the others."""
    ran: list[str] = []

    def fake(case: Case, *_: object) -> trial.Trial:
        ran.append(case.name)
        return trial.Trial({"beowire": "passed"})

    monkeypatch.setattr(trial, "run", fake)
    monkeypatch.setattr(run, "_commit", lambda: "c1")
    names = "abcdefghijklmnopqrst"
    suite = run.Suite(
        "mpich", "", "Open MPI 4.1", [Case("mpich", each, [], by_status) for each in names]
    )
    benches: Queue[Bench] = Queue()
    benches.put(Bench(of_hosts(["n1"])))

    def order(seed: int | None, already: list[str]) -> str:
        ran.clear()
        results = tmp_path / f"{seed}-{len(already)}.jsonl"
        record.append(results, [outcome(each) for each in already])
        options = argparse.Namespace(
            keep=[], again=False, both=False, limit=0, match=None, shuffle=seed
        )
        assert run.run_suite(suite, "raw", benches, options, results)
        return "".join(ran)

    assert order(None, []) == names
    shuffled = order(7, [])
    assert sorted(shuffled) == list(names) != list(shuffled)
    assert order(7, list(shuffled[:6])) == shuffled[6:]
    assert order(8, []) not in (shuffled, names)


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
        outcome("rma/e 2", beowire="not launched", tcp=""),
        outcome("rma/f 2", tcp=""),
        outcome("rma/g 2", beowire="cut short", tcp="hung"),
    ]
    size = {("mpich", "Open MPI 4.1"): 9}
    why = [
        table.Why(["rma/b"], "of MPICH alone", "MPICH"),
        table.Why(["rma/x", "rma/b"], "known why", "Open MPI 4", "raw"),
    ]
    text = table.table(outcomes, why, size)
    counted = (
        "7 of 9 | 2 passed, 2 failed, 1 hung, 1 not launched, 1 cut short"
        " | 3 passed, 1 failed, 1 hung"
    )
    assert f"| Open MPI 4.1 | raw frames | {counted} | 2026-01-02 | c1 (6), c2 (1) |" in text
    assert "| Open MPI 4.1 | raw frames, 1 % lost to each node | 0 of 9 | | | | |" in text
    different, _, both = text.partition("Passed over TCP")[2].partition("Passed over neither")
    head = "- mpich, Open MPI 4.1, raw, c1:"
    assert f"{head} `rma/b 2` hung (tcp;ofi_rxm: hung): known why\n" in different
    assert f"{head} `rma/d 2` failed: not explained\n" in different
    assert f"{head} `rma/c 2` failed: not explained\n" in both
    assert f"{head} `rma/g 2` cut short (TCP: hung): it was not given its time\n" in both
    for name in ("rma/a", "rma/e", "rma/f"):
        assert name not in different + both


def test_the_table_replaces_the_one_before(tmp_path: Path) -> None:
    """But for what it says of runs of which there are no records, or of fewer tests."""
    document = tmp_path / "page.md"
    before = table.table([outcome(each, beowire="hung", tcp="failed") for each in "abc"], [], {})
    document.write_text(f"one\n{table.BEGIN}\nold\n{before}\n{table.END}\ntwo\n")

    def after(names: str) -> str:
        table.write(document, [outcome(each, beowire="failed", day=2) for each in names], {})
        text = document.read_text()
        assert "old" not in text
        assert text.startswith("one\n")
        assert text.endswith("\ntwo\n")
        return text

    row, told = "| raw frames | 3 | 3 hung |", "c1: `a`, `b`, `c` hung"
    for names, kept in (("", True), ("d", True), ("de", True), ("def", False)):
        text = after(names)
        assert (row in text, told in text) == (kept, kept)
        assert (f"| raw frames | {len(names)} | {len(names)} failed |" in text) == bool(names)


def test_several_old_rows_of_a_group_stay() -> None:
    old = table.table([outcome(each, beowire="hung", tcp="failed") for each in "abc"], [], {})
    old = table.table([outcome(each, beowire="failed", day=2) for each in "de"], [], {}, old)
    for _ in range(2):
        old = table.table([], [], {}, old)
        assert old.count("| raw frames | 3 | 3 hung |") == 1
        assert old.count("| raw frames | 2 | 2 failed |") == 1
        assert old.count("c1: `a`, `b`, `c` hung") == 1


def test_what_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    marker = f"{os.getpid()}.25"
    status, text = sandbox.run(
        ["sh", "-c", f"echo begun; setsid sleep 3{marker} & sleep 3{marker}"], 10.0, tmp_path, {}
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
