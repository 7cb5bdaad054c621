# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is told to be supported is what one file says, in the README as by the command, and each
claim of a test names one that is there. The README's three numbers are those of its example."""

import json
import re
from pathlib import Path

import pytest
from beowire.info import support
from beowire_cli import beowire

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
FOUND = support.read()


def between(name: str) -> str:
    found = re.search(rf"<!-- {name}: begin -->\n(.*?)<!-- {name}: end -->", README, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_readme_has_what_the_file_says() -> None:
    assert between("support") == support.markdown(FOUND)


def test_the_command_prints_the_same() -> None:
    answer = beowire("info", "--support", "--format", "json")
    assert answer.status == 0, answer.errors
    assert json.loads(answer.output) == [each.as_json() for each in FOUND]
    shown = set(beowire("info", "--support").output.split())  # names may take two lines
    for each in FOUND:
        assert set(f"{each.name} {support.STATES[each.state]}".split()) <= shown


@pytest.mark.parametrize("other", [("--mpi",), ("--json",), ("--peer", "a"), ("--port", "1")])
def test_it_is_asked_alone(other: tuple[str, ...]) -> None:
    assert beowire("info", "--support", *other).status == 2


@pytest.mark.parametrize("each", FOUND, ids=lambda each: each.name)
def test_a_claim_names_its_tests(each: support.Support) -> None:
    assert each.state in support.STATES
    assert each.about
    assert bool(each.shown_by) == (each.state in ("tested", "part", "booted", "built"))
    for file in each.shown_by:
        assert re.search(r"^def test_", (ROOT / file).read_text(), re.MULTILINE), file


def test_every_area_is_there_once() -> None:
    areas = [each.area for each in FOUND]
    assert set(areas) >= {"kernel module", "MPI", "distribution", "container", "architecture"}
    changes = [area for area, before in zip(areas, ["", *areas], strict=False) if area != before]
    assert len(changes) == len(set(areas))


def test_versions_are_those_of_the_conformance() -> None:
    """A row of an MPI or kernel that was tested is one that docs/conformance.md or the document of
    the kernel module tells of."""
    told = "".join(
        (ROOT / "docs" / name).read_text() for name in ("conformance.md", "kernel-module.md")
    )
    for each in FOUND:
        if each.area in ("MPI", "kernel module") and each.shown_by:
            version = re.search(r"\d+\.\d+\.\d+\S*", each.name)
            assert version is not None
            assert version[0] in told, each.name


def test_the_three_numbers_are_of_the_example() -> None:
    rows = re.findall(r"^│ (.*?) │$", between("demo output"), re.MULTILINE)
    example = {}
    for row in rows:
        cells = [cell.strip() for cell in row.split("│")]
        if len(cells) == 7:
            example[cells[0]] = (cells[3], cells[4], cells[5].split(" ")[0])
    table = README.split("<!-- three numbers", 1)[1].split("\n\n")[0]
    numbers = re.findall(
        r"^\| (.+?) \| ([\d.,]+) \S+ \| ([\d.,]+) \S+ \| ([\d.]+) \|$", table, re.M
    )
    told = {name: tuple(each) for name, *each in numbers}
    assert told == {
        "latency of 8 B": example["ping-pong 8 B"],
        "a program of short messages (pi)": example["pi"],
        "bandwidth of 1 MiB": example["ping-pong 1 MiB"],
    }
