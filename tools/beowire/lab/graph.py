# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A topology drawn as SVG: routers above, switches in the middle, nodes below; each link with what
it does. No program is needed to draw it, any browser shows it.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from statistics import mean

from beowire.topology.keys import settings
from beowire.topology.topology import Link, Model, Topology

_COLUMN = 130
"""Between the centres of neighbours in a row; all lengths are in pixels."""
_ROW = 170
_MARGIN = 60
_BOX_WIDTH, _BOX_HEIGHT = 104, 40
_FILL = {"router": "#f4d9b0", "switch": "#cfe2f3", "node": "#e4f0dc"}


@dataclass(frozen=True)
class _Box:
    kind: str
    name: str
    below: str
    x: float
    y: float


def draw(topology: Topology, addresses: dict[str, dict[str, str]] | None = None) -> str:
    """The SVG document; `addresses` by interface and host, if they are known."""
    boxes = {box.name: box for box in _boxes(topology, addresses or {})}
    width = max(box.x for box in boxes.values()) + _COLUMN / 2 + _MARGIN
    height = max(box.y for box in boxes.values()) + _BOX_HEIGHT + _MARGIN
    image = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "font-family": "sans-serif",
            "font-size": "11",
            "text-anchor": "middle",
        },
    )
    ET.SubElement(image, "title").text = topology.description or topology.name
    ET.SubElement(image, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    for number, link in enumerate(topology.links):
        _draw_link(image, link, boxes, number)
    for box in boxes.values():
        _draw_box(image, box)
    ET.indent(image)
    return ET.tostring(image, encoding="unicode") + "\n"


def _boxes(topology: Topology, addresses: dict[str, dict[str, str]]) -> list[_Box]:
    """Every device's place; nodes stand in the order of the switches that they hang on."""
    columns = {name: float(number) for number, name in enumerate(topology.switch_names())}

    def middle(name: str) -> float:
        others = [
            end.device
            for link in topology.links_of(name)
            for end in link.ends
            if end.device != name
        ]
        return mean([columns[each] for each in others if each in columns] or [0.0])

    rows = {
        "router": sorted((each.name for each in topology.routers), key=middle),
        "switch": topology.switch_names(),
        "node": sorted(topology.node_names(), key=middle),
    }
    widest = max(map(len, rows.values()))
    y = _MARGIN + _BOX_HEIGHT / 2
    boxes = []
    for kind, names in rows.items():
        step = _COLUMN * widest / max(len(names), 1)
        for number, name in enumerate(names):
            told = [text.partition("/")[0] for text in addresses.get(name, {}).values()]
            x = _MARGIN + step * (number + 0.5)
            boxes.append(_Box(kind, name, " ".join(told[:2]), x, y))
        if names:
            y += _ROW
    return boxes


def _draw_box(image: ET.Element, box: _Box) -> None:
    group = ET.SubElement(image, "g", {"class": box.kind})
    ET.SubElement(
        group,
        "rect",
        {
            "x": f"{box.x - _BOX_WIDTH / 2:g}",
            "y": f"{box.y - _BOX_HEIGHT / 2:g}",
            "width": f"{_BOX_WIDTH}",
            "height": f"{_BOX_HEIGHT}",
            "rx": {"node": "3", "switch": "0", "router": "20"}[box.kind],
            "fill": _FILL[box.kind],
            "stroke": "#555",
        },
    )
    _write(group, box.x, box.y - (3 if box.below else -4), box.name, weight="bold")
    if box.below:
        _write(group, box.x, box.y + 12, box.below)


def _draw_link(image: ET.Element, link: Link, boxes: dict[str, _Box], number: int) -> None:
    a, b = boxes[link.a.device], boxes[link.b.device]
    group = ET.SubElement(image, "g", {"class": "link"})
    ET.SubElement(group, "title").text = f"{link.name}: {link.a} - {link.b}"
    middle_x, middle_y = (a.x + b.x) / 2, (a.y + b.y) / 2
    if a.y == b.y:  # in a row: around what stands between them
        middle_y += _ROW / 3 if abs(a.x - b.x) > 1.5 * _COLUMN else 0
    curve = f"M {a.x:g} {a.y:g} Q {middle_x:g} {2 * middle_y - a.y / 2 - b.y / 2:g} {b.x:g} {b.y:g}"
    ET.SubElement(group, "path", {"d": curve, "fill": "none", "stroke": "#555"})
    low, high = (a, b) if a.y > b.y else (b, a)
    # Beside the lower end, where lines are apart; neighbours at different heights.
    share = 0.0 if a.y == b.y else 0.22 + 0.1 * (number % 2)
    x = middle_x if a.y == b.y else low.x + share * (high.x - low.x)
    y = middle_y - 4 if a.y == b.y else low.y + share * (high.y - low.y)
    for row, text in enumerate(_words(link)):
        _write(group, x, y - 12 * row, text, halo=True)


def _words(link: Link) -> list[str]:
    """What a link does: one line when it is the same both ways."""
    ab, ba = _told(link.ab), _told(link.ba)
    if ab == ba:
        return [ab] if ab else []
    return [f"{link.a.device} > {ab or 'clear'}", f"{link.b.device} > {ba or 'clear'}"]


def _told(model: Model) -> str:
    words = settings(model)
    named = [f"{key} {value}" for key, value in words.items() if key not in ("rate", "delay")]
    return ", ".join([words[key] for key in ("rate", "delay") if key in words] + named)


def _write(
    parent: ET.Element, x: float, y: float, text: str, *, weight: str = "normal", halo: bool = False
) -> None:
    style = {"x": f"{x:g}", "y": f"{y:g}", "font-weight": weight}
    if halo:
        style |= {"stroke": "white", "stroke-width": "3", "paint-order": "stroke"}
    ET.SubElement(parent, "text", style).text = text
