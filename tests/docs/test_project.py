# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What stands beside the README: the citation is valid and of this version, the changes name it."""

import re
from pathlib import Path

import yaml
from beowire import __version__

ROOT = Path(__file__).resolve().parents[2]
KNOWN = {
    "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi",
    "identifiers", "keywords", "license", "license-url", "message", "preferred-citation",
    "references", "repository", "repository-artifact", "repository-code", "title", "type", "url",
    "version",
}  # fmt: skip
"""The keys of Citation File Format 1.2.0."""
REQUIRED = {"authors", "cff-version", "message", "title"}
TYPES = {"software", "dataset"}


def test_the_citation_is_valid() -> None:
    told = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert set(told) >= REQUIRED
    assert set(told) <= KNOWN
    assert told["cff-version"] == "1.2.0"
    assert told["type"] in TYPES
    assert all(set(each) in ({"name"}, {"family-names", "given-names"}) for each in told["authors"])
    assert all(
        isinstance(each, str) for each in (told["title"], told["message"], *told["keywords"])
    )
    assert len(set(told["keywords"])) == len(told["keywords"])
    assert sorted(told["license"]) == sorted(each.stem for each in (ROOT / "LICENSES").iterdir())
    assert str(told["version"]) == __version__


def test_the_changes_are_of_this_version() -> None:
    found = re.findall(r"^## (\d+\.\d+\.\d+)\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert found[0] == __version__
    assert found == sorted(set(found), key=lambda each: [int(n) for n in each.split(".")])[::-1]
