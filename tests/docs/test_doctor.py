# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""docs/doctor.md against the doctor: its table, its excerpt and its figures are true."""

import re
import sys
from pathlib import Path

from beowire.doctor.check import ALL_GOALS
from beowire.doctor.registry import ALL

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "doctor.md").read_text()


def rows() -> list[list[str]]:
    lines = (line for line in TEXT.splitlines() if re.match(r"\| `\w+\.(?!py`)\w+` \|", line))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_has_every_check() -> None:
    expected = [
        [
            f"`{check.name}`",
            check.title,
            "all" if check.goals == ALL_GOALS else ", ".join(sorted(check.goals)),
            str(check.fix),
        ]
        for check in ALL.values()
    ]
    assert rows() == expected


def test_the_readme_counts_right() -> None:
    assert f"{len(ALL)} checks" in (ROOT / "README.md").read_text()


def test_the_count_of_real_faults_is_right() -> None:
    sys.path[:0] = [str(ROOT / "tests" / "tools"), str(ROOT / "tests" / "tools" / "doctor")]
    from faults import FAULTS

    real = sum(not each.recorded for each in FAULTS.values())
    assert f"{real} of the {len(FAULTS)} are real" in TEXT


def test_the_excerpt_is_real() -> None:
    block = re.search(r"^```python\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    assert block[1] in (ROOT / "tools" / "beowire" / "doctor" / "tcp.py").read_text()


def test_every_file_of_the_doctor_is_in_the_table_or_has_checks() -> None:
    named = set(re.findall(r"`(\w+\.py)`", TEXT))
    for file in (ROOT / "tools" / "beowire" / "doctor").glob("*.py"):
        assert file.name in named or file.name == "__init__.py" or "CHECKS = " in file.read_text()
