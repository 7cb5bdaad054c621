# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire model measure`: every N in each round, kept as it ends, refused where processors are
too few; a run that fails is named and tried again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import beowire_cli
import pytest
from beowire import row_file
from beowire.errors import BeowireError
from beowire.lab import quota, up
from beowire.model import basis, cli, law, measure, results, runs
from beowire.model.measure import Plan, RunError
from beowire.model.results import Results, Setting
from beowire.topology import topology
from beowire_cli import COMMAND, beowire

PLAN = Plan(["program", "-n", "{ranks}", "--on", "{N}"], [1, 2, 4], 3, 2, 0)
SETTING = Setting(PLAN.command, 2, "wall clock", "here", "2 ranks on 2 cores", True)


def told(nodes: str = "{N}", where: str = "") -> list[str]:
    """A program that says how long so many nodes take, and notes that it ran."""
    times = {each: 10 / law.speedup(0.1, 0.002, float(each)) for each in range(1, 13)}
    note = f"open({where!r}, 'a').write('{nodes} ');" if where else ""
    return [sys.executable, "-c", f"{note}print('took', {times}[int('{nodes}')], 's')"]


def quiet(text: str) -> None:
    del text


# --- the plan ---


def test_every_round_has_every_n_once_in_another_order() -> None:
    plan = replace(PLAN, nodes=list(range(1, 9)), repeats=6)
    runs = list(plan.runs())
    assert len(set(runs)) == len(runs) == 48
    rounds = [[nodes for nodes, repeat in runs if repeat == each] for each in range(1, 7)]
    assert all(sorted(each) == plan.nodes for each in rounds)
    assert len({tuple(each) for each in rounds}) > 1
    assert runs == list(plan.runs())


def test_placeholders_are_filled_in() -> None:
    assert PLAN.words(4) == ["program", "-n", "8", "--on", "4"]
    assert replace(PLAN, command=["sh", "-c", "x={N}{N}; {other}"]).words(3)[2] == "x=33; {other}"


def test_numbers_of_nodes() -> None:
    assert measure.parse_nodes("4,1-2,8-12/2") == [1, 2, 4, 8, 10, 12]
    for wrong in ("", "0-3", "a", "3-"):
        with pytest.raises(BeowireError, match="--nodes"):
            measure.parse_nodes(wrong)


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        (replace(PLAN, command=["true"]), "does not depend"),
        (replace(PLAN, clock="took ("), "--time"),
        (replace(PLAN, clock="took"), "0 groups"),
    ],
)
def test_a_plan_that_cannot_work_is_refused(plan: Plan, what: str) -> None:
    with pytest.raises(BeowireError, match=what):
        measure.check(plan)


# --- a run ---


def test_the_time_is_read_from_the_output() -> None:
    plan = replace(PLAN, command=told(), clock=r"took ([\d.]+)", unit="ms")
    assert measure.run_once(plan, 1) == pytest.approx(10.02e-3)


def test_the_wall_clock_is_the_time_otherwise() -> None:
    plan = replace(PLAN, command=["sleep", "0.0{N}"])
    assert measure.run_once(plan, 5) > 0.05


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("echo no link >&2; exit 3", "exit status 3: no link"),
        ("echo said; exit 1", "exit status 1: said"),
        ("kill -9 $$", "signal 9: it said nothing"),
        ("echo nothing", "no time in its output"),
        ("echo took 1.2.3", "no number"),
        ("echo took 0", "the time in its output is 0"),
        ("sleep 60", "longer than 0.3 s"),
    ],
)
def test_a_run_that_gives_no_time_says_why(script: str, what: str) -> None:
    plan = replace(PLAN, command=["sh", "-c", script], clock=r"took ([\d.]+)", limit_s=0.3)
    if "sleep" not in script:
        plan = replace(plan, limit_s=0)
    with pytest.raises(RunError, match=what):
        measure.run_once(plan, 1)


def test_what_a_run_leaves_behind_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"sleep 300 & echo $! >{file}; exit 0"
    measure.run_once(replace(PLAN, command=["sh", "-c", script]), 1)
    state = Path(f"/proc/{file.read_text().strip()}/stat")
    wait_until(lambda: not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z")


def wait_until(true: "object") -> None:
    for _ in range(600):
        if true():  # type: ignore[operator]
            return
        time.sleep(0.05)
    pytest.fail("it does not come about")


# --- traffic ---


def endpoint(path: Path, **counts: int) -> None:
    link = {"tx_payload": counts.pop("sent"), "rx_payload": counts.pop("got")}
    fixed = {"node": path.stem, "pid": 1, "retransmits": 0, "drops": {}}
    path.write_text(json.dumps({**fixed, "links": {"packet": link}, **counts}))


def test_traffic_is_that_of_the_busiest_rank(tmp_path: Path) -> None:
    assert measure.traffic(tmp_path) is None
    endpoint(tmp_path / "a.json", sent=500, got=100, tx_messages=9, rx_messages=2, rx_pulls=1)
    endpoint(tmp_path / "b.json", sent=100, got=400, tx_messages=2, rx_messages=8, tx_pulls=3)
    (tmp_path / "job.json").write_text("{}")
    # A long message is announced, asked for, and comes: three one after another.
    assert measure.traffic(tmp_path) == results.Traffic(messages=16, bytes=600)


@pytest.mark.parametrize(
    ("at_once", "messages", "size"), [(0, 30, 900), (4, 25, 800), (8, 20, 700)]
)
def test_what_comes_while_as_much_goes_counts_once(
    tmp_path: Path, at_once: int, messages: int, size: int
) -> None:
    endpoint(
        tmp_path / "a.json",
        sent=700,
        got=200,
        tx_messages=16,
        rx_messages=8,
        tx_pulls=1,
        rx_pulls=2,
        duplex_messages=at_once,
        duplex_payload=25 * at_once,
    )
    assert measure.traffic(tmp_path) == results.Traffic(messages, size)


def test_traffic_is_kept_with_the_run(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    told = {"node": "n", "pid": 1, "retransmits": 0, "drops": {}, "links": {}, "tx_messages": 7}
    script = f"echo '{json.dumps(told)}' >{{stats}}/n.json; echo took {{N}}"
    plan = replace(PLAN, command=["sh", "-c", script], clock=r"took ([\d.]+)", repeats=1)
    measure.sweep(plan, Results(path, SETTING), quiet)
    assert set(Results(path, SETTING).traffic) == set(plan.runs())
    assert {run.messages for run in runs.read([path]).runs} == {7}


# --- the file ---


def test_runs_are_kept_and_not_run_again(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    plan = replace(PLAN, command=told(where=str(ran)), clock=r"took ([\d.]+)", repeats=2)
    path = tmp_path / "r.jsonl"
    assert measure.sweep(plan, Results(path, SETTING), quiet) == 0
    assert sorted(ran.read_text().split()) == sorted(["1", "2", "4"] * 2)
    again = Results(path, SETTING)
    assert set(again.times) == set(plan.runs())
    assert measure.sweep(plan, again, quiet) == 0
    assert measure.sweep(replace(plan, repeats=3), again, quiet) == 0
    assert len(ran.read_text().split()) == 9
    read = runs.read([path])
    assert [run.nodes for run in read.runs] == [1] * 3 + [2] * 3 + [4] * 3
    assert read.basis == ["2 ranks on 2 cores"]


def test_a_failed_run_is_named_and_tried_again(tmp_path: Path) -> None:
    path, bad = tmp_path / "r.jsonl", tmp_path / "bad"
    bad.touch()
    script = f"[ {{N}} = 2 ] && [ -e {bad} ] && echo broken >&2 && exit 1; echo took {{N}}"
    plan = replace(PLAN, command=["sh", "-c", script], clock=r"took ([\d.]+)", repeats=1)
    said: list[str] = []
    assert measure.sweep(plan, Results(path, SETTING), said.append) == 1
    assert any("N = 2, repeat 1 failed: exit status 1: broken" in line for line in said)
    read = runs.read([path])
    assert [run.nodes for run in read.runs] == [1, 4]
    assert read.left_out == 1
    assert "broken" in read.remarks[0]
    bad.unlink()
    assert measure.sweep(plan, Results(path, SETTING), quiet) == 0
    assert runs.read([path]).left_out == 0


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    kept = Results(path, SETTING)
    kept.add(1, 1, 2.0)
    kept.add(2, 1, 1.0)
    path.write_bytes(path.read_bytes()[:-5])
    assert set(Results(path, SETTING).times) == {(1, 1)}


def test_runs_of_another_command_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, SETTING)
    with pytest.raises(BeowireError, match="ranks_per_node 2, not 1"):
        Results(path, replace(SETTING, ranks_per_node=1))
    path.write_text("notes\n")
    with pytest.raises(BeowireError, match="its first line is none"):
        Results(path, SETTING)
    assert path.read_text() == "notes\n"


# --- what may be fitted ---


def test_more_ranks_than_cores_are_refused() -> None:
    cores = len(os.sched_getaffinity(0))
    assert basis.find(cores, 1, None, 0, False).fits
    found = basis.find(cores + 1, 1, None, 0, False)
    assert not found.fits
    assert f"{cores + 1} ranks on the {cores} cores" in found.text
    assert "--lab" in found.fix
    assert not basis.find(cores, 2, None, 0, False).fits


def test_waits_and_machines_of_their_own_stand_for_nodes() -> None:
    assert basis.find(1000, 1, None, 0, True).fits
    assert basis.find(1000, 4, None, 4, False).fits
    assert not basis.find(1000, 5, None, 4, False).fits
    with pytest.raises(BeowireError, match="both say"):
        basis.find(2, 1, "lab", 4, False)


@pytest.fixture
def limited(lab_name: str) -> str:
    """A lab of three nodes, the third with a smaller limit."""
    if beowire_cli.NO_NAMESPACES:
        pytest.skip(f"labs: {beowire_cli.NO_NAMESPACES}")
    try:
        quota.find()
    except BeowireError as error:
        pytest.skip(error.what)
    plain = topology.plain(3, 1500)
    limits = (0.1, 0.1, 0.05)
    nodes = tuple(replace(node, cpus=cpus) for node, cpus in zip(plain.nodes, limits, strict=True))
    up.up_topology(lab_name, replace(plain, nodes=nodes))
    return lab_name


def test_equal_limits_of_a_lab_stand_for_nodes(limited: str) -> None:
    found = basis.find(2, 1, limited, 0, False)
    assert found.fits
    assert "0.1 processors for each of 2 nodes (equal limits by control groups)" in found.text
    unequal = basis.find(3, 1, limited, 0, False)
    assert not unequal.fits
    assert "unequal limits of processor time: 0.1, 0.1, 0.05" in unequal.text
    with pytest.raises(BeowireError, match="has 3 nodes, not 4"):
        basis.find(4, 1, limited, 0, False)


def test_limits_beyond_the_machine_are_none(limited: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cores = os.cpu_count() or 1
    each = {f"node{number}": {"cpus": cores / 2 + 0.5} for number in (1, 2, 3)}
    monkeypatch.setattr(quota, "told", lambda _: each)
    found = basis.find(2, 1, limited, 0, False)
    assert not found.fits
    assert "exceed the machine" in found.fix


def test_what_was_measured_unfit_is_not_fitted(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, replace(SETTING, fits=False)).add(1, 1, 2.0)
    with pytest.raises(BeowireError, match="compete for processors"):
        runs.read([path])


# --- the command ---


def test_it_measures_and_fits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fit.json"
    cli.measure_(
        told(),
        "1-12",
        repeats=1,
        results=tmp_path / "r.jsonl",
        waits=True,
        clock=r"took ([\d.]+)",
        json_file=file,
    )
    said = capsys.readouterr()
    assert "processors: calibrated waits stand for computing" in said.out
    whole = json.loads(file.read_text())
    assert whole["fit"]["a"]["value"] == pytest.approx(0.1, abs=1e-6)
    assert whole["fit"]["n"]["value"] == pytest.approx(0.002, abs=1e-6)


def test_the_command_refuses_and_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    done = beowire("model", "measure", "--nodes", "1-999", "--results", str(file), "--", *told())
    assert done.status == 1
    assert "would say nothing of speedup: 999 ranks on" in done.errors
    assert not file.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_what_runs_is_ended_with_the_command(tmp_path: Path, number: signal.Signals) -> None:
    pid, file = tmp_path / "pid", tmp_path / "r.jsonl"
    script = f"[ {{N}} = 1 ] || echo $$ >{pid}; [ {{N}} = 1 ] || exec sleep 300"
    words = ["--nodes", "1-2", "--waits", "--repeats", "1", "--results", str(file)]
    child = subprocess.Popen(
        [*COMMAND, "model", "measure", *words, "--", "sh", "-c", script],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: pid.exists() and pid.read_text().strip())
    child.send_signal(number)
    _, errors = child.communicate()
    assert child.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert "the same command goes on from there" in errors
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()
    setting = json.loads(file.read_text().splitlines()[0])
    assert setting["basis"] == "calibrated waits stand for computing (by --waits)"
    assert setting["format"] == row_file.FORMAT
