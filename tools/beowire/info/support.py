# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What Beowire has been built, booted and tested on: support.toml, for people and the README."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from beowire import places
from beowire.terminal import out

FILE = "info/support.toml"
STATES = {
    "tested": "tested",
    "part": "tested in part",
    "booted": "booted",
    "built": "built",
    "not tried": "not tried",
    "impossible": "does not work",
}
"""As people read them."""


@dataclass(frozen=True)
class Support:
    """One thing that Beowire may run on or with, and what was done with it."""

    area: str
    name: str
    state: str
    about: str
    shown_by: tuple[str, ...] = ()
    """Files of tests."""

    def as_json(self) -> dict[str, str]:
        return {
            "area": self.area,
            "name": self.name,
            "state": self.state,
            "about": self.about,
            "shown_by": " ".join(self.shown_by),
        }


def read() -> list[Support]:
    """All of the file, in its order; each area stands in one place."""
    told = tomllib.loads(places.package_file(FILE).read_text())["support"]
    return [
        Support(each["area"], each["name"], each["state"], each["about"],
                tuple(each.get("shown_by", ())))
        for each in told
    ]  # fmt: skip


def _by_area(found: list[Support]) -> Iterator[tuple[str, Support]]:
    """Each with its area, which is told once."""
    for area, rows in groupby(found, lambda each: each.area):
        for number, row in enumerate(rows):
            yield "" if number else area, row


def show(found: list[Support]) -> None:
    table = Table("", "what", "state", "about")
    for area, each in _by_area(found):
        table.add_row(area, each.name, STATES[each.state], each.about)
    out().print(table)


def markdown(found: list[Support]) -> str:
    """The table of the README."""
    lines = ["| | what | state | about |", "|---|---|---|---|"]
    for area, each in _by_area(found):
        lines.append(f"| {area} | {each.name} | {STATES[each.state]} | {each.about} |")
    return "\n".join(lines) + "\n"
