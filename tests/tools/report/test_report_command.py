# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of `beowire report`."""

from pathlib import Path

import pytest
from beowire.errors import BeowireError
from beowire.report import cli
from beowire_cli import beowire
from made_results import matrix, written


def test_a_page_is_written_and_told(tmp_path: Path) -> None:
    files = [str(written(tmp_path / f"{each}.json", matrix())) for each in "ab"]
    made = tmp_path / "r.html"
    told = beowire("report", *files, "-o", str(made))
    assert (told.status, told.output) == (0, "")
    assert told.errors == f"beowire: {made}: 3 sections, 5 charts\n"
    assert made.read_text().startswith("<!DOCTYPE html>")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_text_goes_to_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "a.json", matrix())
    cli.report([file], None, "csv")
    assert capsys.readouterr().out.startswith("section,part,series,paper,")
    cli.report([file], None, "md")
    assert capsys.readouterr().out.startswith("# Beowire: report\n")


def test_the_name_of_the_output_says_the_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path / "a.json", matrix())
    cli.report([file], tmp_path / "r.md")
    assert (tmp_path / "r.md").read_text().startswith("# Beowire: report\n")
    cli.report([file], tmp_path / "r.md", "csv")
    assert (tmp_path / "r.md").read_text().startswith("section,")
    cli.report([file])
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(BeowireError, match="names no kind of report"):
        cli.report([file], tmp_path / "r.doc")


def test_nothing_is_lost(tmp_path: Path) -> None:
    """Neither a file that was handed in, nor what stood in the place of a report that failed."""
    file = written(tmp_path / "a.json", matrix())
    before = file.read_text()
    with pytest.raises(BeowireError, match="is one of the files to be shown"):
        cli.report([file], Path(str(file)), "html")
    assert file.read_text() == before
    old, bad = written(tmp_path / "r.html", "old"), written(tmp_path / "b.json", "")
    with pytest.raises(BeowireError, match="is empty"):
        cli.report([file, bad], old)
    assert old.read_text() == "old"
    with pytest.raises(BeowireError, match="cannot be written"):
        cli.report([file], tmp_path / "absent" / "r.html")


def test_what_has_no_charts_is_not_drawn(tmp_path: Path) -> None:
    file = written(tmp_path / "a.json", {"rows": [{"a": 1}]})
    with pytest.raises(BeowireError, match="have no charts"):
        cli.report([file], tmp_path / "r.png")
    assert not (tmp_path / "r.png").exists()
    many = matrix(sizes=tuple(range(1, 2)), links=tuple(f"l{each}" for each in range(600)))
    with pytest.raises(BeowireError, match="charts are too many for svg"):
        cli.report([written(tmp_path / "b.json", many)], tmp_path / "r.svg")


def test_wrong_words_are_refused() -> None:
    assert beowire("report").status == 2
