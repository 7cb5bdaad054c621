# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire bench wan`: the grid, the prediction, the file of results and the report, without
running; and one small point in a lab."""

import json
import math
import os
import shutil
from dataclasses import replace
from pathlib import Path

import beowire_cli
import pytest
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import quota, up
from beowire.wan import grid, model, plot, report, run, sites
from beowire.wan.grid import CLEAR, Grid, Line, Point, Problem, Sweep
from beowire.wan.model import Model
from beowire.wan.results import Measured, Results, Setting, Verdict
from beowire_cli import beowire

SETTING = Setting(nodes=4, cpus=0.4, processors=2, machine="here", library="Open MPI 4.1")
MAIN = Problem(600, 60)
FAR = Line(25, 100)
MODEL = Model(
    flops_per_s=1e9,
    messages={"tcp": 10.0, "beowire": 15.0},
    window_bytes={"tcp": 1e5, "beowire": math.inf},
)
GRID = Grid("small", (Sweep("delay", (MAIN,), (Line(0, 100), FAR)),), rounds=2)


def measured(point: Point, time_s: float, number: int = 1, **changed: object) -> Measured:
    valid = Verdict("beowire-link", True)
    whole = Measured(number, point, time_s, 0.01, "c0ffee", 1000, 0, time_s + 1, valid)
    return replace(whole, **changed)  # type: ignore[arg-type]


def test_every_case_runs_once_a_round_and_transports_take_turns() -> None:
    runs = list(GRID.runs())
    assert len(runs) == len(set(runs)) == 2 * 3 * 2
    assert [point.transport for _, point in runs] == ["tcp", "beowire"] * 6
    assert [number for number, _ in runs] == [1] * 6 + [2] * 6
    assert runs[0][1].line == CLEAR


@pytest.mark.parametrize("name", list(grid.GRIDS))
def test_every_problem_of_a_grid_has_its_base(name: str) -> None:
    found = grid.find(name)
    cases = found.cases()
    assert len(cases) == len(set(cases))
    assert {problem for problem, _ in cases} == {
        problem for problem, line in cases if line == CLEAR
    }
    assert {sweep.name for sweep in found.sweeps} == {"delay", "rate", "size", "block"}


def test_the_papers_grid_has_the_papers_points() -> None:
    cases = grid.find("paper").cases()
    lines = {line for _, line in cases}
    assert {Line(delay, 100) for delay in (0, 25, 50, 200)} <= lines
    assert {Line(0, rate) for rate in (10, 60, 100)} <= lines
    assert {(Problem(6400, block), FAR) for block in (10, 100)} <= set(cases)
    blocks = [problem.block for problem, line in cases if problem.size == 6400 and line == FAR]
    assert min(blocks) < 6400 / 60
    assert max(blocks) > 6400 / 6


def test_an_unknown_grid_is_refused() -> None:
    with pytest.raises(BeowireError, match="--grid huge"):
        grid.find("huge")


def test_the_prediction_is_computing_and_waiting_and_bytes() -> None:
    crossing = 2 * 8 * 600 * 660 / 2
    computing = MODEL.solve_s(Point("tcp", MAIN, CLEAR))
    assert computing == pytest.approx((2 / 3 * 600**3 + 3 / 2 * 600**2) / 1e9)
    slow = MODEL.solve_s(Point("tcp", MAIN, Line(0, 10)))
    assert slow - computing == pytest.approx(crossing * 8 / 10e6)
    # Over Beowire, whose window is no limit: ten panels of 15 messages, and the bytes.
    far = MODEL.solve_s(Point("beowire", MAIN, FAR))
    assert far - computing == pytest.approx(10 * 15 * 0.025 + crossing * 8 / 100e6)
    # Over TCP a round trip carries a window, which takes longer than the rate does.
    far = MODEL.solve_s(Point("tcp", MAIN, FAR))
    assert far - computing == pytest.approx(10 * 10 * 0.025 + crossing * 0.05 / 1e5)


def test_the_model_is_found_again_from_its_own_predictions() -> None:
    found = model.fit({point: MODEL.solve_s(point) for point in model.calibration()})
    assert found.flops_per_s == pytest.approx(MODEL.flops_per_s)
    assert found.messages == pytest.approx(MODEL.messages)
    assert found.window_bytes["tcp"] == pytest.approx(1e5)
    assert found.window_bytes["beowire"] > 1e6


@pytest.mark.parametrize(("name", "minutes"), [("quick", 6), ("ready", 90)])
def test_a_grid_takes_what_its_name_promises(name: str, minutes: float) -> None:
    """By the model of a machine with two processors, on which it was measured."""
    two = Model(0.9e9, {"tcp": 13.9, "beowire": 7.8}, {"tcp": 107e3, "beowire": 45e3})
    assert two.grid_s(grid.find(name)) < minutes * 60


def test_what_is_done_is_not_predicted_again() -> None:
    runs = list(GRID.runs())
    whole = MODEL.grid_s(GRID)
    assert whole == pytest.approx(sum(MODEL.run_s(point) for _, point in runs))
    assert whole - MODEL.grid_s(GRID, set(runs[:3])) == pytest.approx(
        sum(MODEL.run_s(point) for _, point in runs[:3])
    )


def test_results_are_found_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    late = Verdict("beowire-link", False, ["late"])
    first = measured(Point("tcp", MAIN, FAR), 3.0)
    second = measured(Point("beowire", MAIN, FAR), 2.0, verdict=late, attempts=3)
    kept = Results(path, SETTING)
    kept.add(first)
    kept.add(second)
    again = Results(path, SETTING)
    assert again.measured == [first, second]
    assert again.done() == {(1, first.point), (1, second.point)}
    assert again.find(2, first.point) is None


def test_a_line_that_was_cut_off_is_run_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    kept = Results(path, SETTING)
    kept.add(measured(Point("tcp", MAIN, FAR), 3.0))
    whole = path.read_bytes()
    kept.add(measured(Point("beowire", MAIN, FAR), 2.0))
    path.write_bytes(path.read_bytes()[:-9])
    again = Results(path, SETTING)
    assert again.done() == {(1, Point("tcp", MAIN, FAR))}
    assert path.read_bytes() == whole
    again.add(measured(Point("beowire", MAIN, FAR), 2.0))
    assert len(Results(path, SETTING).measured) == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("notes\n", "its first line is none"),
        ('{"format": 1}\n', "its first line is none"),
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "notes"
    path.write_text(text)
    with pytest.raises(BeowireError, match=why):
        Results(path, SETTING)
    assert path.read_text() == text


def test_results_of_another_setting_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path, SETTING)
    with pytest.raises(BeowireError, match=r"cpus 0\.4, not 0\.2"):
        Results(path, replace(SETTING, cpus=0.2))


def filled(path: Path) -> Results:
    """Two rounds; TCP halves at 25 ms, Beowire falls to 0.8; one emulator was late."""
    kept = Results(path, SETTING)
    times = {"tcp": {CLEAR: 2.0, Line(0, 100): 2.5, FAR: 4.0}}
    times["beowire"] = {CLEAR: 2.0, Line(0, 100): 2.0, FAR: 2.5}
    for number, point in GRID.runs():
        late = number == 2 and point == Point("tcp", MAIN, FAR)
        verdict = Verdict("beowire-link", False, ["too late"]) if late else None
        changed = {"verdict": verdict} if verdict else {}
        kept.add(measured(point, times[point.transport][point.line], number, **changed))
    return kept


def test_performance_is_relative_to_the_same_transport_without_emulation(tmp_path: Path) -> None:
    evaluated = report.evaluate(GRID, filled(tmp_path / "r"))
    found = {(row.point.transport, row.point.line): row for row in evaluated.rows}
    tcp, over = found["tcp", FAR], found["beowire", FAR]
    assert tcp.relative is not None
    assert over.relative is not None
    assert (tcp.relative.value, over.relative.value) == pytest.approx((0.5, 0.8))
    assert (tcp.paper, found["tcp", Line(0, 100)].paper) == (0.75, None)
    assert tcp.invalid == ("too late",)
    assert over.invalid == ()
    assert evaluated.over_tcp[f"{MAIN}, {FAR}"].value == pytest.approx(2.5 / 4.0)


def test_a_half_done_grid_is_reported(tmp_path: Path) -> None:
    kept = Results(tmp_path / "r", SETTING)
    kept.add(measured(Point("tcp", MAIN, FAR), 4.0))
    (row,) = report.evaluate(GRID, kept).rows
    assert row.relative is None
    assert row.time_s == 4.0


def test_saturation_and_flatness_are_told(tmp_path: Path) -> None:
    blocks = tuple(Problem(600, block) for block in (5, 20, 60, 100))
    rates = tuple(Line(0, rate) for rate in (10, 40, 60, 100))
    grid = Grid("g", (Sweep("rate", (MAIN,), rates), Sweep("block", blocks, (FAR,))))
    time_of = {10: 10.0, 40: 4.0, 60: 2.05, 100: 2.0}
    kept = Results(tmp_path / "r", SETTING)
    for number, point in grid.runs():
        time_s = time_of.get(int(point.line.rate_mbit), 1.0) if not point.line.delay_ms else 3.0
        if point.problem.block in (5, 100) and point.line == FAR:
            time_s = 30.0 if point.problem.block == 5 else 4.5
        kept.add(measured(point, time_s, number))
    notes = "\n".join(report.evaluate(grid, kept).notes)
    assert "at 100 Mbit/s from 60 Mbit/s on" in notes
    assert "differ by a factor of 1.50" in notes  # N/60 to N/6: 20, 60, 100; not 5


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_the_report_is_drawn(tmp_path: Path, kind: str) -> None:
    file = tmp_path / f"wan.{kind}"
    plot.draw(report.evaluate(GRID, filled(tmp_path / "r")), file)
    assert file.read_bytes()[:4] in (b"\x89PNG", b"<?xm")


def test_a_drawing_of_no_known_kind_is_refused_at_once(tmp_path: Path) -> None:
    done = beowire("bench", "wan", "--plot", str(tmp_path / "wan.txt"))
    assert done.status == 1
    assert "names no kind of drawing" in done.errors


def test_what_is_refused_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    done = beowire("bench", "wan", "--nodes", "3", "--results", str(file))
    assert done.status == 1
    assert "Give an even number" in done.errors
    done = beowire("bench", "wan", "--report", "--results", str(file))
    assert done.status == 1
    assert not file.exists()


def test_nodes_are_chosen_at_both_sites() -> None:
    found = sites.topology(0.25)
    assert sites.chosen(found, 4) == ["node1", "node2", "node5", "node6"]
    assert {node.cpus for node in found.nodes} == {0.25}
    for nodes in (0, 3, 10):
        with pytest.raises(BeowireError, match="even number"):
            sites.chosen(found, nodes)


@pytest.mark.parametrize(("nodes", "processors", "cpus"), [(4, 2, 0.4), (8, 2, 0.2), (4, 64, 1.0)])
def test_nodes_share_what_the_emulator_leaves(nodes: int, processors: int, cpus: float) -> None:
    assert sites.default_cpus(nodes, processors) == cpus


def missing() -> str:
    """Why no point can be run here; empty when one can."""
    if beowire_cli.NO_NAMESPACES:
        return f"labs: {beowire_cli.NO_NAMESPACES}"
    if shutil.which("mpirun.openmpi") is None:
        return "Open MPI is not installed"
    try:
        places.example("linpack")
        quota.find()
    except BeowireError as error:
        return error.what
    return ""


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_point_is_run_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from beowire.wan import bench_cli

    small, near = Problem(96, 24), Line(5, 50)
    tiny = Grid("tiny", (Sweep("delay", (small,), (near,)),))
    monkeypatch.setitem(grid.GRIDS, "tiny", tiny)
    monkeypatch.setattr(model, "SHORT", small)
    monkeypatch.setattr(model, "LONG", Problem(1200, 12))
    monkeypatch.setattr(model, "LINE", near)
    file, told = tmp_path / "r.jsonl", tmp_path / "told.json"
    setting = run.setting(2, sites.default_cpus(2, os.cpu_count() or 1))
    before = Results(file, setting)
    seeded = [point for point in model.calibration() if point.problem == model.LONG]
    for point in seeded:  # these are not run
        before.add(measured(point, 1.0 if point.line == CLEAR else 2.0, 0))
    bench_cli.run_(name="tiny", results=file, nodes=2, json_file=told)
    lines = [json.loads(line) for line in file.read_text().splitlines()][len(seeded) :]
    points = [(line["round"], line["point"]["transport"]) for line in lines[1:]]
    assert points.count((1, "tcp")) == points.count((1, "beowire")) == 2
    assert points.count((0, "tcp")) == points.count((0, "beowire")) == 2
    assert len({line["checksum"] for line in lines[1:]}) == 1
    for line in lines[1:]:
        far = line["point"]["line"]["delay_ms"] == 5
        assert line["verdict"]["made_by"] == ("beowire-link" if far else "plain")
        assert (line["verdict"]["valid"] is None) == (not far)
        # Every block's broadcast waits for the delay at least once.
        assert not far or line["time_s"] > small.panels * 5e-3 / 2
        assert line["payload_bytes"] > 96 * 96 * 8 / 4
    report = json.loads(told.read_text())
    assert report["setting"]["nodes"] == 2
    assert {row["point"]["transport"] for row in report["rows"]} == {"tcp", "beowire"}
    text = file.read_text()
    monkeypatch.setattr(up, "set_links", None)  # nothing is measured again
    bench_cli.run_(name="tiny", results=file, nodes=2)
    assert file.read_text() == text
    assert "sweep over delay" in capsys.readouterr().out
