# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--format: the same rows as a table, CSV and JSON, whatever others have written into them."""

import csv
import io
import json
import math

import pytest
from beowire import tabular
from beowire.bench import cli as bench_cli
from beowire.bench import kernel_cli, pingpong
from beowire.bench.kernel import Measured
from beowire.bench.kernel import Report as KernelReport
from beowire.bench.kernel_figures import FIGURES
from beowire.bench.matrix import cli as matrix_cli
from beowire.bench.matrix.cells import Cell
from beowire.bench.matrix.grid import Key
from beowire.bench.samples import Ratio
from beowire.status import cli as status_cli
from beowire_cli import beowire

_ROWS = [{"name": "a", "value": 1.5, "on": True}, {"name": 'b, "c"', "value": None, "more": 3}]


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def told(chosen: tabular.Format, capsys: pytest.CaptureFixture[str]) -> str:
    tabular.tell(chosen, _ROWS, lambda: print("for people"))
    return capsys.readouterr().out


def test_each_form_has_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    assert told("table", capsys) == "for people\n"
    assert json.loads(told("json", capsys)) == _ROWS
    text = told("csv", capsys)
    assert read_csv(text) == [
        {"name": "a", "value": "1.5", "on": "true", "more": ""},
        {"name": 'b, "c"', "value": "", "on": "", "more": "3"},
    ]
    assert text.startswith("name,value,on,more\r\n")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-cmd", "@x", "\tx", "\x1b[2J", "a\nb", "a\rb"])
def test_what_others_wrote_is_text(text: str) -> None:
    """No formula for a program that reads tables, no line of its own, no order to a terminal."""
    (row,) = read_csv(tabular.csv_text([{"name": text}]))
    assert row["name"][0] not in "=+-@\t\x1b"
    assert row["name"].isprintable()


def test_numbers_are_whole() -> None:
    (row,) = read_csv(tabular.csv_text([{"x": 0.1 + 0.2, "y": -3, "z": 10**20}]))
    assert (float(row["x"]), int(row["y"]), int(row["z"])) == (0.1 + 0.2, -3, 10**20)
    assert read_csv(tabular.csv_text([])) == []


def test_nested_values_become_columns() -> None:
    nested = {"a": {"b": 1, "c": {"d": 2}}, "e": [1, 2], "f": None}
    assert tabular.flat(nested) == {"a_b": 1, "a_c_d": 2, "e": "1 2", "f": None}


def test_bench_pingpong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    some = dict.fromkeys(("p1", "p50", "p90", "p99", "min", "max", "count"), 2.0)
    figure = pingpong.Figure("latency", 8, "us", True, some, some, Ratio(0.5, 0.0, math.inf))
    report = pingpong.Report([figure], rounds=1)
    monkeypatch.setattr(bench_cli.options, "choose_cluster", lambda *_: None)
    monkeypatch.setattr(bench_cli, "check_settings", lambda _: None)
    monkeypatch.setattr(pingpong, "compare", lambda *_: report)
    bench_cli.pingpong_(chosen="json", mode="latency", window=1, rounds=1)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["mode"], row["size_bytes"], row["tcp_p50"]) == ("latency", 8, 2.0)
    assert (row["ratio_value"], row["ratio_high"]) == (0.5, None)
    bench_cli.pingpong_(chosen="csv", mode="latency", window=1, rounds=1)
    (row,) = read_csv(capsys.readouterr().out)
    assert row["beowire_p99"] == "2.0"
    bench_cli.pingpong_(chosen="table", mode="latency", window=1, rounds=1)
    assert "ratio of rounds" in capsys.readouterr().out


def test_bench_kernel_and_matrix() -> None:
    figure = FIGURES[0]
    rows = [Measured(each, 9.0, 9.0, 8.0, 9.0, Ratio(1.0, 1.0, 1.0)) for each in figure.rows]
    found = kernel_cli.figure_rows(KernelReport("6.1", 1, 1, True, [(figure, rows)]).as_json())
    assert len(found) == len(figure.rows)
    assert {each["figure"] for each in found} == {figure.name}
    assert found[0]["case"] == figure.rows[0].case
    cell = Cell(Key("latency", 8, "udp", 1500, "openmpi"), [1.0, 1.0], {"native": [2.0, 2.0]})
    (row,) = matrix_cli.rows([cell])
    assert (row["ratio"], row["verdict"], row["link"]) == (pytest.approx(0.5), "ahead", "udp")
    assert "values" not in row


def test_info() -> None:
    rows = read_csv(beowire("info", "--format", "csv", BEOWIRE_MTU="900").output)
    links = {each["name"] for each in rows if each["kind"] == "link"}
    assert links == {"local", "kernel", "packet", "udp"}
    setting = next(each for each in rows if each["name"] == "BEOWIRE_MTU")
    assert (setting["state"], setting["about"]) == ("900", "environment")
    assert json.loads(beowire("info", "--format", "json", BEOWIRE_MTU="900").output)


def test_status() -> None:
    answer = beowire("status", "--format", "json")
    assert answer.status == 0, answer.errors
    assert isinstance(json.loads(answer.output), list)
    endpoint = {"node": "n", "links": ["local", "udp"], "rates": {"tx": 1.0}, "peers": [{}]}
    (row,) = status_cli.rows({"endpoints": [endpoint]})
    assert row == {"node": "n", "links": "local udp", "rates_tx": 1.0}


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "--format", "csv", "--json"),
        ("info", "--format", "csv", "--peer", "x"),
        ("status", "--format", "csv", "--watch"),
        ("status", "--format", "csv", "--prometheus"),
        ("bench", "kernel", "--profile", "1", "--format", "csv"),
        ("status", "--format", "xml"),
    ],
)
def test_two_forms_at_once_are_refused(arguments: tuple[str, ...]) -> None:
    answer = beowire(*arguments)
    assert answer.status == 2
    assert answer.output == ""
