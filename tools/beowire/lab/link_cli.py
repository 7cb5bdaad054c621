# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command line of a lab's links: `beowire lab link set|show`."""

import json
from dataclasses import replace
from typing import Annotated

import typer

from beowire.errors import BeowireError
from beowire.lab import lab
from beowire.terminal import out
from beowire.topology.keys import KEYS, describe
from beowire.topology.topology import DIRECTIONS, Direction, Link, Model

app = typer.Typer(help="Show and change the links of a lab.", no_args_is_help=True)


def parse_settings(link: Link, words: list[str]) -> dict[Direction, Model]:
    """The link's models after `[ab.|ba.]KEY=VALUE ...`; without a prefix both directions change."""
    models: dict[Direction, Model] = {each: link.model(each) for each in DIRECTIONS}
    for word in words:
        name, equals, value = word.partition("=")
        where: tuple[Direction, ...] = DIRECTIONS
        for direction in DIRECTIONS:
            if name.startswith(f"{direction}."):
                name, where = name[3:], (direction,)
        if not equals or name not in KEYS:
            raise BeowireError(
                f"{word!r} is no setting of a link.",
                f"Write [ab.|ba.]KEY=VALUE; keys are {', '.join(KEYS)}.",
            )
        changed = {KEYS[name].field: KEYS[name].parse(value)}
        for direction in where:
            models[direction] = replace(models[direction], **changed)
    return models


@app.command("set")
def set_(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The lab's name.")],
    link: Annotated[str, typer.Argument(metavar="LINK", help="Several: comma list or 'all'.")],
    settings: Annotated[list[str], typer.Argument(metavar="[ab.|ba.]KEY=VALUE...")],
) -> None:
    """Change what a link does, while programs run; what is not named stays."""
    from beowire.lab import up

    def wanted(made: lab.Lab) -> dict[str, up.Models]:
        links = [each.name for each in made.topology.links] if link == "all" else link.split(",")
        return {each: parse_settings(made.link(each), settings) for each in links}

    up.change_links(name, wanted)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The lab's name.")],
    as_json: Annotated[bool, typer.Option("--json", help="For machines.")] = False,
) -> None:
    """Show the links of a lab: how each is made and what it does in both directions."""
    from rich.table import Table

    from beowire.lab import status

    made = lab.load(name)
    if as_json:
        print(json.dumps(status.links(made), indent=1))
        return
    table = Table("link", "a", "b", "made by", "a to b", "b to a")
    dead = made.dead_wires()
    for link in made.topology.links:
        wire = made.wires.get(link.name)
        kind = wire.kind if wire else "-"
        table.add_row(
            link.name,
            str(link.a),
            str(link.b),
            f"{kind} (dead)" if link.name in dead else kind,
            describe(link.ab) or "clear",
            describe(link.ba) or "clear",
        )
    out().print(table)
