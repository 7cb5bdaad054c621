# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is on the site: the documents, the manual pages, and each source that one of them refers to,
at the same relative places as in the repository, so that links hold in both."""

import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from beowire import places
from beowire.documents.links import links

START = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""The documents beside `docs/`. The first is the site's start page."""
_PICTURES = (".svg", ".png")
_MANUAL = re.compile(r"docs/man/[\w.-]+\.[1-8]")
LANGUAGES = {
    ".c": "c", ".h": "c", ".py": "python", ".sh": "bash", ".toml": "toml", ".json": "json",
    ".lua": "lua", ".spec": "spec", ".eb": "python", ".yaml": "yaml", ".cff": "yaml",
}  # fmt: skip
"""Of sources that are shown, by the end of their names; others are shown as plain text."""


def is_manual(name: str) -> bool:
    return _MANUAL.fullmatch(name) is not None


def is_picture(name: str) -> bool:
    return name.endswith(_PICTURES)


def documents(root: Path) -> list[str]:
    """All documents in Markdown, by their names in the repository."""
    inside = (file.relative_to(root).as_posix() for file in (root / "docs").glob("*.md"))
    return [*START, *sorted(inside)]


def manuals(root: Path) -> list[str]:
    found = (file.relative_to(root).as_posix() for file in (root / "docs" / "man").iterdir())
    return sorted(filter(is_manual, found))


def files(root: Path) -> list[str]:
    """All that is on the site, by names in the repository. A file that a document refers to and
    that does not exist is not among them: the build then says that the link is broken."""
    found = dict.fromkeys([*documents(root), *manuals(root)])
    for name in documents(root):
        for target in _referred(root, name):
            found.setdefault(target)
    return list(found)


def _referred(root: Path, name: str) -> Iterator[str]:
    for link in links((root / name).read_text()):
        if link.external or not link.path:
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link.path))
        if not target.startswith("..") and (root / target).is_file():
            yield target


def address(name: str) -> str:
    """Where on the site the page of a file lies."""
    if is_picture(name):
        return name
    if name == START[0]:
        return "index.html"
    return name.removesuffix(".md") + "/index.html"


def title(name: str) -> str:
    """Of a page that is not in Markdown."""
    if is_manual(name):
        stem, _, section = Path(name).name.rpartition(".")
        return f"{stem}({section})"
    return name


def fenced(name: str, text: str) -> str:
    """A source as a document: its name, and its text as it is."""
    longest = max(map(len, re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    language = LANGUAGES.get(Path(name).suffix, "text")
    return f"# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def plain_fences(text: str) -> str:
    """Of what follows the language in the first line of a block of code, mkdocs takes no notice as
    CommonMark does: it takes the block for none."""
    return re.sub(r"^( *`{3,}[\w+-]+) +[^\n{`]+$", r"\1", text, flags=re.MULTILINE)


def manual_html(file: Path) -> str:
    """A manual page as a part of a page: its headings are one level lower than mandoc has them, as
    the page's title stands above them. Links to manual pages that are not on the site are none."""
    command = [places.program("mandoc", "mandoc"), "-T", "html", "-O", "fragment,man=../%N.%S/"]
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=True)
    body = re.sub(r"<table class=\"(?:head|foot)\">.*?</table>", "", done.stdout, flags=re.DOTALL)
    body = re.sub(r"<(/?)h([12])\b", lambda tag: f"<{tag[1]}h{int(tag[2]) + 1}", body)
    anchors = set(re.findall(r"\bid=\"([^\"]+)\"", body))

    def kept(link: re.Match[str]) -> str:
        page, anchor = link["page"], link["anchor"]
        there = anchor in anchors if page is None else (file.parent / page).is_file()
        return link[0] if there else link["text"]

    link = (
        r"<a\b[^>]*?href=\"(?:#(?P<anchor>[^\"]+)|\.\./(?P<page>[^\"/]+)/)\"[^>]*>(?P<text>.*?)</a>"
    )
    return re.sub(link, kept, body, flags=re.DOTALL)


def manual_headings(body: str) -> list[dict[str, object]]:
    """The sections of such a part, as the table of contents wants them."""
    found = re.findall(r"<h2[^>]* id=\"([^\"]+)\">(.*?)</h2>", body, re.DOTALL)
    return [
        {"level": 2, "id": name, "name": " ".join(re.sub(r"<[^>]+>", "", told).split()),
         "children": []}
        for name, told in found
    ]  # fmt: skip
