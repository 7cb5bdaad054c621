# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Links between the documents, their anchors, and the names of files that documents and sources
mention, lead somewhere. test_site.py has the same links on the site."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from beowire.documents import links, site

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "packaging").rglob("*.md"),
        *(ROOT / "tests").rglob("*.md"),
    }
)
SOURCES = sorted(
    file
    for room in ("packaging", "tools", "docs/man", "engine", "hosts", "adapters", "service")
    for file in (ROOT / room).rglob("*")
    if file.is_file() and file.suffix not in (".pyc", ".png") and "egg-info" not in str(file)
)
"""Files that may mention a document by its name."""

# The first folder of a path that is meant as one, in backquotes.
_ROOMS = r"(?:engine|hosts|emulator|adapters|tools|examples|tests|docs|packaging|service|common)"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def anchors(page: Path) -> set[str]:
    return links.anchors(page.read_text())


def broken(page: Path) -> list[str]:
    """The links of a document that lead nowhere, each with its line."""
    found = []
    for link in links.links(page.read_text()):
        if link.external:
            told = urlsplit(link.target)
            good = told.scheme in ("http", "https") and "." in told.netloc
        else:
            target = page.parent / link.path if link.path else page
            good = target.exists()
            if good and link.anchor and target.suffix == ".md":
                good = link.anchor in anchors(target)
        if not good:
            found.append(f"{page.name}:{link.line}: {link.target}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_anchors(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One `code`, two\n\n## Same\n\n## Same\n\n[a](#one-code-two) [b](#same-1)\n"
        "[c](gone.md) [d](#same-2)\n[e](https://nowhere) ![f](gone.svg) `[g](code.md)`\n"
        "[h](page.md#gone)\n\n```\n[i](fenced.md)\n```\n"
    )
    gone = [(8, "gone.md"), (8, "#same-2"), (9, "https://nowhere"), (9, "gone.svg")]
    gone.append((10, "page.md#gone"))
    assert broken(page) == [f"page.md:{line}: {target}" for line, target in gone]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_that_are_named_exist(page: Path) -> None:
    for file in re.findall(rf"`({_ROOMS}/[\w./-]*\w/?)`", page.read_text()):
        assert (ROOT / file).exists(), file


def test_documents_that_sources_mention_exist() -> None:
    mentioned = {
        found
        for file in SOURCES
        for found in re.findall(r"\bdocs/[\w-]+\.md\b", file.read_text(errors="replace"))
    }
    assert len(mentioned) >= 5
    assert not [each for each in mentioned if not (ROOT / each).exists()]


def test_every_document_is_on_the_site() -> None:
    """In the contents as well: a document that nobody finds is read by nobody."""
    contents = (ROOT / "docs" / "site" / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    listed = re.findall(r": (\S+)$", contents, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == {*site.documents(ROOT), *site.manuals(ROOT)}
    assert set(site.START) == {page.name for page in ROOT.glob("*.md")}
