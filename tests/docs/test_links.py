# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Links between the pages, and the names of files that they mention, lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

# The first folder of a path that is meant as one, in backquotes.
_ROOMS = r"(?:engine|hosts|emulator|adapters|tools|examples|tests|docs)"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    for name in re.findall(rf"`({_ROOMS}/[\w./-]*\w/?)`", page.read_text()):
        assert (ROOT / name).exists(), name
