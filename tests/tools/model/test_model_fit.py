# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire model fit` [A10]: the truth comes out again, intervals hold it, and bounds stand where
data can tell no more."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from beowire.errors import BeowireError
from beowire.model import fit, forms, law, report, runs, trials
from beowire.model.fit import Interval
from beowire_cli import beowire
from hypothesis import given
from hypothesis import strategies as some

FAR = [1, 2, 4, 8, 12, 16, 24]
NEAR = [1, 2, 3, 4, 5, 6]


def times(
    a: float, optimum: float, nodes: list[int], noise: float = 0, seed: int = 1
) -> list[float]:
    """Of a program that takes 30 s on one node."""
    n = law.parameter(a, optimum)
    jitter = 1 + noise * np.random.default_rng(seed).standard_normal(len(nodes))
    return [
        30 / law.speedup(a, n, float(each)) * float(shake)
        for each, shake in zip(nodes, jitter, strict=True)
    ]


def written(path: Path, nodes: list[int], seconds: list[float]) -> Path:
    rows = [f"{each},{second!r}" for each, second in zip(nodes, seconds, strict=True)]
    path.write_text("\n".join(["N,time", *rows]) + "\n")
    return path


def fitted(nodes: list[int], seconds: list[float], noise: float = 0) -> fit.Fit:
    return fit.fit(np.array(nodes, dtype=float), np.array(seconds), noise)


def evaluated(path: Path, nodes: list[int], seconds: list[float]) -> report.Report:
    return report.evaluate(runs.read([written(path, nodes, seconds)]), 0, 0)


# --- the law ---


def test_the_law_at_one_node_has_no_speedup() -> None:
    assert law.speedup(0.2, 0.0, 1.0) == 1
    assert law.speedup(0.2, 0.0, 1e9) == pytest.approx(5)


@given(some.floats(0, 0.9), some.floats(2, 1000))
def test_no_number_of_nodes_is_better_than_the_optimum(a: float, optimum: float) -> None:
    n = law.parameter(a, optimum)
    best = law.best_speedup(a, n)
    assert law.optimum(a, n) == pytest.approx(optimum)
    assert law.speedup(a, n, optimum) == pytest.approx(best)
    assert law.speedup(a, n, optimum * 1.01) < best
    assert law.speedup(a, n, optimum * 0.99) < best


# --- the fit ---


@given(some.floats(0.001, 0.5), some.floats(4, 200), some.floats(1e-6, 1e6))
def test_exact_data_give_the_truth(a: float, optimum: float, unit: float) -> None:
    nodes = sorted({max(1, round(optimum * share)) for share in (0, 0.2, 0.4, 0.7, 1, 1.3, 1.6)})
    found = fitted(nodes, [unit * each for each in times(a, optimum, nodes)])
    assert found.clear
    assert found.a == pytest.approx(a, rel=1e-4, abs=1e-6)
    assert found.optimum == pytest.approx(optimum, rel=1e-5)
    n = law.parameter(a, optimum)
    assert found.n == pytest.approx(n, rel=1e-4)
    assert found.best == pytest.approx(law.best_speedup(a, n), rel=1e-5)


def test_points_lie_in_their_intervals() -> None:
    found = fitted(FAR, times(0.1, 14, FAR, 0.02))
    truth = (found.a, found.n, found.optimum, found.best)
    for value, interval in zip(truth, trials.intervals(found), strict=True):
        assert interval.low < value < interval.high


def test_weights_follow_the_fit_not_the_luck_of_a_run() -> None:
    """With weights from the measured times slow runs would count less, and times come out low."""
    slow, fast = 1.2, 0.8
    nodes = [1, 1, 2, 2, 4, 4, 8, 8]
    exact = times(0.1, 6, nodes)
    shaken = [each * (slow if at % 2 else fast) for at, each in enumerate(exact)]
    assert fitted(nodes, shaken).alone == pytest.approx(fitted(nodes, exact).alone)


def test_a_bound_instead_of_a_point_where_communication_is_not_clear() -> None:
    found = fitted(NEAR, times(0.2, 100, NEAR, 0.02))
    assert not found.clear
    assert found.optimum_interval.high == math.inf
    assert 1 < found.optimum_interval.low < 100
    told = found.as_json()
    for name in ("n", "optimum_nodes", "best_speedup"):
        assert told[name]["value"] is None
    assert told["optimum_nodes"]["high"] is None
    assert told["n"]["low"] == 0


def test_more_runs_narrow_the_intervals() -> None:
    once = fitted(FAR, times(0.1, 14, FAR, 0.02))
    often = fitted(FAR * 16, times(0.1, 14, FAR * 16, 0.02))
    for wide, narrow in zip(trials.intervals(once), trials.intervals(often), strict=True):
        assert narrow.high - narrow.low < wide.high - wide.low


def test_a_quotient_of_what_may_be_nothing_is_unbounded() -> None:
    found = fitted(NEAR, times(0.2, 100, NEAR, 0.02))
    assert found.quotient((1, 0, 0), (0, 0, 1)) == Interval(-math.inf, math.inf)


def test_few_runs_have_wide_intervals() -> None:
    assert fitted([1, 4, 8, 16], times(0.1, 14, [1, 4, 8, 16], 0.02)).quantile == pytest.approx(
        12.706, abs=1e-3
    )
    assert fitted([1, 8, 24], times(0.1, 14, [1, 8, 24]), 0.02).quantile == pytest.approx(
        1.960, abs=1e-3
    )


@pytest.mark.parametrize(
    ("nodes", "what"),
    [([4], "only 1 different N"), ([1, 2, 2, 1], "only 2 different"), ([1, 2, 4], "Three runs")],
)
def test_too_few_runs_are_refused(nodes: list[int], what: str) -> None:
    with pytest.raises(BeowireError, match=what):
        fitted(nodes, times(0.1, 14, nodes))


def test_three_runs_do_with_a_known_noise() -> None:
    found = fitted([1, 8, 24], times(0.1, 14, [1, 8, 24]), 0.02)
    assert found.optimum == pytest.approx(14)
    assert found.noise == 0.02
    assert found.optimum_interval.holds(14)


def test_times_that_grow_with_n_have_no_speedup() -> None:
    with pytest.raises(BeowireError, match="do not fall with N"):
        fitted([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


# --- coverage ---


@pytest.mark.parametrize("case", list(trials.cases(16, 0.02)), ids=str)
def test_intervals_hold_the_truth(case: trials.Case) -> None:
    told = trials.cover(case, 150)
    for share in told.held.values():
        assert 0.89 < share < 1  # three standard deviations of 150 trials


@pytest.mark.long
@pytest.mark.parametrize("case", list(trials.cases(32, 0.02)), ids=str)
def test_intervals_hold_the_truth_in_a_thousand_trials(case: trials.Case) -> None:
    told = trials.cover(case, 1000)
    for share in told.held.values():
        assert 0.93 <= share <= 0.97


def test_intervals_that_are_too_narrow_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "CONFIDENCE", 0.8)
    told = trials.cover(trials.Case(0.2, 1.5, 16, 0.02), 150)
    assert max(told.held.values()) < 0.9


# --- other forms ---


@pytest.mark.parametrize("name", forms.NAMES)
def test_the_form_that_made_the_data_is_the_best(name: forms.Name) -> None:
    nodes = np.array([1, 2, 4, 8, 16, 24, 32, 48] * 3, dtype=float)
    coefficients = (29.0, 1.0, {"thesis": 0.002, "N log N": 0.5, "N^2 (USL)": 0.05}.get(name, 0.0))
    form = forms.Form(name, coefficients[: 2 if name == "Amdahl" else 3], 0, None)
    shaken = form.time(nodes) * (1 + 0.01 * np.random.default_rng(5).standard_normal(nodes.size))
    compared = forms.compare(nodes, shaken)
    assert forms.likely(compared)[0].name == name
    if name != "Amdahl":  # which is each of the others with c2 = 0
        assert [each.name for each in forms.likely(compared)] == [name]
    assert sum(each.weight or 0 for each in compared) == pytest.approx(1)


def test_aicc_pays_for_each_coefficient() -> None:
    nodes = np.array(FAR, dtype=float)
    for form in forms.compare(nodes, np.array(times(0.1, 14, FAR, 0.02))):
        free, runs = len(form.coefficients) + 1, len(FAR)
        fine = 2 * free + 2 * free * (free + 1) / (runs - free - 1)
        assert form.aicc == pytest.approx(runs * math.log(form.noise**2) + fine)


def test_the_form_n_squared_is_the_universal_scalability_law() -> None:
    contention, coherency = 0.05, 0.002
    nodes = np.array([1, 2, 4, 8, 16, 32, 64], dtype=float)
    exact = (1 + contention * (nodes - 1) + coherency * nodes * (nodes - 1)) / nodes
    best = forms.compare(nodes, exact)[0]
    assert best.name == "N^2 (USL)"
    told = forms.usl(best)
    assert told["contention"] == pytest.approx(contention, rel=1e-4)
    assert told["coherency"] == pytest.approx(coherency, rel=1e-4)


def test_a_law_that_does_not_fit_is_told(tmp_path: Path) -> None:
    nodes = [1, 2, 4, 8, 16, 32] * 4
    exact = [30 * (0.1 + 0.9 / each + 0.3 * (each > 10)) for each in nodes]
    jitter = np.random.default_rng(1).standard_normal(len(nodes))
    found = evaluated(
        tmp_path / "r",
        nodes,
        [each * (1 + 0.005 * float(by)) for each, by in zip(exact, jitter, strict=True)],
    )
    assert found.misfit is not None
    assert found.misfit < 1e-6
    assert any("The law does not fit" in line for line in report.verdict(found))


# --- what next ---


def test_a_law_that_holds_seems_to_fit_badly_as_rarely_as_is_told() -> None:
    """Of 400 sets of runs; 3.3 standard deviations."""
    nodes = [1, 1, 2, 2, 4, 4, 8, 8, 16, 16]
    told = []
    for seed in range(400):
        seconds = times(0.1, 14, nodes, 0.02, seed)
        found = fit.misfit(np.array(nodes, float), np.array(seconds), fitted(nodes, seconds))
        assert found is not None
        told.append(found)
    for share in (0.05, 0.5):
        rare = sum(each < share for each in told) / len(told)
        assert rare == pytest.approx(share, abs=3.3 * math.sqrt(share * (1 - share) / len(told)))


def test_runs_with_a_wild_outlier_are_advised_all_the_same(tmp_path: Path) -> None:
    """It bends the law below 0 at some of the N."""
    nodes = [1, 2, 3, 4] * 3
    seconds = [1.73, 3.30, 0.87, 0.61, 1.86, 0.93, 0.74, 0.57, 1.70, 0.94, 0.74, 0.60]
    found = evaluated(tmp_path / "r", nodes, seconds)
    assert found.advice.nodes > 4
    (told, *_) = report.verdict(found)
    assert told.startswith("The data cannot tell")
    assert "0 nodes" not in told


def test_the_next_point_lies_far_out_and_brings_what_it_promises(tmp_path: Path) -> None:
    seconds = times(0.2, 16, NEAR * 2, 0.02)
    report = evaluated(tmp_path / "r", NEAR * 2, seconds)
    assert report.advice.nodes == 12
    assert not report.fit.clear
    far = times(0.2, 16, NEAR * 2 + [24] * 2, 0.02)
    more = evaluated(tmp_path / "r", NEAR * 2 + [24] * 2, far)
    assert more.fit.clear
    off = more.fit.optimum_interval.high / more.fit.optimum - 1
    assert more.advice.width is not None
    assert more.advice.width < off
    assert more.advice.nodes > 24


def test_no_further_point_than_there_are_nodes(tmp_path: Path) -> None:
    path = written(tmp_path / "r", FAR, times(0.1, 14, FAR, 0.02))
    found = report.evaluate(runs.read([path]), 0, 20)
    assert found.advice.nodes <= 20


# --- the command ---


def test_the_command_tells_and_writes_and_draws(tmp_path: Path) -> None:
    path = written(tmp_path / "r.csv", FAR * 2, times(0.1, 14, FAR * 2, 0.01))
    told, drawn = tmp_path / "r.json", tmp_path / "r.svg"
    done = beowire("model", "fit", str(path), "--json", str(told), "--plot", str(drawn))
    assert done.status == 0, done.errors
    for text in ("N_opt", "serial share", "Measure next: N =", "thesis's law is clearly the best"):
        assert text in done.output
    whole = json.loads(told.read_text())
    optimum = whole["fit"]["optimum_nodes"]
    assert optimum["low"] < 14 < optimum["high"]
    assert {form["name"] for form in whole["forms"]} == set(forms.NAMES)
    assert whole["next"]["nodes"] > 0
    assert b"<svg" in drawn.read_bytes()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_without_a_point_none_is_printed(tmp_path: Path) -> None:
    path = written(tmp_path / "r.csv", NEAR, times(0.2, 100, NEAR, 0.02))
    done = beowire("model", "fit", str(path), "--plot", str(tmp_path / "r.png"))
    assert done.status == 0, done.errors
    assert "cannot tell where the best speedup is" in done.output
    (row,) = [line for line in done.output.splitlines() if line.startswith("│ N_opt")]
    assert [each.strip() for each in row.split("│")][3] == "-"
    assert "at least" in row
    assert (tmp_path / "r.png").read_bytes()[:4] == b"\x89PNG"


def test_the_trials_are_told(tmp_path: Path) -> None:
    told = tmp_path / "trials.json"
    done = beowire("model", "trials", "--trials", "10", "--optimum", "8", "--json", str(told))
    assert done.status == 0, done.errors
    assert len(json.loads(told.read_text())) == 6
    assert "1.5 N_opt" in done.output


def test_more_than_linear_speedup_gets_an_interval_that_holds_it_and_no_advice(
    tmp_path: Path,
) -> None:
    seconds = [100, 47, 21, 9.5, 4.5, 101, 47.3, 21.2, 9.6, 4.52]
    found = evaluated(tmp_path / "r", [1, 2, 4, 8, 16] * 2, seconds)
    assert found.fit.a < 0
    assert found.fit.a_interval.holds(found.fit.a)
    assert found.fit.a_interval.high < 0
    told = " ".join(report.verdict(found))
    assert "more than linear" in told
    assert "Measure next" not in told
    interval = found.fit.optimum_interval
    # Unequal: told is how far the truth may be off, not half of the whole.
    upper = interval.high / found.fit.optimum - 1
    lower = 1 - interval.low / found.fit.optimum
    assert upper > lower + 0.03
    assert f"known to within {100 * upper:.0f} %" in told
