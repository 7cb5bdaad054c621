# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The runs that `beowire model fit` reads: every form of file, and what is wrong in them."""

from itertools import product
from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.model import report, runs
from beowire_cli import beowire

CSV = "N,time\n1,8\n2,5\n4,3\n"


def read(tmp_path: Path, text: str, per_node: int = 0) -> runs.Runs:
    file = tmp_path / "runs"
    file.write_text(text)
    return runs.read([file], per_node)


@pytest.mark.parametrize(
    "text",
    [
        CSV,
        "# made today\n\nnodes;host;TIME_S\n1;a;8\n2;a;5\n4;b;3\n",
        "\ufeffN\ttime\n4\t3\n2\t5\n1\t8\n",
        '[{"N": 1, "time": 8}, {"N": 2, "time": 5}, {"N": "4", "time": 3.0}]',
        '{"runs": [{"N": 1, "time": 8}, {"N": 2, "time": 5}, {"N": 4, "time": 3}]}',
        '{"N": [1, 2, 4], "time": [8, 5, 3]}',
        '{"N": 1, "time": 8}\n{"N": 2, "time": 5}\n\n{"N": 4, "time": 3}\n',
    ],
    ids=["commas", "semicolons", "tabs", "list", "runs", "columns", "lines"],
)
def test_all_forms_are_the_same_runs(tmp_path: Path, text: str) -> None:
    found = read(tmp_path, text)
    assert [(run.nodes, run.time) for run in found.runs] == [(1, 8), (2, 5), (4, 3)]
    assert found.left_out == 0
    assert found.told() == []


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("3,nan", "time is nan"),
        ("3,inf", "time is inf"),
        ("3,-4", "time -4 is not above 0"),
        ("3,0", "time 0 is not above 0"),
        ("0,4", "N = 0 is no number of nodes"),
        ("-2,4", "N = -2 is no number of nodes"),
        ("1.5,4", "N = 1.5 is no number of nodes"),
        ("3,fast", "time is no number: 'fast'"),
        ("3", "no time"),
        (",4", "no N"),
        ("3,4,5", "1 cells more than columns"),
    ],
)
def test_a_bad_row_is_named_and_the_rest_is_used(tmp_path: Path, row: str, what: str) -> None:
    found = read(tmp_path, f"{CSV}{row}\n8,2.5\n")
    (remark,) = found.remarks
    assert remark.endswith(f"line 5: {what}")
    assert [run.nodes for run in found.runs] == [1, 2, 4, 8]
    assert "rows left out: 1, used: 4" in found.told()


def test_bad_entries_of_json_are_named(tmp_path: Path) -> None:
    text = '[{"N": 1, "time": NaN}, {"N": 2, "time": [1]}, 3, {"N": true, "time": 1}, '
    found = read(tmp_path, text + '{"N": 1, "time": 1}]')
    assert [remark.rpartition(", ")[2] for remark in found.remarks] == [
        "entry 1: time is nan",
        "entry 2: time is no number: [1]",
        "entry 3: no N",
        "entry 4: N is no number: True",
    ]
    assert len(found.runs) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("N,time,nodes\n1,2,3\n", "line 1: 2 columns mean N: N, nodes"),
        ("N,speed\n1,2\n", "line 1: no column time among: N, speed"),
        ("1,2\n2,3\n", "no column N among: 1, 2"),
        ("N,time\n", "No usable run"),
        ("N,time\n1,x\n", "No usable run"),
        ("# nothing\n", "has only remarks"),
        (" \n", "is empty"),
        ('[{"N": 1,\n"time"]', "line 2: no JSON"),
        ('[{"N": 1, "nodes": 1, "time": 2}]', "entry 1: 2 members mean N"),
    ],
)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(BeowireError) as caught:
        read(tmp_path, text)
    assert what in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("absent", "binary", "."):
        with pytest.raises(BeowireError, match="cannot be read"):
            runs.read([tmp_path / name])


def test_runs_of_one_number_of_ranks_per_node(tmp_path: Path) -> None:
    text = "N,time,ppn\n1,8,1\n2,5,1\n2,3,2\n4,2,2\n4,2.5,\n"
    with pytest.raises(BeowireError, match=r"different numbers of ranks per node: 1 \(2 runs\), 2"):
        read(tmp_path, text)
    found = read(tmp_path, text, per_node=2)
    assert [(run.nodes, run.time) for run in found.runs] == [(2, 3), (4, 2), (4, 2.5)]
    assert found.left_out == 2


def test_a_repeat_that_is_there_twice_counts_once(tmp_path: Path) -> None:
    found = read(tmp_path, "N,time,repeat\n1,8,1\n1,8,1\n1,8,2\n2,5,1\n2,6,1\n")
    assert [(run.nodes, run.time) for run in found.runs] == [(1, 8), (1, 8), (2, 5), (2, 6)]
    assert "the same run as" in found.remarks[0]
    assert "with another time" in found.remarks[1]


def test_several_files_are_one_measurement(tmp_path: Path) -> None:
    one, other = tmp_path / "one.csv", tmp_path / "other.json"
    one.write_text("N,time,repeat\n1,8,1\n2,5,1\n")
    other.write_text('[{"N": 1, "time": 8, "repeat": 1}, {"N": 4, "time": 3}]')
    assert [run.nodes for run in runs.read([one, other]).runs] == [1, 1, 2, 4]


def test_many_remarks_are_cut_short(tmp_path: Path) -> None:
    found = read(tmp_path, "N,time\n" + "0,1\n" * 50 + "1,1\n")
    assert len(found.told()) == 22
    assert "remarks not shown: 30" in found.told()


def test_the_command_names_rows_and_fails_where_too_few_are_left(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text("N,time\n1,8\n2,nan\n4,-3\n")
    done = beowire("model", "fit", str(file))
    assert done.status == 1
    assert "line 3: time is nan" in done.errors
    assert "line 4: time -3 is not above 0" in done.errors
    assert "only 1 different N are measured (1). (Rows left out: 2.)" in done.errors
    assert done.output == ""


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_times_beyond_what_can_be_computed_with(tmp_path: Path, factor: float) -> None:
    file = tmp_path / "runs"
    times = (8, 5, 3, 2.5, 2.4)
    file.write_text("N,time\n" + "".join(f"{2**k},{t * factor}\n" for k, t in enumerate(times)))
    answer = beowire("model", "fit", str(file))
    assert answer.status == 1
    assert "is not between 1e-30 and 1e+30" in answer.errors
    assert "Traceback" not in answer.errors


def test_no_numbers_that_are_read_end_in_a_traceback(tmp_path: Path) -> None:
    """The extremes of what is accepted, in any mixture: a fit or an error for people."""
    extremes = (1e-30, 1e-10, 1.0, 1e10, 1e30)
    for number, times in enumerate(product(extremes, repeat=4)):
        if number % 60:
            continue
        rows = zip((1, 2, 1000, 10**9), times, strict=True)
        text = "N,time\n" + "".join(f"{nodes},{time}\n" for nodes, time in rows)
        runs = read(tmp_path, text)
        try:
            found = report.evaluate(runs, 0.0, 0)
        except BeowireError:
            continue
        report.verdict(found)
        report.parameters(found)
