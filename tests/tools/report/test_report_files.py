# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`beowire report`: which files it takes, what it refuses and why, and its other formats."""

import csv
import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from beowire import drawing, page
from beowire.bench import compare_rows, samples
from beowire.chart import Chart, Point, Series, logarithmic
from beowire.errors import BeowireError
from beowire.report import cli, contents, formats, measured
from made_results import SIZES, matrix, written

DOCS = Path(__file__).resolve().parents[3] / "docs"
MATRIX = json.dumps(matrix())


def told(*files: Path) -> contents.Contents:
    return contents.of(list(files))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (MATRIX[: len(MATRIX) // 2], "is no whole JSON"),
        ("\n".join([MATRIX, '{"a": ']) + "\n", "is no whole JSON"),
        ("[]", "holds no results"),
        ("12", "holds no results"),
        ("[" * 10_000, "is no whole JSON"),
        ('{"a":' * 40 + "1" + "}" * 40, "is no whole JSON"),
        (MATRIX.replace('"format": 1', '"format": 2'), "in format 2, not 1"),
        (MATRIX.replace('"unit": "us"', '"unit": {}'), "has a row that cannot be read"),
        (MATRIX.replace('"bytes": 8,', '"bytes": "8",'), "has a row that cannot be read"),
        (MATRIX.replace('"bytes": 8,', '"bytes": NaN,'), "has a row that cannot be read"),
        (MATRIX.replace('"ratio": 0.5', '"ratio": -1'), "has a row that cannot be read"),
        (MATRIX.replace('"ratio": 0.5', f'"ratio": 1{"0" * 400}'), "has a row that cannot be read"),
    ],
)
def test_a_bad_file_is_refused_and_named(tmp_path: Path, text: str, why: str) -> None:
    file = written(tmp_path / "bad file.json", text)
    with pytest.raises(BeowireError, match=r"bad file\.json") as found:
        told(file)
    assert why in str(found.value)


def test_what_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    for name, why in (("b", "is no text"), (".", "is no file"), ("absent", "is not there")):
        with pytest.raises(BeowireError, match=why):
            told(tmp_path / name)


def test_evidence_of_another_version_is_refused(tmp_path: Path) -> None:
    whole = json.loads((DOCS / "evidence.json").read_text())
    whole["version"] = "0.0.1"
    with pytest.raises(BeowireError, match="is of another version"):
        told(written(tmp_path / "e.json", whole))


def test_runs_of_different_machines_are_named_and_never_in_one_chart(tmp_path: Path) -> None:
    one = written(tmp_path / "one.json", matrix())
    two = written(tmp_path / "two.json", matrix(0.5, kernel="6.5"))
    found = told(one, two)
    (remark,) = found.remarks
    assert "different machines (kernel 6.1, 6.5)" in remark
    assert [len(each.charts) for each in found.sections] == [2, 2, 1]
    assert "different machines" in formats.html(found)
    assert "different machines" in formats.markdown(found)
    assert not told(one, written(tmp_path / "three.json", matrix(2))).remarks


def test_evidence_of_two_machines_stands_by_itself(tmp_path: Path) -> None:
    whole = json.loads((DOCS / "evidence.json").read_text())
    whole["host"]["mark"] = "another"
    other = written(tmp_path / "e.json", whole)
    found = told(DOCS / "evidence.json", other)
    assert len(found.sections) == 2
    assert any("do not belong together" in each for each in found.remarks)
    assert any("different machines" in each for each in found.remarks)


def test_a_file_that_does_not_say_its_machine_is_named(tmp_path: Path) -> None:
    silent: dict[str, Any] = {**matrix(), "setting": {}}
    found = told(written(tmp_path / "a.json", matrix()), written(tmp_path / "b.json", silent))
    assert found.remarks == [f"{tmp_path}/b.json does not say which machine measured."]


def test_files_without_a_number_in_common_are_shown_and_not_compared(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", matrix(links=("packet",)))
    two = written(tmp_path / "b.json", matrix(links=("udp",)))
    found = told(one, two)
    assert len(found.sections) == 2
    assert "have no number in common" in found.remarks[0]


def test_a_comparison_is_that_of_bench_compare(tmp_path: Path) -> None:
    one = written(tmp_path / "a.json", matrix(sizes=SIZES[:2]))
    two = written(tmp_path / "b.json", matrix(0.8))
    section = told(one, two).sections[2]
    (table,) = section.tables
    by_name = {row[0]: row for row in table.rows}
    row = by_name["latency 8 packet 1500 openmpi beowire"]
    assert row[4] == pytest.approx(0.8)
    assert row[7] == "better"
    assert isinstance(row[5], float)
    assert isinstance(row[6], float)
    assert row[5] < 0.8 < row[6] < 1
    assert any("Only in" in each and "b.json" in each for each in section.remarks)
    (chart,) = section.charts
    assert {each.name for each in chart.series} == {"B is better", "B is even"}
    assert chart.reference == 1


def test_intervals_of_rounds_are_students(tmp_path: Path) -> None:
    results = compare_rows.read(written(tmp_path / "a.json", matrix()))
    row = results.rows["latency 8 packet 1500 openmpi beowire"]
    wanted = samples.ratio(row.rounds, [1.0] * len(row.rounds))
    assert measured.interval(row) == (wanted.low, wanted.high)
    chart = measured.charts(results)[0]
    assert chart.logarithmic == (True, True)
    assert [each.x for each in chart.series[0].points] == [float(each) for each in SIZES]
    assert chart.series[0].points[0].low == wanted.low
    one_round = compare_rows.Row("n", "us", True, rounds=(1.0,))
    assert measured.interval(one_round) == (None, None)


def test_one_size_makes_no_curve(tmp_path: Path) -> None:
    results = compare_rows.read(written(tmp_path / "a.json", matrix(sizes=(8,))))
    charts = measured.charts(results)
    assert [bool(each.names) for each in charts] == [True, True]
    assert sum(len(each.names) for each in charts) == len(results.rows)


def test_what_has_no_charts_is_shown_in_tables(tmp_path: Path) -> None:
    lines = '{"format": 1, "mode": "x"}\n{"n": 1, "t": 2.5}\n{"n": 2, "t": 9}\n{"n": 3, '
    found = told(written(tmp_path / "rows.jsonl", lines))
    assert "The last line" in found.remarks[0]
    (section,) = found.sections
    assert "no charts" in section.remarks[0]
    (table,) = section.tables
    assert (table.columns, table.rows) == (["n", "t"], [[1, 2.5], [2, 9]])
    deep = {"writer": "beowire doctor", "all": {"findings": [{"a": {"b": None}}, {"c": "x" * 900}]}}
    (section,) = told(written(tmp_path / "d.json", deep)).sections
    assert section.tables[0].title == "all findings"
    assert len(str(section.tables[0].rows[1][1])) < 900
    assert "beowire doctor" in section.title


def test_what_bench_compare_wrote_is_shown(tmp_path: Path) -> None:
    rows = [{"name": "n", "a": 1, "b": 2, "verdict": "worse"}]
    whole = {"writer": "beowire bench matrix", "rows": rows, "only_a": [], "only_b": []}
    (section,) = told(written(tmp_path / "c.json", whole)).sections
    assert section.tables[0].rows == [["n", 1, 2, "worse"]]


def test_points_without_a_place_are_counted_and_not_drawn() -> None:
    points = (
        Point(0, 1),
        Point(1, float("nan")),
        Point(2, 3, 4, 5),
        Point(3, 0),
        Point(4, 2, 1, 3),
    )
    chart = Chart("t", "x", "y", (Series("s", points),), (True, True))
    assert chart.left_out() == 3
    assert chart.as_json()["series"][0]["points"] == [[2, 3, None, None], [4, 2, 1, 3]]
    assert "3 points have no place" in page.chart(chart)
    assert not logarithmic([0, 1000])
    assert not logarithmic([1, 10])
    assert logarithmic([1, 1000])


def test_without_the_library_there_are_images_and_without_these_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path / "a.json", matrix())
    monkeypatch.setattr(page, "d3", lambda: "")
    text = formats.html(told(file))
    assert "<script" not in text
    assert "script-src 'none'" in text
    assert text.count("data:image/svg+xml;base64,") == 2
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = formats.html(told(file))
    assert "data:image" not in text
    assert "The Python package matplotlib, which this needs, is not here." in text
    assert text.count("<table>") == 1


def test_another_library_is_not_put_into_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mpld3" / "js").mkdir(parents=True)
    (tmp_path / "mpld3" / "__init__.py").touch()
    (tmp_path / "mpld3" / "js" / "d3.v5.min.js").write_text("alert(1)")
    monkeypatch.setattr(page, "_D3_DEBIAN", tmp_path / "absent.js")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mpld3", raising=False)
    page.d3.cache_clear()
    try:
        assert page.d3() == ""
        # The distribution's stands in for it, if it is one that is known.
        monkeypatch.setattr(page, "_D3_DEBIAN", tmp_path / "mpld3" / "js" / "d3.v5.min.js")
        monkeypatch.setattr(page, "_D3_KNOWN", {hashlib.sha256(b"alert(1)").hexdigest(): "ours"})
        page.d3.cache_clear()
        assert page.d3() == "alert(1)"
    finally:
        page.d3.cache_clear()


def test_a_long_report_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_POINTS_MOST", 30)
    monkeypatch.setattr(formats, "_ROWS_MOST", 10)
    text = formats.html(told(written(tmp_path / "a.json", matrix())))
    assert "1 more charts are left out" in text
    assert "26 more rows are left out" in text
    assert text.count("<tr>") == 1 + 10


def test_csv_has_each_point(tmp_path: Path) -> None:
    found = told(written(tmp_path / "a.json", matrix()))
    rows = list(csv.DictReader(io.StringIO(formats.csv(found))))
    assert len(rows) == 36
    assert rows[0]["series"] == "packet 1500 openmpi beowire"
    assert (rows[0]["x"], rows[0]["up"]) == ("8", "us (less is better)")
    assert float(rows[0]["from"]) < float(rows[0]["value"]) < float(rows[0]["to"])
    other = told(written(tmp_path / "b.json", {"rows": [{"a": "=1+1"}]}))
    assert "'=1+1" in formats.csv(other)


def test_markdown_has_the_tables_and_no_markup_of_others(tmp_path: Path) -> None:
    found = told(written(tmp_path / "a.json", matrix(links=("<b>|x|</b> [y](z)\n# h", "udp"))))
    text = formats.markdown(found)
    assert "| number | unit | value |" in text
    assert "&lt;b>\\|x\\|&lt;/b> \\[y\\](z) \\# h" in text
    assert "<b>" not in text


@pytest.mark.parametrize(
    ("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_charts_alone(tmp_path: Path, kind: str, begins: bytes) -> None:
    """SVG is the same whenever it is made; a dollar sign is no formula."""
    file = written(tmp_path / "a.json", matrix(links=("$\\frac", "_hidden"), sizes=SIZES[:3]))
    made = [tmp_path / f"{name}.{kind}" for name in ("x", "y" if kind == "svg" else "x")]
    for each in dict.fromkeys(made):
        cli.report([file], each)
    assert made[0].read_bytes() == made[1].read_bytes()
    assert made[0].read_bytes().startswith(begins)
    if kind == "svg":
        assert "$\\frac 1500 openmpi beowire" in made[0].read_text()
        assert "hidden 1500 openmpi beowire" in made[0].read_text()


def test_drawings_have_whiskers_and_names(tmp_path: Path) -> None:
    points = (Point(0, 2, 1, 3), Point(1, 4))
    for names in ((), ("one", "two")):
        chart = Chart("t", "x", "y", (Series("s", points), Series("p", points, True)), names=names)
        file = tmp_path / "c.svg"
        drawing.write_charts([chart], file, "svg")
        text = file.read_text()
        assert (">one<" in text) == bool(names)
        plain = Chart("t", "x", "y", (Series("s", (Point(0, 2), Point(1, 4))),), names=names)
        assert text.count("<path") > drawing.svg(plain).decode().count("<path")
