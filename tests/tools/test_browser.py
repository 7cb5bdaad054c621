# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The browser that tests open pages in: what it sees, and what it lets through."""

import asyncio
from pathlib import Path

from browser import PHONE, Chromium


def page_of(place: Path, body: str, head: str = "") -> Path:
    file = place / "page & more.html"
    file.write_text(f"<!DOCTYPE html><html><head>{head}</head><body>{body}</body></html>")
    return file


def test_a_page_that_is_quiet_is_reported_so(tmp_path: Path, chromium: Chromium) -> None:
    body = "<p>here</p><script>console.log('told')</script><button>a</button><button>b</button>"
    shown = chromium.open(page_of(tmp_path, body))
    assert shown.page.inner_text("p") == "here"
    assert (shown.errors, shown.requests, shown.overflow()) == ([], [], 0)
    assert shown.nodes() == 7
    shown.focus_by_keyboard("button", "b", most=2)


def test_errors_and_requests_of_a_page_are_seen(tmp_path: Path, chromium: Chromium) -> None:
    body = """<img src="http://127.0.0.1:9/a.png"><script>
        console.error("told wrong");
        new WebSocket("ws://127.0.0.1:9/socket");
        fetch("https://example.com/b").catch(() => { document.title = "refused" });
        throw new Error("thrown");
    </script>"""
    shown = chromium.open(page_of(tmp_path, body, '<link rel="stylesheet" href="other.css">'))
    shown.await_that(lambda: shown.page.title() == "refused" and len(shown.requests) == 4)
    assert {each.rpartition("/")[2] for each in shown.requests} == {
        *("a.png", "other.css", "b", "socket")
    }
    shown.await_that(lambda: {"told wrong", "thrown"} <= set(shown.errors))


def test_the_width_and_the_colours_are_those_asked_for(tmp_path: Path, chromium: Chromium) -> None:
    style = "<style>@media (prefers-color-scheme: dark) { p { color: rgb(1, 2, 3) } }</style>"
    file = page_of(tmp_path, '<p>a</p><p style="width: 400px">b</p>', style)
    file.write_text(file.read_text().replace("<body>", '<body style="margin: 0">'))
    phone = chromium.open(file, size=PHONE, dark=True, touch=True)
    assert phone.overflow() == 40
    colour = "getComputedStyle(document.querySelector('p')).color"
    assert phone.page.evaluate(colour) == "rgb(1, 2, 3)"
    wide = chromium.open(file)
    assert wide.overflow() == 0
    assert wide.page.evaluate(colour) != "rgb(1, 2, 3)"


def test_after_pages_others_run_event_loops_of_their_own(chromium_of_session: Chromium) -> None:
    chromium_of_session.enter()
    chromium_of_session.leave()

    async def told() -> str:
        return "run"

    assert asyncio.run(told()) == "run"
