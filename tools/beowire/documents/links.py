# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a document in Markdown refers to, and the anchors that it offers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_FENCE = re.compile(r"^ *(`{3,}|~{3,})[^\n]*\n.*?^ *\1 *$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?\s*$", re.MULTILINE)
_HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} +(.+?) *#* *$", re.MULTILINE)
_OWN_ANCHOR = re.compile(r"<\w+\b[^>]*?\b(?:id|name)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Link:
    """Where it leads, as it is written, and on which line."""

    target: str
    line: int

    @property
    def external(self) -> bool:
        return bool(urlsplit(self.target).scheme)

    @property
    def path(self) -> str:
        """Relative to the document; empty if it leads within the document."""
        return unquote(self.target.partition("#")[0])

    @property
    def anchor(self) -> str:
        return unquote(self.target.partition("#")[2])


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def without_code(text: str) -> str:
    """The text with code replaced by spaces, so that lines keep their numbers."""
    return _CODE.sub(_blank, _FENCE.sub(_blank, text))


def links(text: str) -> Iterator[Link]:
    """All links and pictures of a document, in the order of their kinds."""
    bare = without_code(text)
    for pattern in (_LINK, _REFERENCE, _HTML):
        for found in pattern.finditer(bare):
            yield Link(found[1], bare.count("\n", 0, found.start(1)) + 1)


def slug(heading: str, separator: str = "-") -> str:
    """The anchor of a heading, by the rule of GitHub: small letters, no punctuation, and a hyphen
    for each space."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"<[^>]+>", "", heading)).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", separator)


def anchors(text: str) -> set[str]:
    """All anchors of a document: of its headings, numbered where several have one name, and those
    that it sets itself."""
    found: set[str] = set(_OWN_ANCHOR.findall(without_code(text)))
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub(_blank, text)):
        name = slug(heading.replace("`", ""))
        number = seen.get(name, 0)
        seen[name] = number + 1
        found.add(f"{name}-{number}" if number else name)
    return found
