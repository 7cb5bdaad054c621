# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`--report FILE`: what commands found, in one HTML file."""

import base64
import os
import re
import sys
from pathlib import Path

import pytest
from beowire import drawing, transcript
from beowire.errors import BeowireError
from beowire.lab import rootless
from beowire.row_file import RowFile
from beowire_cli import beowire

RUNS = "N,time\n" + "\n".join(f"{n},{10 / n + 0.5 + 0.01 * n * n!r}" for n in (1, 2, 3, 4, 6, 8))


def images(page: str) -> list[str]:
    """The drawings, as SVG."""
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(each).decode() for each in found]


def test_commands_add_their_sections_with_drawings(tmp_path: Path) -> None:
    runs, file = tmp_path / "runs & more.csv", tmp_path / "r.html"
    runs.write_text(RUNS)
    plain = beowire("model", "fit", str(runs))
    told = beowire("--report", str(file), "model", "fit", str(runs))
    assert told.output == plain.output
    page = file.read_text()
    assert "./beowire model fit" in page
    assert "runs &amp; more.csv" in page
    assert "nodes of the best speedup" in page
    (drawn,) = images(page)
    assert "<svg" in drawn
    assert beowire(f"--report={file}", "lab", "graph", "two-sites").output == ""
    page = file.read_text()
    assert page.count("<section>") == page.count("</section>") == 2
    assert len(images(page)) == 2
    assert page.index("model fit") < page.index("lab graph")
    assert page.rstrip().endswith("</html>")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


def test_a_command_that_fails_is_in_the_report(tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    told = beowire("--report", str(file), "model", "fit", str(tmp_path / "absent.csv"))
    assert told.status == 1
    page = file.read_text()
    assert "It ended with status 1." in page
    assert "absent.csv cannot be read" in page


def test_what_is_no_report_is_refused_and_stays(tmp_path: Path) -> None:
    other = tmp_path / "letter.html"
    other.write_text("<html>Dear</html>")
    told = beowire("--report", str(other), "version")
    assert told.status == 1
    assert "is no report of beowire" in told.errors
    assert other.read_text() == "<html>Dear</html>"
    told = beowire("--report", str(tmp_path / "absent" / "r.html"), "version")
    assert "cannot be written" in told.errors
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert "cannot be read" in beowire("--report", str(tmp_path / "binary"), "version").errors
    assert beowire("--report").status == 2


def test_what_is_no_regular_file_is_not_replaced(tmp_path: Path) -> None:
    """A device, for which a pipe stands here."""
    pipe = tmp_path / "pipe.svg"
    os.mkfifo(pipe)
    for attempt in (
        lambda: transcript.begin(pipe, []),
        lambda: drawing.check_file(pipe),
        lambda: RowFile(pipe, "beowire model measure", {}),
    ):
        with pytest.raises(BeowireError, match="is no regular file"):
            attempt()
    assert pipe.is_fifo()


def test_an_interruption_loses_nothing(tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    before = sys.stdout

    def command() -> None:
        with transcript.kept():
            transcript.begin(file, ["--report", str(file), "doctor"])
            print("\x1b[31mred\x1b[0m <found> so far")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        command()
    assert sys.stdout is before
    assert not transcript.is_open()
    page = file.read_text()
    assert "It ended with status 130. interrupted" in page
    assert re.search(r'<span class="red">red</span> &lt;found&gt; so far', page)


def test_markup_in_an_error_is_text(tmp_path: Path) -> None:
    def command() -> None:
        with transcript.kept():
            transcript.begin(tmp_path / "r.html", ["lab", "up", "<i>"])
            raise BeowireError("There is no <b>bold</b> lab.")

    with pytest.raises(BeowireError):
        command()
    page = (tmp_path / "r.html").read_text()
    assert "There is no &lt;b&gt;bold&lt;/b&gt; lab." in page
    assert "&lt;i&gt;" in page
    assert not re.search("<[bi]>", page)


def test_without_a_report_nothing_is_kept(tmp_path: Path) -> None:
    with transcript.kept():
        transcript.add_image("<svg/>")
        drawing.save(drawing.figure(1, 1), tmp_path / "d.svg")
    assert not drawing.wanted(None)
    assert [each.name for each in tmp_path.iterdir()] == ["d.svg"]


def test_a_report_that_vanished_is_made_again_and_one_that_changed_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.html"
    with transcript.kept():
        transcript.begin(file, ["version"])
    file.unlink()
    with transcript.kept():
        transcript.begin(file, ["version"])
    assert file.read_text().count("<section>") == 1

    def changes_it() -> None:
        with transcript.kept():
            transcript.begin(file, ["version"])
            file.write_text("mine now")

    with pytest.raises(BeowireError, match="is no report"):
        changes_it()
    assert file.read_text() == "mine now"


@pytest.mark.parametrize("option", [["--report", "lab"], ["--report=lab"]])
def test_the_option_is_no_command(option: list[str]) -> None:
    assert transcript.without([*option, "doctor"]) == ["doctor"]
    assert not rootless.concerns_labs([*option, "doctor"])
    assert rootless.concerns_labs([*option, "lab", "up"])
    assert transcript.without(["run", "--report", "x"]) == ["run", "--report", "x"]
