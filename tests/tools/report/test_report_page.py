# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The page of a report in a browser: it is quiet, its tables sort, its charts answer to the pointer
and to the keyboard, and it fits a phone, the dark, and paper."""

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from beowire import drawing, transcript
from beowire.chart import Chart, Point, Series
from beowire.report import contents, formats
from browser import PHONE, Chromium, Watched
from made_results import matrix, written

DOCS = Path(__file__).resolve().parents[3] / "docs"
BYTES_MOST = 3_000_000
NODES_MOST = 20_000
SECONDS_MOST = 200.0
"""On a busy machine; two on an idle one. A page whose costs grow with the square takes minutes."""
HOSTILE = (
    "</script><script>window.pwned = 1</script>",
    "<img src=x onerror='window.pwned = 1'>",
    '"><b onmouseover="window.pwned = 1">x',
    "<!-- the next section goes here -->",
    "]]>\u202e\x1b[31m&lt;i&gt;",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of a matrix, compared."""
    place = tmp_path_factory.mktemp("report")
    files = [written(place / f"{name}.json", matrix(f)) for name, f in (("a", 1.0), ("b", 0.8))]
    return written(place / "report.html", formats.html(contents.of(files)))


def figure(shown: Watched, title: str) -> Any:
    return shown.page.locator("figure.chart", has_text=title).first


def traces(chart: Any) -> int:
    return int(chart.locator(".trace").count())


def test_it_is_quiet_and_its_charts_are_not_empty(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page)
    assert (shown.errors, shown.requests) == ([], [])
    titles = shown.page.locator("h2").all_inner_texts()
    assert [re.sub(r"/\S*/", "", each) for each in titles] == [
        "beowire bench matrix: a.json",
        "beowire bench matrix: b.json",
        "b.json to a.json",
    ]
    assert shown.page.locator("nav a").count() == 3
    assert shown.overflow() == 0
    chart = figure(shown, "latency, us")
    assert traces(chart) == 4
    assert chart.locator(".band").count() == 4
    compared = shown.page.locator("section").nth(2)
    assert compared.locator(".whisker").count() >= 1
    assert compared.locator("td", has_text="better").count() == 24
    assert compared.locator("td", has_text="even").count() == 12
    check_drawing(shown, chart)


def check_drawing(shown: Watched, chart: Any) -> None:
    """The curves' boxes, as shares of the plot; and a coarse image has colours in each quarter."""
    plot = chart.locator("svg").bounding_box()
    curve = chart.locator(".curve").first.bounding_box()
    assert plot is not None
    assert curve is not None
    assert plot["width"] > 400
    assert plot["height"] > 200
    assert curve["width"] > 0.7 * plot["width"]
    assert curve["height"] > 0.3 * plot["height"]
    assert curve["x"] > plot["x"]
    assert curve["y"] + curve["height"] < plot["y"] + plot["height"]
    ticks = chart.locator(".axis text").all_text_contents()
    assert {"8", "64", "1 Ki", "8 Ki", "64 Ki", "1 Mi"} <= set(ticks)
    assert coloured(shown, chart) == [True] * 4
    chart.get_by_role("button", name="all or none").click()
    assert traces(chart) == 0
    assert coloured(shown, chart) == [False] * 4


def coloured(shown: Watched, chart: Any) -> list[bool]:
    """Whether there is any colour, as is none on axes, in each quarter across of the image."""
    image = base64.b64encode(chart.locator("svg").screenshot()).decode()
    script = """async image => {
        const drawn = await createImageBitmap(await (await fetch(image)).blob());
        const canvas = new OffscreenCanvas(drawn.width, drawn.height);
        const context = canvas.getContext("2d");
        context.drawImage(drawn, 0, 0);
        const left = 80, part = Math.floor((drawn.width - left) / 4);
        return [0, 1, 2, 3].map(each => {
            const { data } = context.getImageData(left + each * part, 0, part, drawn.height);
            let found = 0;
            for (let at = 0; at < data.length; at += 4) {
                const least = Math.min(data[at], data[at + 1], data[at + 2]);
                found += Math.max(data[at], data[at + 1], data[at + 2]) - least > 60;
            }
            return found > 30;
        });
    }"""
    blank = shown.page.context.new_page()
    blank.goto("about:blank")
    found = blank.evaluate(script, f"data:image/png;base64,{image}")
    blank.close()
    return [bool(each) for each in found]


def test_a_table_sorts(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page)
    table = shown.page.locator("table").first
    head = table.locator("th", has_text="value")

    def values() -> list[float]:
        cells = table.locator("tbody td:nth-child(3)")
        return [float(each) for each in cells.evaluate_all("all => all.map(c => c.dataset.v)")]

    before = values()
    assert before != sorted(before)
    head.locator("button").click()
    assert values() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    shown.page.keyboard.press("Enter")
    assert values() == sorted(before, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    # Empty cells stay last.
    rounds = table.locator("th", has_text="rounds")
    for _ in range(2):
        rounds.locator("button").click()
        assert table.locator("tbody tr").last.locator("td").nth(5).inner_text() == ""
    assert head.get_attribute("aria-sort") is None


def test_a_series_is_shown_and_hidden(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page)
    chart = figure(shown, "latency, us")
    name = "packet 1500 openmpi native"
    button = chart.get_by_role("button", name=name)
    shown.focus_by_keyboard("button", name)
    acts = (button.click, lambda: shown.page.keyboard.press("Space"))
    for act in (*acts, *reversed(acts)):
        before = traces(chart)
        act()
        pressed = before == 3
        assert button.get_attribute("aria-pressed") == str(pressed).lower()
        assert traces(chart) == (4 if pressed else 3)
        assert chart.locator(f".trace[data-series='{name}']").count() == pressed


def test_the_pointer_and_the_keyboard_show_values(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page)
    chart = figure(shown, "latency, us")
    tip = chart.locator(".tip")
    assert tip.inner_text() == ""
    curve = chart.locator(".trace .curve").first.bounding_box()
    assert curve is not None
    shown.page.mouse.move(curve["x"] + 1, curve["y"] + curve["height"] - 1)
    said = tip.inner_text()
    assert "packet 1500 openmpi beowire" in said
    assert "message size (B): 8" in said
    assert re.search(r"us \(less is better\): 10\.0\d* \[9\.\d+, 10\.\d+\]", said), said
    shown.page.mouse.move(2, 2)
    assert tip.inner_text() == ""
    shown.focus_by_keyboard(".plot")
    press = shown.page.keyboard.press
    press("ArrowRight")
    assert "message size (B): 8" in tip.inner_text()
    press("ArrowRight")
    assert "message size (B): 64" in tip.inner_text()
    press("ArrowDown")
    assert "openmpi native" in tip.inner_text()
    press("ArrowUp")
    press("ArrowLeft")
    press("ArrowLeft")
    assert "message size (B): 1,048,576" in tip.inner_text() or "1,048,580" in tip.inner_text()
    press("Escape")
    assert tip.inner_text() == ""


def test_the_dark_and_the_light_differ_and_both_can_be_read(page: Path, chromium: Chromium) -> None:
    found = {}
    for dark in (False, True):
        shown = chromium.open(page, dark=dark)
        found[dark] = shown.page.evaluate(
            """() => {
                const light = colour => {
                    const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map(each => {
                        const part = each / 255;
                        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const back = light(getComputedStyle(document.body).backgroundColor);
                const of = (what, name) => {
                    const own = light(getComputedStyle(document.querySelector(what))[name]);
                    return (Math.max(own, back) + 0.05) / (Math.min(own, back) + 0.05);
                };
                return [back, of("body", "color"), of(".axis text", "fill"), of("a", "color"),
                    ...[0, 1, 2, 3].map(each => of(`.trace.k${each} .curve`, "stroke"))];
            }"""
        )
    assert found[False][0] > 0.9
    assert found[True][0] < 0.1
    for back, text, ticks, link, *curves in found.values():
        assert min(text, ticks, link) >= 4.5, back  # WCAG 2.2, 1.4.3
        assert min(curves) >= 3, back  # WCAG 2.2, 1.4.11


def test_a_phone_needs_no_scrolling_aside(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page, size=PHONE, touch=True)
    assert shown.overflow() == 0
    chart = figure(shown, "latency, us")
    box = chart.locator("svg").bounding_box()
    assert box is not None
    assert 280 <= box["width"] <= PHONE[0]
    shown.page.set_viewport_size({"width": 800, "height": 600})
    shown.await_that(lambda: chart.locator("svg").bounding_box()["width"] > 300)
    assert shown.overflow() == 0
    assert shown.errors == []


def test_it_can_be_printed(page: Path, chromium: Chromium) -> None:
    shown = chromium.open(page, dark=True)
    chart = figure(shown, "latency, us")
    chart.locator(".legend button").nth(1).click()
    shown.page.emulate_media(media="print")
    assert shown.page.locator("nav").is_hidden()
    assert chart.locator(".legend button").nth(1).is_hidden()
    assert chart.locator(".legend button").nth(2).is_visible()
    back = shown.page.evaluate(
        "getComputedStyle(document.documentElement).getPropertyValue('--back')"
    )
    assert back.strip() == "#fff"
    pages = shown.page.pdf(format="A4").count(b"/Type /Page\n")
    assert pages >= 2


def test_names_of_others_are_text_and_nothing_else(tmp_path: Path, chromium: Chromium) -> None:
    """In names, units, settings, names of files, and in an object that we have no charts for."""
    told = matrix(links=HOSTILE)
    told["setting"] = {name: name for name in HOSTILE}
    for cell in told["cells"]:
        cell["figure"] = cell["unit"] = HOSTILE[0]
    one = written(tmp_path / "<img src=x onerror=alert(1)>.json", told)
    rows = [dict.fromkeys(HOSTILE, each) for each in HOSTILE]
    other = written(tmp_path / "b.json", {"writer": HOSTILE[1], HOSTILE[0]: rows})
    page = formats.html(contents.of([one, other]))
    shown = chromium.open(written(tmp_path / "report.html", page))
    assert (shown.errors, shown.requests) == ([], [])
    assert shown.page.evaluate("window.pwned") is None
    assert shown.page.locator("main img, main script:not([type]), main b, main i").count() == 0
    assert page.count("<!-- the next section goes here -->") == 1
    assert "\x1b" not in page
    buttons = shown.page.locator(".legend button").all_inner_texts()
    assert any(HOSTILE[0] in each for each in buttons)
    shown.page.locator(".legend button").nth(1).click()
    assert shown.page.locator("td", has_text="<img src=x").count() > 0


def test_the_policy_stops_what_escaping_let_through(page: Path, chromium: Chromium) -> None:
    """Were a name ever to become markup, it would still not be executed, and could ask nobody."""
    text = page.read_text()
    inside = (
        '<img src="http://127.0.0.1:9/x.png" onerror="window.pwned = 1"><script>window.pwned = 2'
        '</script><style>body { display: none }</style><iframe src="http://127.0.0.1:9/f"></iframe>'
    )
    changed = written(page.parent / "changed.html", text.replace("<main>", f"<main>{inside}"))
    shown = chromium.open(changed)
    shown.await_that(lambda: len(shown.errors) >= 4)  # the console tells of them by and by
    assert shown.page.evaluate("window.pwned") is None
    assert shown.requests == []
    assert shown.page.locator("h1").is_visible()


def test_two_hundred_series_open_in_bounds(tmp_path: Path, chromium: Chromium) -> None:
    told = matrix(links=tuple(f"link {each}" for each in range(100)))
    page = formats.html(contents.of([written(tmp_path / "a.json", told)]))
    assert len(page.encode()) < BYTES_MOST
    shown = chromium.open(written(tmp_path / "report.html", page))
    chart = figure(shown, "latency, us")
    assert traces(chart) == 200
    assert shown.nodes() < NODES_MOST
    took_ms = shown.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert took_ms < 1000 * SECONDS_MOST
    assert shown.errors == []


def test_evidence_has_the_papers_points_beside_ours(tmp_path: Path, chromium: Chromium) -> None:
    page = formats.html(contents.of([DOCS / "evidence.json"]))
    shown = chromium.open(written(tmp_path / "report.html", page))
    assert (shown.errors, shown.requests, shown.overflow()) == ([], [], 0)
    chart = figure(shown, "A10-amdahl")
    assert chart.locator(".trace.paper").count() == 1
    assert chart.locator(".trace:not(.paper)").count() >= 1
    assert chart.get_by_role("button", name="paper: ").count() == 1
    assert shown.page.locator("table", has_text="A10-amdahl").count() >= 1


def test_what_a_command_told_is_shown_the_same_way(tmp_path: Path, chromium: Chromium) -> None:
    """Text with its colours, a drawing, and a chart that answers, in a page of --report."""
    file = tmp_path / "r.html"
    drawn = Chart("drawn", "x", "y", (Series("s", (Point(0, 1), Point(1, 2))),))
    for _ in range(2):
        with transcript.kept():
            transcript.begin(file, ["model"])
            print("\x1b[31mred\x1b[0m")
            transcript.add_chart(drawn)
            transcript.add_image(drawing.svg(drawn).decode())
    shown = chromium.open(file)
    assert (shown.errors, shown.requests, shown.overflow()) == ([], [], 0)
    assert shown.page.evaluate("[...document.images].map(each => each.naturalWidth > 0)") == [
        *(True, True)
    ]
    assert shown.page.locator("figure.chart .curve").count() == 2
    colour = "each => getComputedStyle(each).color"
    assert shown.page.locator("span.red").first.evaluate(colour) == "rgb(160, 0, 0)"
