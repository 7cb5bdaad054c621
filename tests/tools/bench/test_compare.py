# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`bench compare`: what files of results hold, the ratios of two, and what is refused."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from beowire import places
from beowire.bench import compare, compare_rows, idle, line, overlap, pingpong, result_file, start
from beowire.bench import exchange as exchange_bench
from beowire.bench import kernel as kernel_bench
from beowire.bench import sockets as sockets_bench
from beowire.bench import stripe as stripe_bench
from beowire.bench.apps import cells, measure
from beowire.bench.apps import store as apps_store
from beowire.bench.apps.place import Shape
from beowire.bench.exchange_figures import Figure as Exchanged
from beowire.bench.kernel_figures import FIGURES
from beowire.bench.line import Run
from beowire.bench.load import slowdown
from beowire.bench.load import store as load_store
from beowire.bench.matrix.grid import Key
from beowire.bench.matrix.store import Store
from beowire.bench.samples import Ratio
from beowire.errors import BeowireError
from beowire.lab.netem import Model
from beowire.wan import report
from beowire.wan.grid import CLEAR, Point, Problem
from beowire_cli import beowire

_ROUNDS = [10.0, 11.0, 10.5]
_PERCENTILES = {"p50": 10.0}
"""What comparing reads of them."""


def _pingpong() -> dict[str, Any]:
    ratio = Ratio(0.5, 0.4, 0.625)
    figure = pingpong.Figure("latency", 8, "us", True, {"p50": 20.0}, _PERCENTILES, ratio)
    return pingpong.Report([figure], rounds=5).as_json()


def _kernel(value: float = 1000.0, identical: bool = True) -> dict[str, Any]:
    figure = FIGURES[0]
    rows = [kernel_bench.Measured(row, value, value, value, value, None) for row in figure.rows]
    return kernel_bench.Report("6.1", 2, 3, identical, [(figure, rows)]).as_json()


def _line() -> dict[str, Any]:
    plan = line.Plan(Model(), ("beowire",), "", True, 1.0, 3)
    runs = [Run("beowire", each, 0, {"p99": each}, True, []) for each in _ROUNDS]
    return line.Report(plan, runs).as_json()


def _matrix() -> dict[str, Any]:
    store = Store(None, {"machine": "m"})
    for each in _ROUNDS:
        store.add(Key("latency", 8, "packet", 1500, "openmpi"), each, {"native": 2 * each})
    return store.as_json()


def _apps() -> dict[str, Any]:
    found = apps_store.Store(None, measure.Plan((), (), 3), {})
    key = cells.Key("loop", Shape(2, 2))
    found.results.cells[key] = cells.Cell(key, "lammps", "s", _ROUNDS, _ROUNDS)
    return found.as_json()


def _load() -> dict[str, Any]:
    figure = slowdown.Figure(0.5, 0, 1000, "p99", 100, 2.0, 4.0, Ratio(0.5, 0.4, 0.6))
    found = load_store.Store(None, {}, lambda _: {"figures": [figure.as_json()]})
    found.rounds.append({"beowire": [], "tcp": []})
    return found.as_json()


def _wan() -> dict[str, Any]:
    point = Point("beowire", Problem(600, 40), CLEAR)
    row = report.Row("delay", point, 1.5, Ratio(1, 1, 1), None, (), 3, True)
    return report.Report([row], {"N = 600": Ratio(0.5, 0.4, 0.6)}, []).as_json()


WRITTEN: dict[str, dict[str, Any]] = {
    "apps": _apps(),
    "exchange": exchange_bench.Report(
        exchange_bench.Plan(), [Exchanged("Beowire", "blocking", "byte", 8, 8, 8, {}, _ROUNDS)]
    ).as_json(),
    "idle": idle.Report(
        idle.Plan((4,), ("udp",), 1500, 1, 3), {"udp": {0: _ROUNDS, 4: _ROUNDS}}
    ).as_json(),
    "kernel": _kernel(),
    "load": _load(),
    "line": _line(),
    "overlap": overlap.Overlap(
        "l", 1, "r", 1.0, 2.0, 3.0, Ratio(1, 1, 1), [(1, 2, 3), (2, 3, 4)]
    ).as_json(),
    "pingpong": _pingpong(),
    "sockets": sockets_bench.Report(
        3, [sockets_bench.Measured(sockets_bench.FIGURES[0], _ROUNDS, _ROUNDS, Ratio(1, 1, 1))]
    ).as_json(),
    "start": start.Report(
        start.Plan(), [start.Figure(2, "run", _ROUNDS, _ROUNDS, Ratio(1, 1, 1))]
    ).as_json(),
    "stripe": stripe_bench.Report(
        stripe_bench.Plan((1, 2), 1500, 4, 1.0, 3, 0), [[1.0, 2.0], [1.0, 2.0]], [3.0, 3.1]
    ).as_json(),
    "matrix": _matrix(),
    "wan": _wan(),
}
"""Of each command what its own report makes."""


def write(path: Path, command: str, told: dict[str, Any] | None = None) -> Path:
    written = result_file.stamped(command, told or WRITTEN[command])
    path.write_text(places.json_text(written))
    return path


@pytest.mark.parametrize("command", WRITTEN)
def test_what_a_command_writes_is_read_and_even_with_itself(command: str, tmp_path: Path) -> None:
    found = compare_rows.read(write(tmp_path / "a", command))
    assert found.rows
    told = compare.compare(found, found)
    assert set(found.rows) == {each.first.name for each in told.rows}
    for each in told.rows:
        assert each.ratio is not None
        assert each.ratio.value == pytest.approx(1)
        assert each.verdict in ("even", "unknown")
    assert not told.settings


def test_a_matrix_and_the_others_that_go_on_have_their_own_format(tmp_path: Path) -> None:
    assert WRITTEN["matrix"]["writer"] in compare_rows.KINDS
    path = tmp_path / "a"
    path.write_text(json.dumps({**WRITTEN["matrix"], "format": 2}))
    with pytest.raises(BeowireError, match="in format 2, not 1"):
        compare_rows.read(path)


def row(*rounds: float, lower: bool = True, **more: Any) -> compare_rows.Row:
    return compare_rows.Row("x", "us", lower, rounds=rounds, **more)


def compared(first: compare_rows.Row, second: compare_rows.Row) -> compare.Compared:
    results = [compare_rows.Results(Path(name), "w", {"x": each}) for name, each in
               (("a", first), ("b", second))]  # fmt: skip
    return compare.compare(*results).rows[0]


def test_the_interval_of_rounds_is_welchs() -> None:
    """Against figures computed apart: logarithms 0, 1, 2 and 1, 3: means 1 and 2, variances 1 and
    2; 1/3 + 2/2 = 4/3; degrees of freedom (4/3)^2 / ((1/3)^2 / 2 + 1^2 / 1) = 1.684."""
    found = compared(row(*map(math.exp, (0, 1, 2))), row(*map(math.exp, (1, 3)))).ratio
    assert found is not None
    assert found.value == pytest.approx(math.e)
    half = math.log(found.high / found.value)
    assert math.log(found.value / found.low) == pytest.approx(half)
    from scipy import stats

    assert half == pytest.approx(stats.t.ppf(0.975, 1.6842105) * math.sqrt(4 / 3), rel=1e-6)


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (row(10, 10.1, 9.9), row(20, 20.2, 19.8), "worse"),
        (row(10, 10.1, 9.9, lower=False), row(20, 20.2, 19.8, lower=False), "better"),
        (row(20, 20.2, 19.8), row(10, 10.1, 9.9), "better"),
        (row(10, 12, 9), row(11, 9.5, 10), "even"),
        (row(10, 10.1), row(20), "unknown"),
        (row(10), row(20), "unknown"),
        (row(value=1000, low=1000, high=1000), row(value=1001, low=1001, high=1001), "worse"),
        (row(value=1000, low=1000, high=1000), row(value=1000, low=1000, high=1000), "even"),
        (row(value=1, low=0.9, high=1.1), row(value=1.5, low=1.4, high=1.6), "worse"),
        (row(value=1, low=0.6, high=1.7), row(value=1.5, low=1.4, high=1.6), "even"),
        (row(value=1), row(value=1.5, low=1.4, high=1.6), "unknown"),
        (row(value=0), row(value=1), "unknown"),
        (row(0, 1), row(1, 1), "unknown"),
    ],
)
def test_the_verdict_needs_the_whole_interval(
    first: compare_rows.Row, second: compare_rows.Row, verdict: str
) -> None:
    assert compared(first, second).verdict == verdict


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is no JSON"),
        ("[]", "no file that a `beowire bench`"),
        ('{"writer": "beowire bench nonsense", "format": 1}', "no file that a `beowire bench`"),
        ('{"writer": "beowire bench idle", "format": 7}', "in format 7, not 1"),
        ('{"writer": "beowire bench idle", "format": 1}', "cannot be read"),
        ('{"writer": "beowire bench idle", "format": 1, "times_us": {"a": {"0": ["x"]}}}', "read"),
        ('{"writer": "beowire bench idle", "format": 1, "times_us": {"a": {"0": [-1]}}}', "read"),
        ('{"writer": "beowire bench idle", "format": 1, "times_us": {"a": {"0": []}}}', "read"),
        ("[" * 100000, "is no JSON"),
    ],
)
def test_other_files_are_refused_by_name(text: str, said: str, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(text)
    with pytest.raises(BeowireError, match=said) as refused:
        compare_rows.read(bad)
    assert str(bad) in refused.value.what
    assert refused.value.code == 2


def test_files_of_two_commands_are_refused(tmp_path: Path) -> None:
    one, other = write(tmp_path / "a", "idle"), write(tmp_path / "b", "start")
    with pytest.raises(BeowireError, match=r"is of `beowire bench idle`.*`beowire bench start`"):
        compare.compare(compare_rows.read(one), compare_rows.read(other))


def test_nothing_in_common_is_refused() -> None:
    one = compare_rows.Results(Path("a"), "w", {"x": row(1)})
    with pytest.raises(BeowireError, match="no number in common"):
        compare.compare(one, replace(one, rows={"y": row(1)}))


def test_the_command(tmp_path: Path) -> None:
    one = write(tmp_path / "a", "kernel", _kernel(1000))
    two = write(tmp_path / "b", "kernel", _kernel(1010))
    answer = beowire("bench", "compare", str(one), str(two), "--json", str(tmp_path / "c"))
    assert answer.status == 0, answer.errors
    assert "1.010 [1.010, 1.010]" in answer.output
    assert "worse" in answer.output
    told = json.loads((tmp_path / "c").read_text())
    assert {each["verdict"] for each in told["rows"]} == {"worse"}
    rows = json.loads(beowire("bench", "compare", str(one), str(two), "--format", "json").output)
    assert rows == told["rows"]
    text = beowire("bench", "compare", str(one), str(two), "--format", "csv").output
    by_csv = list(csv.DictReader(io.StringIO(text)))
    assert [each["name"] for each in by_csv] == [each["name"] for each in rows]
    assert {float(each["b"]) for each in by_csv} == {1010.0}
    answer = beowire("bench", "compare", str(one), str(tmp_path / "none"))
    assert answer.status == 2
    assert "cannot be read" in answer.errors
