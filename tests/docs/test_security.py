# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the document on security names as tests exists: its files, and the functions in them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "security.md"


def named(text: str) -> list[tuple[str, str]]:
    """Each file that is named, and each function behind it; "" for the file itself."""
    found = []
    for cell in re.findall(r"\|([^|]*)\|$", text, re.MULTILINE):
        file = ""
        for word in re.findall(r"`([^`]+)`", cell):
            if "/" in word and "." in word:
                file = word
                found.append((file, ""))
            elif file:
                found.append((file, word))
    return found


def test_what_is_named_exists() -> None:
    tests = named(DOCUMENT.read_text())
    assert len(tests) > 30
    for file, function in tests:
        path = ROOT / file
        assert path.is_file(), file
        if function:
            assert re.search(rf"\b{function}\(", path.read_text()), (file, function)


def seeded() -> set[str]:
    """The names of all seeded defects."""
    tables = [ROOT / "tests" / "kernel" / "mutants.toml", *(ROOT / "tests/mutants").glob("*.toml")]
    read = [tomllib.loads(table.read_text()) for table in tables]
    return {defect["name"] for table in read for defect in table["mutant"]}


def test_the_seeded_defects_exist() -> None:
    _, _, text = DOCUMENT.read_text().partition("\n## 6. ")
    rows = re.findall(r"^\|([^|]*)\|[^|]*\|[^|]*\|([^|]*)\|[^|]*\|$", text, re.MULTILINE)[2:]
    assert len(rows) > 30
    known = seeded()
    for defect, cell in rows:
        names = set(re.findall(r"`([^`]+)`", cell))
        assert names <= known, defect
        assert len(names) >= 2, defect


def test_a_name_is_found_by_its_place() -> None:
    text = "| a | `x/y.c` `f`, `g`, `z/w.py` |\n| `not/this.c` | by | *to come* |\n"
    assert named(text) == [("x/y.c", ""), ("x/y.c", "f"), ("x/y.c", "g"), ("z/w.py", "")]
