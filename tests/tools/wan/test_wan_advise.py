# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire wan`: the law found again from its own times, the verdict and its interval, the file of
a profile, bad input; and a small program profiled, advised about and checked in labs."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import beowire_cli
import pytest
import typer
from beowire import places
from beowire.errors import BeowireError
from beowire.lab import quota, up
from beowire.run.cluster import Cluster
from beowire.wan import advice, calibrate, check, cli, fit, plan, probe
from beowire.wan.cost import Cost, Crossing
from beowire.wan.grid import CLEAR, Line
from beowire.wan.profile import Book, Case, Plan, Run, Setting
from beowire.wan.results import Verdict
from beowire_cli import beowire
from scipy import special

Capture = pytest.CaptureFixture[str]

SETTING = Setting(
    program=("solve", "--size", "9"),
    digest="c0ffee",
    nodes=4,
    ranks_per_node=1,
    cpus=0.4,
    processors=2,
    machine="here",
    mpi="openmpi",
    library="Open MPI 4.1",
)
COMPUTE_S = 2.0
ONE_S = 4.0
FRAMES = 4000.0
COST = Cost(40, (Crossing(4e6, 60e3), Crossing(2e6)), FRAMES, stall_s=0.05, stall_trips=1.5)
LINES = tuple(plan.lines("50ms", "10M", "100M", "0.2%"))


def run(case: Case, time_s: float, number: int = 1, valid: bool | None = True) -> Run:
    verdict = Verdict("beowire-link", valid, [] if valid else ["late"])
    return Run(number, case, time_s, int(FRAMES * 1500), time_s + 1, verdict)


def book(path: Path, noise: float = 0.0, lines: tuple[Line, ...] = LINES) -> Book:
    """A profile as the law has it; every other time is longer by a share, the rest is shorter."""
    made = Book(path, "profile", SETTING, Plan(3, ("tcp",), lines))
    for step, (number, case) in enumerate(made.plan.cases()):
        exact_s = ONE_S if case.sites == "one" else COMPUTE_S + COST.time_s(case.line)
        made.runs.append(run(case, exact_s * (1 + noise * (-1) ** step), number))
    return made


def described(text: str) -> advice.Link:
    return advice.parse_link(text)


def test_the_law_is_waiting_and_bytes_and_losses() -> None:
    line = Line(20, 10, 0.001)
    assert COST.waiting_s(line) == pytest.approx(40 * 0.02)
    # 60 kB under way in 40 ms are 12 Mbit/s; the rate is less.
    assert COST.crossing_s(line) == pytest.approx(6e6 * 8 / 10e6)
    assert COST.crossing_s(Line(20, 100)) == pytest.approx(4e6 * 0.04 / 60e3 + 2e6 * 8 / 100e6)
    assert COST.loss_s(line) == pytest.approx(4 * (0.05 + 1.5 * 0.04))
    assert COST.time_s(CLEAR) == 0


@pytest.mark.parametrize("line", check.LINES, ids=str)
def test_lines_that_were_not_measured_are_predicted(line: Line, tmp_path: Path) -> None:
    law = fit.of_book(book(tmp_path / "p"), "tcp")
    assert law.time_s(line) == pytest.approx(COMPUTE_S + COST.time_s(line), rel=0.05)


def test_losses_are_predicted_between_those_measured(tmp_path: Path) -> None:
    law = fit.of_book(book(tmp_path / "p"), "tcp")
    line = Line(15, 100, 0.001)
    assert law.cost.loss_s(line) == pytest.approx(COST.loss_s(line), rel=0.05)


def test_the_lines_of_a_check_are_none_of_a_profile() -> None:
    assert len(check.LINES) >= 10
    assert not set(check.LINES) & set(LINES)


def test_the_interval_holds_the_truth_and_grows_with_the_noise(tmp_path: Path) -> None:
    quiet = fit.of_book(book(tmp_path / "p", 0.01), "tcp")
    loud = fit.of_book(book(tmp_path / "p", 0.08), "tcp")
    for line in check.LINES:
        truth_s = COMPUTE_S + COST.time_s(line)
        little, much = quiet.within(line), loud.within(line)
        assert little.low < truth_s < little.high
        assert much.high / much.low > little.high / little.low > 1
    more = quiet.within(check.LINES[0], 0.2)
    assert more.high > quiet.within(check.LINES[0]).high


def test_the_interval_of_a_run_is_no_narrower_than_the_runs_scatter(tmp_path: Path) -> None:
    """Student's factor times the spread of runs, and what the line is unlike those measured."""
    law = fit.of_book(book(tmp_path / "p", 0.05), "tcp")
    least = float(special.stdtrit(law.freedom, 0.975)) * law.spread
    for line in (*LINES, *check.LINES):
        told = law.within(line)
        assert math.log(told.high / told.value) > least
        assert math.log(told.value / told.low) > least


@pytest.mark.parametrize(
    ("link", "answer"),
    [
        ("delay=1ms", "yes"),
        ("delay=5ms,rate=100M", "yes"),
        ("delay=50ms,rate=100M", "no"),
        ("delay=0,rate=10M", "no"),
        ("delay=2ms,rate=26M", "unknown"),  # what one site takes, less a few per cent
        ("delay=2ms,rate=23M", "unknown"),  # and a few more
        ("delay=300ms,rate=100M", "no"),  # worse than all measured, which does not pay either
    ],
)
def test_the_second_site_pays_or_not(link: str, answer: str, tmp_path: Path) -> None:
    (found,) = advice.advise(book(tmp_path / "p", 0.02), described(link), 1.0)
    assert found.answer == answer, found
    assert found.speedup.low < found.speedup.value < found.speedup.high
    assert found.one_site_s == pytest.approx(ONE_S, rel=0.03)
    parts = found.computing_s + found.waiting_s + found.crossing_s + found.losses_s
    assert parts == pytest.approx(found.both.value)


def test_a_line_beyond_all_that_were_measured_is_no_yes(tmp_path: Path) -> None:
    """A program that does not wait for the line at all would pay over any that was measured."""
    made = book(tmp_path / "p")
    made.runs = [
        replace(each, time_s=ONE_S if each.case.sites == "one" else COMPUTE_S) for each in made.runs
    ]
    (near,) = advice.advise(made, described("delay=50ms,rate=10M"), 1.0)
    assert near.answer == "yes"
    assert near.pays_to_end
    for link in ("delay=80ms,rate=10M", "delay=50ms,rate=5M", "delay=5ms,rate=10M,loss=1%"):
        far = described(link)
        (found,) = advice.advise(made, far, 1.0)
        assert (found.answer, found.beyond) == ("unknown", True)
        (step, *_) = advice.next_steps(made, far, [found])
        assert f"--transport tcp --line {link}" in step
        assert "-- solve --size 9" in step


def test_more_may_be_asked_of_the_second_site(tmp_path: Path) -> None:
    made, link = book(tmp_path / "p", 0.02), described("delay=1ms")
    assert advice.advise(made, link, 1.2)[0].answer == "yes"
    assert advice.advise(made, link, 3.0)[0].answer == "no"


def test_the_longest_delay_that_pays(tmp_path: Path) -> None:
    (found,) = advice.advise(book(tmp_path / "p"), described("delay=25ms,rate=100M"), 1.0)
    assert found.pays_to_ms is not None
    at = Line(found.pays_to_ms, 100)
    assert COMPUTE_S + COST.time_s(at) == pytest.approx(ONE_S, rel=0.05)
    (found,) = advice.advise(book(tmp_path / "p"), described("delay=25ms,rate=10M"), 1.0)
    assert found.pays_to_ms is None


def test_a_probed_line_is_as_uncertain_as_its_rounds(tmp_path: Path) -> None:
    made = book(tmp_path / "p", 0.02)
    line = Line(5, 100)
    sure = advice.Link(line, line, line, "measured")
    unsure = advice.Link(line, Line(1, 200), Line(20, 50), "measured")
    assert advice.advise(made, sure, 1.0)[0].answer == "yes"
    (found,) = advice.advise(made, unsure, 1.0)
    assert found.answer == "unknown"
    assert any("probes" in step for step in advice.next_steps(made, unsure, [found]))


def test_both_sites_are_compared_with_the_fastest_transport_on_one(tmp_path: Path) -> None:
    made = book(tmp_path / "p")
    slower = [
        replace(each, case=replace(each.case, transport="beowire"), time_s=1.5 * each.time_s)
        for each in made.runs
    ]
    made.runs += slower
    made.plan = replace(made.plan, transports=("tcp", "beowire"))
    tcp, over = advice.advise(made, described("delay=4ms,rate=100M"), 1.0)
    assert (tcp.answer, over.answer) == ("yes", "no")
    assert over.one_site_s == tcp.one_site_s == ONE_S
    assert advice.overall([tcp, over]) == "yes"
    told = advice.as_json(made, described("delay=4ms"), [tcp, over], 1.0)
    assert json.loads(json.dumps(told, allow_nan=False))["answer"] == "yes"
    assert told["equal_quotas_stand_for_computing"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "what is ''"),
        ("delay", "what is 'delay'"),
        ("speed=3", "what is 'speed=3'"),
        ("rate=100M", "no delay"),
        ("delay=25", "'25' is no time"),
        ("delay=-1ms", "'-1ms' is no time"),
        ("delay=1ms,delay=2ms", "two values of delay"),
        ("delay=1ms,rate=0", "rate of 0"),
        ("delay=1ms,rate=fast", "'fast' is no rate"),
        ("delay=1ms,loss=120%", "'120%' is no share"),
        ("delay=1ms,loss=60%", "more than half"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused(text: str, why: str) -> None:
    with pytest.raises(BeowireError, match=why):
        described(text)


@pytest.mark.parametrize(
    "ranges",
    [
        ("0", "10M", "100M", "0"),
        ("50ms", "100M", "10M", "0"),
        ("50ms", "0", "10M", "0"),
        ("50ms", "10M", "100M", "40%"),
    ],
)
def test_ranges_that_make_no_sense_are_refused(ranges: tuple[str, str, str, str]) -> None:
    with pytest.raises(BeowireError):
        plan.lines(*ranges)


def test_losses_need_a_profile_with_losses(tmp_path: Path) -> None:
    lines = tuple(plan.lines("50ms", "10M", "100M", "0"))
    made = book(tmp_path / "p", lines=lines)
    with pytest.raises(BeowireError, match="measured without losses"):
        plan.check_losses(made, Line(1, 10, 0.001))
    assert not any(each.loss for each in check.lines(made))
    assert any(each.loss for each in check.lines(book(tmp_path / "p")))


def test_a_profile_is_found_again_and_gone_on_with(tmp_path: Path) -> None:
    made = book(tmp_path / "p")
    made.plan = replace(made.plan, transports=("tcp", "beowire"))
    made.write()
    again = Book.load(tmp_path / "p", "profile")
    assert (again.runs, again.setting, again.plan) == (made.runs, made.setting, made.plan)
    assert {case.transport for _, case in again.missing()} == {"beowire"}
    with pytest.raises(BeowireError, match=r"not complete: 17 runs"):
        again.check_complete()
    more = Book.begin(tmp_path / "p", "profile", SETTING, Plan(1, ("tcp",), (Line(7, 70),)))
    assert (1, Case("tcp", "both", Line(7, 70))) in more.missing()
    assert more.plan.rounds == 3
    with pytest.raises(BeowireError, match=r"cpus 0\.4, not 0\.2"):
        Book.begin(tmp_path / "p", "profile", replace(SETTING, cpus=0.2), made.plan)
    assert list(tmp_path.iterdir()) == [tmp_path / "p"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": 7}, "format 7"),
        ({"beowire": "9.9"}, "Beowire 9.9"),
        ({"kind": "check"}, "it is a check"),
        ({"runs": [{}]}, "damaged"),
        ({"setting": {}}, "damaged"),
    ],
)
def test_other_profiles_are_refused(change: dict[str, object], why: str, tmp_path: Path) -> None:
    path = tmp_path / "p"
    book(path).write()
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(BeowireError, match=why):
        Book.load(path, "profile")


def test_what_is_no_profile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p"
    for text in ("notes", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(BeowireError, match="none of `beowire wan`"):
            Book.load(path, "profile")
    done = beowire("wan", "advise", str(tmp_path / "none"), "--link", "delay=1ms")
    assert done.status == 1
    assert "Make it: ./beowire wan profile" in done.errors


@pytest.mark.parametrize(
    ("link", "status", "answer", "text"),
    [
        ("delay=1ms", 0, "yes", "Yes: the nodes"),
        ("delay=50ms", 10, "no", "No: the nodes"),
        ("delay=2ms,rate=26M", 11, "unknown", "It cannot be told"),
    ],
)
def test_the_verdict_is_told_by_the_exit_status(
    link: str, status: int, answer: str, text: str, tmp_path: Path, capsys: Capture
) -> None:
    path, told = tmp_path / "p", tmp_path / "told.json"
    book(path, 0.02).write()
    with pytest.raises(typer.Exit) as ended:
        cli.advise(path, link=link, json_file=told)
    assert ended.value.exit_code == status
    words = " ".join(capsys.readouterr().out.split())
    assert text in words
    assert "Equal limits of processor time stand for computing" in words
    assert json.loads(told.read_text())["answer"] == answer


def test_the_command_ends_with_the_verdict(tmp_path: Path) -> None:
    path = tmp_path / "p"
    book(path, 0.02).write()
    done = beowire("wan", "advise", str(path), "--link", "delay=50ms")
    assert (done.status, done.errors) == (10, "")
    assert done.output.startswith("No: the nodes")


def test_what_is_asked_must_be_clear_and_the_profiles(tmp_path: Path) -> None:
    path = tmp_path / "p"
    book(path, 0.02).write()
    with pytest.raises(BeowireError, match="Which line") as refused:
        cli.advise(path, link="delay=1ms", hosts="a,b")
    assert "Give one of" in refused.value.fix
    with pytest.raises(BeowireError, match="was measured otherwise: program"):
        cli.advise(path, ["/bin/true"], link="delay=1ms")
    made = book(path)
    made.runs.pop()
    made.write()
    with pytest.raises(BeowireError, match="is not complete: 1 runs"):
        cli.advise(path, link="delay=1ms")


def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p"
    book(path).write()
    with pytest.raises(BeowireError, match="here did not do as asked"):
        cli.advise(path, hosts="here,there", ssh="false")
    with pytest.raises(BeowireError, match="A line has two ends"):
        cli.advise(path, hosts="here", ssh="false")


def test_a_host_that_keeps_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE_S", 0.1)
    silent = Cluster(["here", "there"], ["sh", "-c", "sleep 60"])
    with pytest.raises(BeowireError, match="here did not answer within"):
        probe.probe(silent, 1)


def test_real_hosts_tell_the_computing_and_the_lab_the_line(tmp_path: Path) -> None:
    made = book(tmp_path / "p")
    made.plan = replace(made.plan, hosts=("a", "b"))
    for number, case in made.missing():
        made.add(run(case, 1.0 if case.sites == "one" else 0.6, number, None))
    made = Book.load(tmp_path / "p", "profile")
    made.check_complete()
    (found,) = advice.advise(made, described("delay=5ms,rate=100M"), 1.0)
    assert (found.one_site_s, found.computing_s) == (1.0, 0.6)
    assert found.both.value == pytest.approx(0.6 + COST.time_s(Line(5, 100)), rel=0.05)
    with pytest.raises(BeowireError, match="of the hosts a, b"):
        Book.begin(made.path, "profile", SETTING, replace(made.plan, hosts=("a", "c")))


@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="Open MPI is not installed")
def test_a_program_is_measured_on_hosts(
    lab_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes of a lab on loopback addresses, reached as hosts are; the lab's runs are there."""
    monkeypatch.setenv("BEOWIRE_LAB_MODE", "loopback")
    monkeypatch.setenv("BEOWIRE_LAB_DIR", str(up.up(lab_name, 2, 9000).directory))
    program = [str(places.example("pi")), "--precision", "1e-5"]
    setting = calibrate.setting(program, 2, 1, 0.1, "openmpi")
    lab_runs = book(tmp_path / "p").runs
    plan = Plan(3, ("tcp",), LINES, hosts=("node1", "node2"))
    made = Book(tmp_path / "p", "profile", setting, plan, lab_runs)
    with pytest.raises(BeowireError, match="lacks 6 runs on node1, node2"):
        calibrate.fill(made, 60, print)
    agent = str(places.package_file("run/agent.sh"))
    hosts = calibrate.hosts("node[1-2]", agent, "127.0.0.0/8", 2)
    calibrate.fill(made, 60, print, hosts)
    made.check_complete()
    assert all(each.time_s > 0 for each in made.runs if each.case.place == "hosts")
    with pytest.raises(BeowireError, match="the lab has 4 nodes"):
        calibrate.hosts("node[1-2]", agent, "", 4)


def test_predictions_are_compared_with_lines_not_seen(tmp_path: Path) -> None:
    profile = book(tmp_path / "p")
    plan = Plan(1, ("tcp",), (Line(15, 50), Line(20, 20), LINES[0]), ends=False)
    found = Book(tmp_path / "c", "check", SETTING, plan)
    for factor, (number, case) in zip((0.8, 1.0, 1.0), plan.cases(), strict=True):
        found.runs.append(run(case, factor * (COMPUTE_S + COST.time_s(case.line)), number, False))
    first, second = check.compare(profile, found)  # the third was fitted to
    assert (first.line, second.line) == plan.lines[:2]
    assert first.error == pytest.approx(0.25, abs=0.05)
    assert abs(second.error) < 0.05
    assert first.invalid
    assert check.median_error([first, second]) == pytest.approx(0.125, abs=0.03)


def missing() -> str:
    """Why no program can be profiled here; empty when one can."""
    if beowire_cli.NO_NAMESPACES:
        return f"labs: {beowire_cli.NO_NAMESPACES}"
    if shutil.which("mpirun.openmpi") is None:
        return "Open MPI is not installed"
    try:
        quota.find()
    except BeowireError as error:
        return error.what
    return ""


in_a_lab = pytest.mark.skipif(bool(missing()), reason=missing())


@in_a_lab
def test_a_program_is_profiled_advised_about_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path, told = tmp_path / "p", tmp_path / "told.json"
    program = [str(places.example("pi")), "--precision", "1e-7", "--slice", "100000"]
    monkeypatch.setattr(plan, "lines", lambda *_: [Line(2, 20), Line(20, 0), Line(20, 20)])
    cli.profile(program, path, transport="tcp", nodes=2, rounds=1)
    made = Book.load(path, "profile")
    made.check_complete()
    times = {(each.case.sites, each.case.line): each for each in made.runs}
    exchanges = 50  # of 10**7 intervals, each rank sums 100000 between two
    assert times["both", Line(20, 0)].time_s > exchanges * 0.02
    assert times["both", CLEAR].time_s < times["both", Line(20, 0)].time_s
    assert times["both", Line(20, 0)].verdict.valid is not None
    assert times["both", CLEAR].crossed_bytes > 2 * exchanges * 8
    cli.profile(program, path, transport="tcp", nodes=2, line=["delay=5ms"])
    assert Book.load(path, "profile").plan == replace(
        made.plan, lines=(*made.plan.lines, Line(5, 0))
    )
    text = path.read_text()
    monkeypatch.setattr(up, "up_topology", None)  # nothing is measured again
    cli.profile(program, path, transport="tcp", nodes=2, rounds=1)
    assert path.read_text() == text
    with pytest.raises(typer.Exit) as ended:
        cli.advise(path, program, link="delay=20ms", json_file=told)
    assert ended.value.exit_code == 10
    (advice,) = json.loads(told.read_text())["transports"]
    # Few lines do not tell a wait for a message from one for the window that its bytes need.
    assert advice["waiting_s"] + advice["crossing_s"] > exchanges * 0.02 / 2
    monkeypatch.undo()
    with pytest.raises(typer.Exit):
        cli.check_(path, line=["delay=10ms"], json_file=told)
    (compared,) = json.loads(told.read_text())["compared"]
    assert compared["line"]["delay_ms"] == 10
    assert compared["measured_s"] > exchanges * 0.01
    assert "median error" in capsys.readouterr().out
    with pytest.raises(BeowireError, match="fitted to all of these"):
        cli.check_(path, tmp_path / "other", line=["delay=20ms"])
