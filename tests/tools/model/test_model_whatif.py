# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire model what-if`: communication split by LogGP, each part changed by its own factor."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from beowire.errors import BeowireError
from beowire.model import fit, law, loggp, whatif, whatif_cli
from beowire.model.loggp import LogGP
from beowire.model.runs import Run, Runs
from beowire.model.whatif import Change
from hypothesis import given
from hypothesis import strategies as some

NETWORK = LogGP(latency=30e-6, overhead=2e-6, byte=8e-9)
NODES = [1, 2, 4, 8, 12, 16, 24]
A, OPTIMUM = 0.1, 14.0
N_NOW = law.parameter(A, OPTIMUM)


def fitted(noise: float = 0.0) -> fit.Fit:
    at = np.array(NODES * 2, dtype=float)
    jitter = 1 + noise * np.random.default_rng(1).standard_normal(at.size)
    return fit.fit(at, 30 * jitter / law.speedup(A, N_NOW, at))


def report(path: Path, **times_us: float) -> Path:
    """A ping-pong report with these one-way times, by size; 200,000 short messages a second."""
    figures = [
        {"mode": "latency", "size_bytes": int(size[1:]), "unit": "us", "beowire": {"p50": time}}
        for size, time in times_us.items()
    ]
    figures.append({"mode": "rate", "size_bytes": 8, "unit": "messages/s", "beowire": {"p50": 2e5}})
    path.write_text(json.dumps({"figures": figures}))
    return path


# --- the network ---


def test_a_message_divides_into_latency_overhead_and_bytes() -> None:
    assert NETWORK.message(1000) == pytest.approx(42e-6)
    assert NETWORK.shares(1000) == pytest.approx(
        {"latency": 30 / 42, "overhead": 4 / 42, "bandwidth": 8 / 42}
    )
    assert NETWORK.rate_bits == pytest.approx(1e9)


def test_a_network_is_found_in_a_ping_pong(tmp_path: Path) -> None:
    found = loggp.from_pingpong(report(tmp_path / "r", s8=20.0, s1008=28.0), "beowire")
    assert found.byte == pytest.approx(8e-9)
    assert found.overhead == pytest.approx(5e-6)  # 200,000 messages a second
    assert found.message(8) == pytest.approx(20e-6)
    assert found.message(1008) == pytest.approx(28e-6)


def test_overhead_is_no_more_than_the_whole(tmp_path: Path) -> None:
    found = loggp.from_pingpong(report(tmp_path / "r", s8=2.0, s1008=3.0), "beowire")
    assert found.latency == pytest.approx(0)
    assert found.overhead == pytest.approx(0.996e-6)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{}", "is no report of"),
        ("no", "is no report of"),
        ('{"figures": []}', "latencies of 0 sizes"),
    ],
)
def test_what_is_no_ping_pong_is_refused(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "r"
    file.write_text(text)
    with pytest.raises(BeowireError, match=what):
        loggp.from_pingpong(file, "beowire")
    with pytest.raises(BeowireError, match="cannot be read"):
        loggp.from_pingpong(tmp_path / "absent", "beowire")
    with pytest.raises(BeowireError, match="do not take longer"):
        loggp.from_pingpong(report(tmp_path / "r", s8=3.0, s1008=2.0), "beowire")


def test_a_network_may_be_given() -> None:
    assert loggp.parse("30us,2us,1G").message(1000) == pytest.approx(NETWORK.message(1000))
    bounded = loggp.parse("30us,2us,1G,500M")
    assert bounded.message(1000) == pytest.approx(34e-6 + 16e-6)
    assert "1 / O 0.5 Gbit/s" in str(bounded)
    for wrong in ("30us", "30,2us,1G", "30us,2us,0G", "30us,2us,fast", "30us,2us,1G,1G,1G"):
        with pytest.raises(BeowireError, match="--network"):
            loggp.parse(wrong)


# --- the change ---


def test_factors_and_values_say_the_same() -> None:
    by_factor = whatif.parse("x0.5", "x10", "x2", None)
    by_value = whatif.parse("15us", "10G", "2", NETWORK)
    assert by_factor == Change(0.5, 10, 2)
    assert by_value.latency == pytest.approx(0.5)
    assert by_value.rate == pytest.approx(10)
    assert by_value.cpu == 2


@pytest.mark.parametrize(
    ("latency", "rate", "cpu", "what"),
    [
        ("x0", "", "", "--latency x0"),
        ("", "xinf", "", "--rate xinf"),
        ("", "", "fast", "--cpu fast"),
        ("20us", "", "", "needs to know what it is now"),
        ("", "10G", "", "needs to know what it is now"),
    ],
)
def test_a_change_that_is_none_is_refused(latency: str, rate: str, cpu: str, what: str) -> None:
    with pytest.raises(BeowireError, match=what):
        whatif.parse(latency, rate, cpu, None)


def test_a_latency_of_nothing_cannot_be_changed() -> None:
    with pytest.raises(BeowireError, match="it is 0 now"):
        whatif.parse("20us", "", "", LogGP(0, 2e-6, 8e-9))


def test_each_part_follows_its_own_factor() -> None:
    shares = NETWORK.shares(1000)
    assert Change(latency=0.5).of_communication(shares) == pytest.approx((15 + 4 + 8) / 42)
    assert Change(rate=4).of_communication(shares) == pytest.approx((30 + 4 + 2) / 42)
    assert Change(cpu=2).of_communication(shares) == pytest.approx((30 + 2 + 8) / 42)


def test_a_faster_network_brings_no_more_than_processors_manage() -> None:
    slow = replace(NETWORK, byte_overhead=2e-9)
    shares = slow.shares(1000)
    assert Change(rate=2).of_communication(shares, slow) == pytest.approx((34 + 4) / 42)
    assert Change(rate=100).of_communication(shares, slow) == pytest.approx((34 + 2) / 42)
    assert Change(rate=100, cpu=2).of_communication(shares, slow) == pytest.approx((32 + 1) / 42)
    assert Change(cpu=0.1).of_communication(shares, slow) == pytest.approx((30 + 40 + 20) / 42)
    time, _ = whatif.changed_time(run(2, 0.142, 1000, 1e6), Change(rate=100), slow)
    assert time == pytest.approx(0.142 - 0.006)


def test_faster_processors_raise_n_and_lower_the_optimum() -> None:
    shares = NETWORK.shares(1000)
    found = whatif.changed(fitted(), Change(cpu=2), shares)
    assert found.a == pytest.approx(A)
    assert found.n == pytest.approx(N_NOW * 2 * 40 / 42)
    assert found.optimum == pytest.approx(OPTIMUM * (2 * 40 / 42) ** (-1 / 3))
    assert found.best < fitted().best
    assert found.alone == pytest.approx(15)


def test_a_faster_network_raises_the_optimum() -> None:
    found = whatif.changed(fitted(), Change(latency=0.5, rate=2), NETWORK.shares(1000))
    assert found.n == pytest.approx(N_NOW * (15 + 4 + 4) / 42)
    assert found.optimum > OPTIMUM
    assert found.alone == pytest.approx(30)


@given(some.floats(0.05, 20), some.floats(0.05, 20), some.floats(0.05, 20))
def test_intervals_move_with_the_change(latency: float, rate: float, cpu: float) -> None:
    now, shares = fitted(0.02), NETWORK.shares(5000)
    change = Change(latency, rate, cpu)
    found = whatif.changed(now, change, shares)
    by = change.of_communication(shares) * cpu  # what n becomes
    assert found.n_interval.low == pytest.approx(now.n_interval.low * by)
    assert found.n_interval.high == pytest.approx(now.n_interval.high * by)
    stretched = by ** (-1 / 3)
    assert found.optimum_interval.low == pytest.approx(now.optimum_interval.low * stretched)
    assert found.a_interval.low == pytest.approx(now.a_interval.low)
    assert found.best_interval.low < found.best < found.best_interval.high


def test_without_a_point_none_is_predicted() -> None:
    at = np.arange(1, 7, dtype=float)
    jitter = 1 + 0.02 * np.random.default_rng(1).standard_normal(6)
    now = fit.fit(at, jitter / law.speedup(0.2, 1e-7, at))
    found = whatif.changed(now, Change(latency=0.1), {"latency": 1.0})
    assert not found.clear
    assert found.optimum_interval.high == math.inf
    assert found.optimum_interval.low > now.optimum_interval.low


def test_a_split_that_is_not_known_gives_the_extremes() -> None:
    change = Change(latency=0.5, cpu=4)
    found = whatif.predict(fitted(), change, None, 0)
    assert [each.name for each in found] == ["all is overhead", "all is bandwidth"]
    assert [each.communication for each in found] == [0.25, 1]
    (known,) = whatif.predict(fitted(), change, NETWORK, 1000)
    assert found[0].communication < known.communication < found[1].communication


# --- counted traffic ---


def run(nodes: int, time: float, messages: float, size: float) -> Run:
    return Run(nodes, time, None, None, "here", messages, size)


def test_a_counted_run_changes_by_what_its_traffic_takes() -> None:
    # 1000 messages: 30 ms of latency, 4 of overhead; a million bytes: 8 ms; the rest computes.
    one = run(2, 0.142, 1000, 1e6)
    for change, after in (
        (Change(latency=0.5), 0.127),
        (Change(rate=0.5), 0.150),
        (Change(cpu=2), 0.050 + 0.032 + 0.008),
    ):
        time, fits = whatif.changed_time(one, change, NETWORK)
        assert time == pytest.approx(after)
        assert fits


def test_more_traffic_than_time_is_under_way_at_once() -> None:
    time, fits = whatif.changed_time(run(2, 0.021, 1000, 1e6), Change(latency=0.5), NETWORK)
    assert not fits
    assert time == pytest.approx(0.021 * 27 / 42)  # shares as before, of the time that there is


def test_counted_traffic_is_found_where_the_law_has_none() -> None:
    """A program whose nodes exchange the same at any N: all of it is in c1."""
    runs = [run(n, 10 / n + 1 + 0.8, 0, 1e8) for n in (1, 2, 3, 4, 6, 8)]
    told = whatif.predict_counted(Runs(runs), Change(rate=4), NETWORK, 0)
    assert told.fit is not None
    assert told.fit.a == pytest.approx(1.2 / 11.2, abs=1e-6)
    assert told.remarks == ()
    late = [run(n, 10 / n + 1, 1e6 * n, 0) for n in (1, 2, 3, 4, 6, 8)]
    told = whatif.predict_counted(Runs(late), Change(latency=2), NETWORK, 0)
    assert "At N = 1, 2, 3, 4, 6, 8 the messages" in told.remarks[0]


def test_a_prediction_is_compared_with_what_was_measured_later() -> None:
    runs = Runs([run(n, 10 / n + 1.8, 0, 1e8) for n in (1, 2, 3, 4, 6, 8)])
    told = whatif.predict_counted(runs, Change(rate=4), NETWORK, 0)
    later = [run(n, (10 / n + 1.2) * off, 0, 0) for n, off in ((2, 1), (2, 2), (2, 0.5), (4, 0.8))]
    off = whatif.errors(told, Runs(later))
    assert off == pytest.approx({2: 0, 4: 0.25}, abs=1e-6)


def test_a_program_that_only_gets_slower_is_predicted_by_its_traffic() -> None:
    runs = Runs([run(n, 1.0 + n, 0, n * 1e8) for n in (1, 2, 3, 4, 6, 8)])
    now = whatif.unchanged(runs, 0)
    assert now.fit is None
    assert "do not fall with N" in now.remarks[0]
    told = whatif.predict_counted(runs, Change(rate=2), NETWORK, 0)
    assert told.time(4) == pytest.approx(5 - 3.2 + 1.6)
    assert told.time(5) is None
    assert whatif.errors(told, Runs([run(5, 1, 0, 0)])) == {}


# --- the command ---


def test_the_command_tells_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = tmp_path / "runs.csv"
    rows = [f"{n},{30 / law.speedup(A, N_NOW, float(n))!r}" for n in NODES]
    runs.write_text("\n".join(["N,time", *rows]) + "\n")
    told, drawn = tmp_path / "told.json", tmp_path / "drawn.svg"
    whatif_cli.run(
        [runs],
        rate="x8",
        message="1k",
        network="30us,2us,1G",
        json_file=told,
        plot_file=drawn,
    )
    said = capsys.readouterr().out
    assert "latency 71 %, overhead 10 %, bandwidth 19 %" in said
    (prediction,) = json.loads(told.read_text())["predictions"]
    assert prediction["communication_factor"] == pytest.approx((30 + 4 + 1) / 42)
    assert b"<svg" in drawn.read_bytes()
    counts = ["messages,bytes", *("1000,1000000" for _ in NODES)]
    lines = runs.read_text().splitlines()
    both = [f"{one},{other}" for one, other in zip(lines, counts, strict=True)]
    runs.write_text("\n".join(both))
    whatif_cli.run([runs], rate="x8", network="30us,2us,1G", json_file=told, against=runs)
    assert "predicted above measured" in capsys.readouterr().out
    (prediction,) = json.loads(told.read_text())["predictions"]
    assert prediction["split"] == "by counted traffic"
    with pytest.raises(BeowireError, match="Nothing is changed"):
        whatif_cli.run([runs])
