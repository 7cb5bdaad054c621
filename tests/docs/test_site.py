# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The documents as a site: it builds without a warning, each link and anchor on it leads somewhere,
no page loads anything from another host, and nothing of the documents is lost on the way."""

import http.server
import json
import re
import shutil
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from beowire.documents import cli, site
from beowire.errors import BeowireError
from beowire_cli import COMMAND
from browser import Chromium, Watched
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
LOADS = {
    "link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src",
    "object": "data", "embed": "src", "video": "src", "audio": "src",
}  # fmt: skip
"""Elements by which a page loads something, and the attribute that names it."""


@dataclass
class Read(HTMLParser):
    """What a page loads, where its links lead, its anchors, and how many of each element it has."""

    loads: list[str] = field(default_factory=list)
    leads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    styles: str = ""
    in_style: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {key: value or "" for key, value in attrs}
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.anchors |= {told[key] for key in ("id", "name") if key in told}
        self.styles += told.get("style", "")
        self.in_style = tag == "style"
        if tag in LOADS and told.get(LOADS[tag]):
            self.loads.append(told[LOADS[tag]])
        self.loads += [each.split()[0] for each in told.get("srcset", "").split(",") if each]
        if tag in ("a", "form", "area"):
            self.leads += [told[key] for key in ("href", "action") if told.get(key)]

    def handle_endtag(self, tag: str) -> None:
        self.in_style = self.in_style and tag != "style"

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.styles += data


@cache
def read(page: Path) -> Read:
    found = Read()
    found.feed(page.read_text())
    return found


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as the command builds it; a warning of mkdocs is an error there."""
    directory = tmp_path_factory.mktemp("site")
    cli.build(directory)
    return directory


def pages(built: Path) -> Iterator[Path]:
    found = sorted(built.rglob("*.html"))
    assert len(found) > 30
    yield from found


def place(built: Path, page: Path, target: str) -> Path:
    """The file that a link on a page leads to."""
    path = unquote(urlsplit(target).path)
    if not path:
        return page
    found = built / path.lstrip("/") if path.startswith("/") else page.parent / path
    return found / "index.html" if found.is_dir() else found


def is_foreign(target: str) -> bool:
    told = urlsplit(target)
    return bool(told.netloc) or told.scheme not in ("", "data", "mailto")


def nowhere(built: Path, page: Path) -> list[str]:
    """Links of a page, and what it loads, that are not there."""
    found = []
    for target in [*read(page).leads, *read(page).loads]:
        if urlsplit(target).scheme or urlsplit(target).netloc:
            continue
        file = place(built, page, target)
        anchor = unquote(urlsplit(target).fragment)
        known = file.suffix != ".html" or not anchor or anchor.startswith("__")
        if not file.is_file() or not (known or anchor in read(file).anchors):
            found.append(target)
    return found


def test_every_link_and_anchor_leads_somewhere(built: Path) -> None:
    wrong = {str(page.relative_to(built)): nowhere(built, page) for page in pages(built)}
    assert not {page: targets for page, targets in wrong.items() if targets}


def foreign(text: str) -> list[str]:
    """What a style sheet would load from other hosts."""
    named = re.findall(r"url\(\s*[\"']?([^\"')]+)|@import\s+[\"']([^\"']+)", text)
    return [each for pair in named for each in pair if each and is_foreign(each)]


def test_nothing_is_loaded_from_elsewhere(built: Path) -> None:
    for page in pages(built):
        told = read(page)
        assert told.loads
        assert not [each for each in told.loads if is_foreign(each)], page
        assert not foreign(told.styles), page
    sheets = list(built.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        assert not foreign(sheet.read_text()), sheet
    assert foreign("@import 'https://a.example/b.css'; b { src: url(//c.example/d.woff) }") == [
        "https://a.example/b.css",
        "//c.example/d.woff",
    ]


def test_all_documents_and_pictures_are_there(built: Path) -> None:
    for name in (*site.documents(ROOT), *site.manuals(ROOT)):
        assert (built / site.address(name)).is_file(), name
    pictures = [each for each in (ROOT / "docs").rglob("*") if site.is_picture(each.name)]
    assert len(pictures) > 10
    shown = {
        place(built, page, each).resolve()
        for page in pages(built)
        for each in read(page).loads
        if site.is_picture(each)
    }
    for picture in pictures:
        assert (built / picture.relative_to(ROOT)).resolve() in shown, picture


@pytest.mark.parametrize("name", site.documents(ROOT))
def test_tables_and_code_are_what_they_are_elsewhere(built: Path, name: str) -> None:
    """mkdocs' dialect of Markdown differs from CommonMark, which others show the documents by."""
    tokens = MarkdownIt("commonmark").enable("table").parse((ROOT / name).read_text())
    kinds = [each.type for each in tokens]
    counts = read(built / site.address(name)).counts
    assert counts.get("pre", 0) == kinds.count("fence") + kinds.count("code_block")
    # Each is in a table of its own where lines are numbered, which they are not.
    assert counts.get("table", 0) == kinds.count("table_open")


def test_manual_pages_have_their_sections(built: Path) -> None:
    told = read(built / "docs" / "man" / "beowire.7" / "index.html")
    assert {"ENVIRONMENT", "FILES", "BEOWIRE_LINKS"} <= told.anchors
    assert any(each.endswith("beowired.8/") for each in told.leads)


def test_all_is_found_by_the_search(built: Path) -> None:
    index = json.loads((built / "search" / "search_index.json").read_text())
    found = {each["location"].partition("#")[0] for each in index["docs"]}
    for name in (*site.documents(ROOT), *site.manuals(ROOT)):
        assert site.address(name).removesuffix("index.html") in found, name
    assert any("SipHash" in each["text"] for each in index["docs"])


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and tells nobody."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def served(built: Path) -> Iterator[str]:
    """The address of the site, on this machine."""
    handler = partial(Quiet, directory=str(built))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


def test_a_page_of_each_section_opens(served: str, chromium: Chromium) -> None:
    """Without an error on the console, and without a request to another host."""
    for page in ("", "docs/tutorial/", "docs/install/", "docs/man/beowire.7/", "docs/evidence/"):
        shown = chromium.open(served + page, allowed=(served,))
        shown.await_that(lambda shown=shown: shown.page.locator("article h1").count() == 1)
        broken = "[...document.images].filter(each => each.complete && !each.naturalWidth).length"
        assert shown.page.evaluate(broken) == 0
        is_quiet(shown)


def test_the_search_finds(served: str, chromium: Chromium) -> None:
    shown = chromium.open(served, allowed=(served,))
    query = shown.page.locator("[data-md-component=search-query]")
    state = shown.page.locator(".md-search-result__meta")
    query.focus()
    shown.await_that(lambda: state.text_content() == "Type to start searching")
    query.press_sequentially("ptrace_scope")  # it looks at each key
    results = shown.page.locator("[data-md-component=search-result] a[href*='docs/architecture']")
    results.first.wait_for(state="attached")
    is_quiet(shown)


def is_quiet(shown: Watched) -> None:
    assert (shown.errors, shown.requests) == ([], [])


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with few documents, whose tools are this one's."""
    shutil.copytree(ROOT / "docs" / "site", tmp_path / "docs" / "site")
    settings = tmp_path / "docs" / "site" / "mkdocs.yml"
    contents = "\nnav:\n  - README.md\n  - docs/one.md\n"
    settings.write_text(settings.read_text().partition("\nnav:\n")[0] + contents)
    (tmp_path / "docs" / "man").mkdir()
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    for name in site.START:
        (tmp_path / name).write_text(f"# {name}\n")
    (tmp_path / "docs" / "one.md").write_text("# One\n\n[source](../source.c)\n")
    (tmp_path / "source.c").write_text("int main(void)\n{\n}\n")
    monkeypatch.setenv("BEOWIRE_ROOT", str(tmp_path))
    return tmp_path


def test_a_broken_link_is_an_error(small: Path) -> None:
    output = small / "output"
    (small / "docs" / "two.md").write_text("# Two\n\n[a](gone.md) [b](one.md#gone)\n")
    with pytest.raises(BeowireError) as raised:
        cli.build(output)
    assert "gone.md" in str(raised.value)
    assert "'one.md#gone'" in str(raised.value)
    (small / "docs" / "two.md").write_text("# Two\n\n[b](one.md#one)\n")
    cli.build(output)
    assert "main" in (output / "source.c" / "index.html").read_text()


def test_the_site_is_served_to_this_machine(small: Path) -> None:
    words = [*COMMAND, "docs", "--output", str(small / "output"), "--serve", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as command:
        assert command.stderr is not None
        found = next(filter(None, (re.search(r"http://\S+", line) for line in command.stderr)))
        with urllib.request.urlopen(f"{found[0]}docs/one/") as answer:
            assert b"One" in answer.read()
        command.send_signal(signal.SIGINT)
        assert command.wait(60) == 130


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(BeowireError, match="something else"):
        cli.build(tmp_path)
    assert (tmp_path / "mine").read_text() == "mine"
