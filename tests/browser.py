# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Pages in a real browser: the chromium of this machine, driven by Playwright, without a display.

One browser serves all tests of a process; each test has a context of its own, without cookies or
storage of another's. A page is watched: what it writes to the console as an error, what it throws,
and each request that leaves it, which is blocked.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route

PROGRAM = "/usr/bin/chromium"
_FLAGS = (
    "--no-sandbox",  # which root cannot have
    "--disable-gpu",
    "--disable-dev-shm-usage",  # other tests count what lies there
    # No name is looked up, whatever a page or the browser itself asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_LIMIT_MS = 240_000
"""For each step, on a busy machine."""
_POLL_S = 0.02
PHONE = (360, 740)
"""Width and height of a small phone."""


@dataclass
class Watched:
    """A page, and what it did that it should not."""

    page: "Page"
    errors: list[str] = field(default_factory=list)
    """On the console, and those that nothing caught."""
    requests: list[str] = field(default_factory=list)
    """Addresses that it asked for outside of what it may; none was reached."""

    def await_that(self, what: Callable[[], bool]) -> None:
        """Waits for a state; fails if it does not come within a minute."""
        end = time.monotonic() + _LIMIT_MS / 1000
        while not what():
            assert time.monotonic() < end, f"it did not come about; on the console: {self.errors}"
            self.page.wait_for_timeout(1000 * _POLL_S)

    def overflow(self) -> int:
        """Pixels by which the page is wider than the window."""
        width = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return int(width)

    def nodes(self) -> int:
        """Of the whole document."""
        return int(self.page.evaluate("document.querySelectorAll('*').length"))

    def focus_by_keyboard(self, selector: str, text: str = "", most: int = 200) -> None:
        """Presses Tab until an element that matches, and has this text, has the focus."""
        script = "([s, t]) => document.activeElement.matches(s)"
        script += " && document.activeElement.textContent.includes(t)"
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.page.evaluate(script, [selector, text]):
                return
        pytest.fail(f"{selector} {text} cannot be reached by {most} times Tab")

    def settle(self) -> None:
        """Waits until what was asked for is drawn."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )


class Chromium:
    """The browser of this process, from its first page on."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._browser: Browser = self._playwright.chromium.launch(
            executable_path=PROGRAM, args=list(_FLAGS), timeout=_LIMIT_MS
        )
        self._contexts: list[BrowserContext] = []
        self._loop: AbstractEventLoop | None = asyncio._get_running_loop()
        self.leave()

    def enter(self) -> None:
        """Before a test. Playwright keeps an event loop that counts as running all the time; out
        of the tests with pages it must not: they could not run one of their own."""
        asyncio._set_running_loop(self._loop)

    def leave(self) -> None:
        """After a test: its pages are gone."""
        while self._contexts:
            self._contexts.pop().close()
        asyncio._set_running_loop(None)

    def open(
        self,
        target: Path | str,
        *,
        size: tuple[int, int] = (1200, 900),
        dark: bool = False,
        touch: bool = False,
        allowed: tuple[str, ...] = (),
    ) -> Watched:
        """A file, or an address. The page may ask for itself, and for addresses that begin with
        one of `allowed`: "http://127.0.0.1:8080/"."""
        address = target.resolve().as_uri() if isinstance(target, Path) else target
        context = self._browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            locale="en-US",
            reduced_motion="reduce",
            service_workers="block",
        )
        self._contexts.append(context)
        context.set_default_timeout(_LIMIT_MS)
        watched = Watched(context.new_page())

        def is_own(asked: str) -> bool:
            return asked.partition("#")[0] == address.partition("#")[0] or (
                bool(allowed) and asked.startswith(allowed)
            )

        def decide(route: "Route") -> None:
            if is_own(route.request.url):
                route.continue_()
                return
            watched.requests.append(route.request.url)
            route.abort("blockedbyclient")

        def heard(message: "ConsoleMessage") -> None:
            if message.type == "error":
                watched.errors.append(message.text)

        def of_sockets(asked: str) -> bool:
            return urlsplit(asked).scheme in ("ws", "wss") and not is_own(asked)

        context.route("**/*", decide)
        context.route_web_socket(of_sockets, lambda way: watched.requests.append(way.url))
        watched.page.on("console", heard)
        watched.page.on("pageerror", lambda error: watched.errors.append(str(error)))
        watched.page.goto(address)
        return watched

    def close(self) -> None:
        self.enter()
        self._browser.close()
        self._playwright.stop()
        asyncio._set_running_loop(None)


@pytest.fixture(scope="session")
def chromium_of_session() -> Iterator[Chromium]:
    """One for all tests of this process; begun by the first that needs it."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is missing")
    made = Chromium()
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def chromium(chromium_of_session: Chromium) -> Iterator[Chromium]:
    """Opens pages, which are gone after the test."""
    chromium_of_session.enter()
    try:
        yield chromium_of_session
    finally:
        chromium_of_session.leave()
